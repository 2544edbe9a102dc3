#include "fit.hpp"

#include <cmath>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "exit_codes.hpp"
#include "simulate_report.hpp"

namespace holmes::launcher {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;
using partition::Cell;
using partition::Fit;

constexpr const char* kConstantNames[] = {"compute_efficiency", "infiniband_efficiency",
                                          "roce_efficiency", "ethernet_efficiency",
                                          "loopback_efficiency"};

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(trimmed(part));
  return parts;
}

Error wrong(const std::string& what) {
  return Error(ErrorCode::kInvalidArgument,
               what + "; a line is 'name, job file, cluster file, overrides, measure, value'");
}

Result<double> positive(const std::string& text) {
  std::size_t used = 0;
  const auto value = capture([&] { return std::stod(text, &used); });
  if (!value || used != text.size() || !(*value > 0) || !std::isfinite(*value))
    return wrong("'" + text + "' is no positive number");
  return *value;
}

Result<double> step_of(const Cell& cell, const std::string& measure, double value) {
  if (measure == "step_s") return value;
  if (measure == "samples_per_s") return cell.job.batch / value;
  if (measure != "tflops_per_device")
    return wrong("measure '" + measure + "' is none of step_s, samples_per_s, tflops_per_device");
  constexpr double kTera = 1e12;
  return partition::paper_flops(cell.model) * cell.job.batch /
         (value * kTera * static_cast<double>(cell.cluster.device_count()));
}

Result<Cell> read_cell(const std::string& line, const fs::path& folder,
                       const std::vector<std::string>& overrides) {
  const auto parts = split(line, ',');
  constexpr std::size_t kParts = 6;
  if (parts.size() != kParts)
    return wrong(fmt::format("{} parts instead of {}", parts.size(), kParts));
  actors::ConfigSource source;
  source.file = folder / parts[1];
  source.needs_text = false;
  source.overrides = {"cluster.file=" + (folder / parts[2]).string()};
  for (const std::string& text : split(parts[3], ' '))
    if (!text.empty()) source.overrides.push_back(text);
  source.overrides.insert(source.overrides.end(), overrides.begin(), overrides.end());
  HOLMES_TRY_ASSIGN(const auto job, actors::load_job(source));
  Cell cell;
  cell.name = parts[0];
  cell.cluster = job.cluster;
  cell.model = actors::model_cost(job);
  cell.job = job.train.shape;
  cell.how = search_options(job, {});
  HOLMES_TRY_ASSIGN(const double value, positive(parts[5]));
  HOLMES_TRY_ASSIGN(cell.measured_step_s, step_of(cell, parts[4], value));
  return cell;
}

const std::optional<Fit::Constant>& constant(const Fit& fit, std::size_t index) {
  return index == 0 ? fit.compute : fit.network[index - 1];
}

std::string interval(const Fit::Constant& found) {
  if (!std::isfinite(found.half_width)) return "unknown: no more cells than constants";
  return fmt::format("{:.3g} to {:.3g}", found.value * std::exp(-found.half_width),
                     found.value * std::exp(found.half_width));
}

std::string fit_text(const std::vector<Cell>& cells, const Fit& fit) {
  std::string text = "[cost]\n";
  for (std::size_t i = 0; i < std::size(kConstantNames); ++i)
    if (const auto& found = constant(fit, i))
      text += fmt::format("{} = {:.4g}  # 95 %: {}; leaving one cell out: {:.3g} to {:.3g}{}\n",
                          kConstantNames[i], found->value, interval(*found), found->low,
                          found->high, found->at_bound ? "; at its bound" : "");
  text += fmt::format("\n{:<32} {:>12} {:>12} {:>9} {:>14}\n", "cell", "measured s", "simulated s",
                      "error %", "left out, %");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto& cell = fit.cells[i];
    text += fmt::format(
        "{:<32} {:>12.4g} {:>12.4g} {:>+9.1f} {:>14}\n", cells[i].name, cells[i].measured_step_s,
        cell.simulated_step_s, cell.error * 100,
        cell.left_out_known ? fmt::format("{:+.1f}", cell.left_out_error * 100) : "not known");
  }
  return text +
         fmt::format("root mean square of log(simulated / measured): {:.3g}\n", fit.rms_error);
}

std::string fit_json(const std::vector<Cell>& cells, const Fit& fit) {
  Json json{{"cost", Json::object()}, {"cells", Json::array()}, {"rms_log_error", fit.rms_error}};
  for (std::size_t i = 0; i < std::size(kConstantNames); ++i) {
    const auto& found = constant(fit, i);
    if (!found) continue;
    Json entry{{"value", found->value},
               {"left_out", {found->low, found->high}},
               {"at_bound", found->at_bound}};
    if (std::isfinite(found->half_width))
      entry["interval_95"] = {found->value * std::exp(-found->half_width),
                              found->value * std::exp(found->half_width)};
    json["cost"][kConstantNames[i]] = std::move(entry);
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    Json cell{{"name", cells[i].name},
              {"measured_step_s", cells[i].measured_step_s},
              {"simulated_step_s", fit.cells[i].simulated_step_s},
              {"error", fit.cells[i].error}};
    if (fit.cells[i].left_out_known) cell["left_out_error"] = fit.cells[i].left_out_error;
    json["cells"].push_back(std::move(cell));
  }
  return json.dump(2) + "\n";
}

Status try_fit(const SimulateCommand& command, Console& console) {
  HOLMES_TRY_ASSIGN(const auto cells, read_cells(command.fit, command.overrides));
  HOLMES_TRY_ASSIGN(const auto found, partition::fit(cells));
  console.print(command.json ? fit_json(cells, found) : fit_text(cells, found));
  return {};
}

}  // namespace

Result<std::vector<Cell>> read_cells(const fs::path& file,
                                     const std::vector<std::string>& overrides) {
  std::ifstream in(file);
  if (!in) return Error(ErrorCode::kNotFound, "fit: cannot read " + file.string());
  std::vector<Cell> cells;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    const std::string text = trimmed(line.substr(0, line.find('#')));
    if (text.empty()) continue;
    auto cell = read_cell(text, file.parent_path(), overrides);
    if (!cell) return cell.error().in(file.string() + ":" + std::to_string(number));
    cells.push_back(*std::move(cell));
  }
  return cells;
}

int fit(const SimulateCommand& command, Console& console) {
  const Status status = try_fit(command, console);
  if (status) return kExitDone;
  console.log("holmes: " + status.error().message());
  return exit_code(status.error().code());
}

}  // namespace holmes::launcher

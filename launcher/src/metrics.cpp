#include "metrics.hpp"

#include <cerrno>

#include <nlohmann/json.hpp>

#include "event_json.hpp"

namespace holmes::launcher {
namespace fs = std::filesystem;

Status MetricsWriter::on_event(const actors::Event& event) {
  if (failed_) return {};
  if (const auto* plan = std::get_if<actors::PlanInForce>(&event)) {
    if (!plan->plan.empty()) HOLMES_TRY(begin(plan->first_step));
  } else if (const auto* step = std::get_if<actors::StepFinished>(&event)) {
    on_step(*step);
  } else if (const auto* validation = std::get_if<actors::ValidationFinished>(&event)) {
    on_validation(*validation);
  } else if (const auto* incident = std::get_if<actors::Incident>(&event)) {
    flush();
    if (incident->goes_on) write(event_json(event, options_.cluster));
  } else if (std::holds_alternative<actors::Regrouped>(event)) {
    write(event_json(event, options_.cluster));
  }
  return check();
}

Status MetricsWriter::begin(Step first_step) {
  flush();
  out_.close();
  out_.clear();
  if (auto status = cut_metrics(options_.file, first_step); !status) {
    failed_ = true;
    return status;
  }
  out_.open(options_.file, std::ios::binary | std::ios::app);
  return {};
}

void MetricsWriter::on_step(const actors::StepFinished& step) {
  flush();
  if (validated(step.step)) {
    waiting_ = step;
  } else {
    write(metrics_json(step, nullptr, options_.cluster));
  }
}

void MetricsWriter::on_validation(const actors::ValidationFinished& validation) {
  // A validation's step counts updates: it belongs to the line of the step before.
  if (!waiting_ || waiting_->step.value() + 1 != validation.step.value()) {
    write(nlohmann::ordered_json{{"step", validation.step.value() - 1},
                                 {"validation_loss", validation.loss}}
              .dump());
    return;
  }
  write(metrics_json(*waiting_, &validation.loss, options_.cluster));
  waiting_.reset();
}

bool MetricsWriter::validated(Step step) const {
  const std::uint64_t done = step.value() + 1;
  return done == options_.steps ||
         (options_.validate_every != 0 && done % options_.validate_every == 0);
}

void MetricsWriter::flush() {
  if (!waiting_) return;
  write(metrics_json(*waiting_, nullptr, options_.cluster));
  waiting_.reset();
}

void MetricsWriter::write(const std::string& line) {
  if (!out_.is_open()) return;  // no plan has been in force
  out_ << line << '\n';
  out_.flush();
}

Status MetricsWriter::check() {
  if (out_ || failed_) return {};
  failed_ = true;
  return system_error("cannot write " + options_.file.string(), errno);
}

namespace {

/// Whether a line was written before `first_step`; incidents belong to the steps before them.
bool belongs_before(const std::string& line, Step first_step) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  if (json.contains("event")) return true;
  return json.contains("step") && json["step"].is_number_unsigned() &&
         json["step"].get<std::uint64_t>() < first_step.value();
}

}  // namespace

Status cut_metrics(const fs::path& file, Step first_step) {
  std::error_code error;
  if (fs::exists(file, error) && !fs::is_regular_file(file, error))
    return Error(ErrorCode::kInvalidArgument, file.string() + " is not a regular file");
  std::ifstream in(file, std::ios::binary);
  if (!in) return {};
  std::uintmax_t keep = 0;
  std::string line;
  while (std::getline(in, line) && !in.eof()) {
    if (!belongs_before(line, first_step)) break;
    keep += line.size() + 1;
  }
  in.close();
  if (fs::file_size(file, error) != keep) fs::resize_file(file, keep, error);
  if (error) return system_error("cannot shorten " + file.string(), error.value());
  return {};
}

}  // namespace holmes::launcher

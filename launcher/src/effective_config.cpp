#include "effective_config.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

namespace holmes::launcher {
namespace {

/// "train.lr" -> "0.003", of a text with one key a line.
std::map<std::string, std::string> values(std::string_view text) {
  std::map<std::string, std::string> found;
  std::istringstream lines{std::string(text)};
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find(" = ");
    if (line.starts_with("[")) {
      section = line.substr(1, line.find(']') - 1);
    } else if (equals != std::string::npos) {
      found[section + "." + line.substr(0, equals)] = line.substr(equals + 3);
    }
  }
  return found;
}

/// Numbers as people write them: 0.003, not 0.0030000000260770321.
std::string short_text(const std::string& value) {
  char* end = nullptr;
  const double parsed = std::strtod(value.c_str(), &end);
  const bool fraction = value.find_first_of(".e") != std::string::npos;
  return fraction && *end == '\0' ? fmt::format("{:.7g}", parsed) : value;
}

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return in ? content.str() : "";
}

}  // namespace

std::vector<std::string> changed_keys(std::string_view before, std::string_view now) {
  std::vector<std::string> changed;
  const auto old_values = values(before);
  for (const auto& [key, value] : values(now)) {
    const auto old = old_values.find(key);
    if (old != old_values.end() && old->second != value)
      changed.push_back(key + " = " + short_text(old->second) + " -> " + short_text(value));
  }
  return changed;
}

Result<std::vector<std::string>> keep_effective(const RunFolder& folder,
                                                const actors::JobConfig& job) {
  const std::string before = read(folder.path() / "effective.toml");
  const std::string now = actors::to_toml(job) + "\n[cluster]\nfile = \"cluster.toml\"\n";
  HOLMES_TRY(folder.write("cluster.toml", actors::to_toml(job.cluster)));
  HOLMES_TRY(folder.write("effective.toml", now));
  return changed_keys(before, now);
}

}  // namespace holmes::launcher

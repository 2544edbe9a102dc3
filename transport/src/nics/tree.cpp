#include "nics/tree.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace holmes::transport::nics {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kTextBytesMax = 64 * 1024;

}  // namespace

std::optional<std::string> MachineTree::text(const std::string& path) const {
  std::ifstream file(at(path), std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(kTextBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return std::nullopt;
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  text.erase(text.find_last_not_of(" \t\n") + 1);
  if (text.empty()) return std::nullopt;
  return text;
}

std::optional<long long> MachineTree::number(const std::string& path) const {
  const auto found = text(path);
  return found ? parse_number(*found) : std::nullopt;
}

bool MachineTree::exists(const std::string& path) const {
  std::error_code error;
  return fs::exists(at(path), error);
}

std::vector<std::string> MachineTree::names(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(at(folder), error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string MachineTree::real(const std::string& path) const {
  std::error_code error;
  const auto found = fs::canonical(at(path), error);
  return error ? std::string() : found.string();
}

std::string MachineTree::target_name(const std::string& path) const {
  std::error_code error;
  const auto target = fs::read_symlink(at(path), error);
  return error ? std::string() : target.filename().string();
}

std::optional<long long> parse_number(const std::string& text) {
  const bool hex = text.starts_with("0x");
  const char* const begin = text.data() + (hex ? 2 : 0);
  const char* const end = text.data() + text.size();
  long long value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value, hex ? 16 : 10);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace holmes::transport::nics

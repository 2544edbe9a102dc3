#include "hostfile.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "holmes/base/suggest.hpp"

namespace holmes::launcher {
namespace {

using actors::HostChoice;

constexpr std::size_t kHostfileBytesMax = 1 << 20;
constexpr std::size_t kHostsMax = 4096;
constexpr std::uint32_t kSlotsMax = 65536;

Error invalid(std::string what) {
  return Error(ErrorCode::kInvalidArgument, std::move(what));
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 64;
  return "'" + std::string(text.substr(0, kShown)) + (text.size() > kShown ? "..." : "") + "'";
}

Result<std::uint32_t> slots_of(std::string_view text) {
  std::uint32_t slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error == std::errc() && end == text.data() + text.size() && slots > 0 && slots <= kSlotsMax)
    return slots;
  return invalid("slots must be a whole number, 1 .. " + std::to_string(kSlotsMax) + ", not " +
                 in_quotes(text));
}

/// "NAME" or "NAME:N". What has two colons is an IPv6 address, which is a name.
Result<HostChoice> host_of(std::string_view word) {
  const auto colon = word.find(':');
  const bool has_slots =
      colon != std::string_view::npos && word.find(':', colon + 1) == std::string_view::npos;
  HostChoice host{std::string(word.substr(0, has_slots ? colon : word.size())), 0};
  if (host.name.empty()) return invalid(in_quotes(word) + " names no host");
  if (has_slots) {
    HOLMES_TRY_ASSIGN(host.slots, slots_of(word.substr(colon + 1)));
  }
  return host;
}

Status read_option(std::string_view word, HostChoice& host) {
  if (word.starts_with("slots=")) {
    HOLMES_TRY_ASSIGN(host.slots, slots_of(word.substr(6)));
    return {};
  }
  if (word.starts_with("max_slots=") || word.starts_with("max-slots=")) return {};
  return invalid(in_quotes(word) + " is not known here; write NAME slots=N");
}

Result<std::vector<std::string>> names_in(const std::string& list) {
  HOLMES_TRY_ASSIGN(const auto hosts, parse_host_list(list));
  std::vector<std::string> names;
  for (const auto& host : hosts) {
    if (host.slots > 0)
      return invalid(in_quotes(host.name + ":" + std::to_string(host.slots)) +
                     ": --include and --exclude take names of hosts, no slots");
    names.push_back(host.name);
  }
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status check_known(const std::vector<std::string>& names, const std::vector<HostChoice>& all,
                   const char* option) {
  std::vector<std::string_view> known;
  for (const auto& host : all) known.push_back(host.name);
  for (const auto& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return invalid(std::string(option) + ": there is no host " + in_quotes(name) +
                     did_you_mean(name, known));
  return {};
}

}  // namespace

Result<std::vector<HostChoice>> parse_hostfile(std::string_view text, const std::string& name) {
  std::vector<HostChoice> hosts;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string at = name + ":" + std::to_string(number);
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    if (!(words >> word)) continue;
    auto host = host_of(word);
    if (!host) return host.error().in(at);
    while (words >> word)
      if (const auto read = read_option(word, *host); !read) return read.error().in(at);
    if (hosts.size() == kHostsMax)
      return invalid(at + ": more than " + std::to_string(kHostsMax) + " hosts");
    hosts.push_back(*std::move(host));
  }
  if (hosts.empty()) return invalid(name + ": names no host");
  return hosts;
}

Result<std::vector<HostChoice>> parse_host_list(std::string_view text) {
  std::vector<HostChoice> hosts;
  while (true) {
    const auto comma = text.find(',');
    HOLMES_TRY_ASSIGN(auto host, host_of(text.substr(0, comma)));
    hosts.push_back(std::move(host));
    if (hosts.size() > kHostsMax)
      return invalid("a list of more than " + std::to_string(kHostsMax) + " hosts");
    if (comma == std::string_view::npos) return hosts;
    text.remove_prefix(comma + 1);
  }
}

Result<std::vector<HostChoice>> read_hosts(const std::string& file_or_list) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file_or_list, error)) {
    const bool path = file_or_list.find('/') != std::string::npos;
    if (path) return invalid("--hosts: there is no file " + file_or_list);
    const auto hosts = parse_host_list(file_or_list);
    if (!hosts) return hosts.error().in("--hosts");
    return hosts;
  }
  if (std::filesystem::file_size(file_or_list, error) > kHostfileBytesMax || error)
    return invalid("--hosts: " + file_or_list + " is no hostfile: it has more than 1 MiB");
  std::ifstream file(file_or_list);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return invalid("--hosts: cannot read " + file_or_list);
  return parse_hostfile(text.str(), file_or_list);
}

Result<std::vector<HostChoice>> select_hosts(std::vector<HostChoice> all,
                                             const std::string& include,
                                             const std::string& exclude) {
  if (!include.empty()) {
    HOLMES_TRY_ASSIGN(const auto names, names_in(include));
    HOLMES_TRY(check_known(names, all, "--include"));
    std::erase_if(all, [&](const auto& host) { return !contains(names, host.name); });
  }
  if (!exclude.empty()) {
    HOLMES_TRY_ASSIGN(const auto names, names_in(exclude));
    HOLMES_TRY(check_known(names, all, "--exclude"));
    std::erase_if(all, [&](const auto& host) { return contains(names, host.name); });
  }
  if (all.empty()) return invalid("--include and --exclude leave no host to train on");
  return all;
}

}  // namespace holmes::launcher

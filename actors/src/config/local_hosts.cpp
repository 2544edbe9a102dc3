#include "config/local_hosts.hpp"

#include <string>
#include <string_view>

#include "config/cluster_entries.hpp"
#include "config/text_file.hpp"

namespace holmes::actors {
namespace {

bool is_loopback(std::string_view address) {
  return address.empty() || address == "localhost" || address == "::1" || address == "[::1]" ||
         address.starts_with("127.");
}

Status check_address(const Entry& entry) {
  const Node* node = entry.find("address");
  const auto* address = node == nullptr ? nullptr : std::get_if<std::string>(&node->value);
  if (address == nullptr || is_loopback(*address)) return {};
  return entry.invalid("address",
                       "'" + address->substr(0, 64) +
                           "' is another machine or network, but training runs all hosts as "
                           "processes of this machine for now, so that nothing would run there; "
                           "leave address out to emulate the cluster here (plan and simulate take "
                           "it as it is)");
}

}  // namespace

Status check_hosts_are_local(const std::filesystem::path& file) {
  HOLMES_TRY_ASSIGN(const std::string text, read_text_file(file));
  const std::string name = file.string();
  HOLMES_TRY_ASSIGN(const Table root, parse_document(text, name));
  HOLMES_TRY_ASSIGN(const auto hosts, entries(root, "host", "host", name));
  for (const Entry& host : hosts) {
    HOLMES_TRY(check_address(host));
    HOLMES_TRY_ASSIGN(const auto nics, entries(*host.table, "nic", "host.nic", name));
    for (const Entry& nic : nics) HOLMES_TRY(check_address(nic));
  }
  return {};
}

}  // namespace holmes::actors

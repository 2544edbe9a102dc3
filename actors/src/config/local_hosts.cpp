#include "config/local_hosts.hpp"

#include <string>

#include "config/cluster_entries.hpp"
#include "config/text_file.hpp"
#include "holmes/base/address.hpp"

namespace holmes::actors {
namespace {

Status check_address(const Entry& entry) {
  const Node* node = entry.find("address");
  const auto* address = node == nullptr ? nullptr : std::get_if<std::string>(&node->value);
  if (address == nullptr || is_loopback(*address)) return {};
  return entry.invalid("address",
                       "'" + address->substr(0, 64) +
                           "' is another machine or network, but with transport.nics = "
                           "\"loopback\" all hosts are processes of this machine; train there "
                           "with holmes launch, or leave address out to emulate the cluster here");
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

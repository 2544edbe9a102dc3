// Where the facts come from: this machine, or a recorded one.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "nics/address.hpp"
#include "nics/tree.hpp"
#include "nics/verbs_library.hpp"

namespace holmes::transport {

namespace {

using namespace nics;

std::optional<InterfaceAddress> address_of(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || entry.ifa_netmask == nullptr) return std::nullopt;
  IpAddress address;
  unsigned bits = 0;
  if (entry.ifa_addr->sa_family == AF_INET) {
    const auto* at = reinterpret_cast<const sockaddr_in*>(entry.ifa_addr);
    const auto* mask = reinterpret_cast<const sockaddr_in*>(entry.ifa_netmask);
    bits = static_cast<unsigned>(std::popcount(mask->sin_addr.s_addr));
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &at->sin_addr, text.data(), text.size());
    address = IpAddress::parse(text.data()).value_or(IpAddress{});
  } else if (entry.ifa_addr->sa_family == AF_INET6) {
    const auto* at = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr);
    const auto* mask = reinterpret_cast<const sockaddr_in6*>(entry.ifa_netmask);
    std::copy_n(std::begin(at->sin6_addr.s6_addr), address.bytes.size(), address.bytes.begin());
    for (const auto byte : mask->sin6_addr.s6_addr)
      bits += static_cast<unsigned>(std::popcount(byte));
  } else {
    return std::nullopt;
  }
  return InterfaceAddress{entry.ifa_name, address.text(), static_cast<std::uint8_t>(bits)};
}

Result<std::vector<InterfaceAddress>> interface_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return system_error("nics: addresses of interfaces", errno);
  std::vector<InterfaceAddress> found;
  for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next)
    if (auto address = address_of(*entry)) found.push_back(std::move(*address));
  ::freeifaddrs(list);
  return found;
}

Error bad_line(const std::string& file, std::size_t line) {
  return Error(ErrorCode::kCorrupt, file + ":" + std::to_string(line) +
                                        ": is no fact of a recorded machine; see "
                                        "tests/transport/machines for examples");
}

/// "eth0 10.1.2.3/24"
Result<std::vector<InterfaceAddress>> recorded_addresses(const std::string& text) {
  std::vector<InterfaceAddress> found;
  std::size_t number = 0;
  for (const auto& line : lines_of(text)) {
    ++number;
    const auto words = words_of(line);
    if (words.empty()) continue;
    const auto slash = words.back().find('/');
    const auto address = IpAddress::parse(words.back().substr(0, slash));
    const auto bits =
        slash == std::string::npos ? -1 : parse_number(words.back().substr(slash + 1)).value_or(-1);
    if (words.size() != 2 || !address || bits < 0 || bits > (address->is_v4() ? 32 : 128))
      return bad_line("facts/addresses", number);
    found.push_back({words[0], address->text(), static_cast<std::uint8_t>(bits)});
  }
  return found;
}

std::optional<GidType> gid_type(const std::string& text) {
  for (const auto type : {GidType::kInfiniBand, GidType::kRoceV1, GidType::kRoceV2})
    if (text == to_string(type)) return type;
  return std::nullopt;
}

/// "port mlx5_0 1 active lid 4 mtu 4096", "gid mlx5_0 1 3 ::ffff:10.1.2.3 roce-v2 eth0",
/// "error mlx5_0 1 what is wrong", "absent what is wrong".
bool add_verbs_fact(MachineFacts& facts, const std::vector<std::string>& words) {
  const auto rest = [&](std::size_t from) {
    std::string text;
    for (auto i = from; i < words.size(); ++i) text += (text.empty() ? "" : " ") + words[i];
    return text;
  };
  if (words[0] == "absent") {
    facts.verbs_error = rest(1);
    return true;
  }
  const auto port = words.size() < 4 ? std::nullopt : parse_number(words[2]);
  if (!port || *port < 1 || *port > 255) return false;
  VerbsPort fact{words[1], static_cast<std::uint8_t>(*port), "", false, 0, 0, {}};
  if (words[0] == "error") {
    fact.error = rest(3);
  } else if (words[0] == "port" && words.size() == 8) {
    fact.active = words[3] == "active";
    fact.lid = static_cast<std::uint32_t>(parse_number(words[5]).value_or(0));
    fact.mtu_bytes = static_cast<std::uint32_t>(parse_number(words[7]).value_or(0));
  } else if (words[0] == "gid" && words.size() >= 6 && !facts.verbs.empty()) {
    const auto index = parse_number(words[3]);
    const auto address = IpAddress::parse(words[4]);
    const auto type = gid_type(words[5]);
    if (!index || !address || !type) return false;
    facts.verbs.back().gids.push_back({static_cast<std::uint32_t>(*index), address->text(), *type,
                                       words.size() > 6 ? words[6] : ""});
    return true;
  } else {
    return false;
  }
  facts.verbs.push_back(std::move(fact));
  return true;
}

}  // namespace

Result<MachineFacts> machine_facts() {
  MachineFacts facts;
  HOLMES_TRY_ASSIGN(facts.addresses, interface_addresses());
  if (!MachineTree(facts.root).names("sys/class/infiniband").empty()) ask_verbs(facts);
  return facts;
}

Result<MachineFacts> recorded_facts(const std::filesystem::path& folder) {
  MachineFacts facts;
  facts.root = folder;
  const MachineTree tree(folder);
  HOLMES_TRY_ASSIGN(facts.addresses, recorded_addresses(tree.text("facts/addresses").value_or("")));
  std::size_t number = 0;
  for (const auto& line : lines_of(tree.text("facts/verbs").value_or(""))) {
    ++number;
    const auto words = words_of(line);
    if (!words.empty() && !add_verbs_fact(facts, words)) return bad_line("facts/verbs", number);
  }
  return facts;
}

}  // namespace holmes::transport

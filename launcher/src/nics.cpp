#include "nics.hpp"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "exit_codes.hpp"
#include "failure.hpp"
#include "holmes/transport/nics.hpp"

namespace holmes::launcher {
namespace {

using transport::FoundNic;
using transport::NicLayer;
using Json = nlohmann::ordered_json;

/// What partition::apply() makes of one name: its rules are the only ones.
Result<bool> allowed(const partition::NcclOverrides& overrides, partition::NicKind kind,
                     const std::string& name) {
  partition::Cluster cluster;
  cluster.fabrics.push_back({.name = "any", .kind = kind});
  partition::Host host;
  host.nics.emplace_back();
  host.nics.back().name = name;
  cluster.hosts.push_back(std::move(host));
  HOLMES_TRY(partition::apply(overrides, cluster));
  return cluster.hosts.front().nics.front().use;
}

/// A list that names what is wanted, not what is not.
bool names_some(const std::optional<std::string>& list) {
  return list && list->size() > 1 && !list->starts_with('^');
}

Status apply_one(const partition::NcclOverrides& overrides, FoundNic& nic) {
  if (nic.layer != NicLayer::kEthernet) {
    HOLMES_TRY_ASSIGN(const bool rdma,
                      allowed({{}, {}, overrides.ib_disable}, partition::NicKind::kRoce, ""));
    const partition::NameFilter adapters(overrides.ib_hca.value_or(""));
    if (!rdma)
      nic = without_rdma(nic, "NCCL_IB_DISABLE=" + *overrides.ib_disable);
    else if (!adapters.allows(nic.device, nic.port))
      nic = without_rdma(nic, "NCCL_IB_HCA=" + *overrides.ib_hca);
  }
  if (nic.layer != NicLayer::kEthernet || !overrides.socket_ifname) return {};
  HOLMES_TRY_ASSIGN(const bool socket,
                    allowed(overrides, partition::NicKind::kEthernet, nic.interface));
  if (!socket && nic.left_out.empty())
    nic.left_out = "NCCL_SOCKET_IFNAME=" + *overrides.socket_ifname;
  if (socket && nic.by_choice && names_some(overrides.socket_ifname)) {
    nic.remark = "used because NCCL_SOCKET_IFNAME names it, else left out: " + nic.left_out;
    nic.left_out.clear();
  }
  return {};
}

/// Leaves NICs out, and brings them back, as NCCL's variables say.
Status apply(const partition::NcclOverrides& overrides, transport::FoundNics& nics) {
  HOLMES_TRY(allowed(overrides, partition::NicKind::kRoce, ""));  // good ones, used or not
  for (auto& nic : nics.nics) HOLMES_TRY(apply_one(overrides, nic));
  return {};
}

Json json_of(const FoundNic& nic) {
  Json out{{"name", nic.name}, {"kind", to_string(nic.layer)}, {"used", nic.left_out.empty()}};
  if (!nic.left_out.empty()) out["left_out"] = nic.left_out;
  if (!nic.remark.empty()) out["remark"] = nic.remark;
  if (!nic.device.empty()) {
    out["rdma_device"] = nic.device;
    out["port"] = nic.port;
  }
  if (!nic.interface.empty()) out["interface"] = nic.interface;
  if (!nic.members.empty()) out["members"] = nic.members;
  out["addresses"] = Json::array();
  for (const auto& each : nic.addresses)
    out["addresses"].push_back(each.address + "/" + std::to_string(each.prefix_bits));
  if (nic.gbit_s > 0) out["gbit_s"] = nic.gbit_s;
  if (nic.mtu_bytes > 0) out["mtu_bytes"] = nic.mtu_bytes;
  if (nic.lid > 0) out["lid"] = nic.lid;
  if (!nic.subnet.empty()) out["subnet"] = nic.subnet;
  if (nic.gid)
    out["gid"] = {{"index", nic.gid->index},
                  {"address", nic.gid->address},
                  {"kind", to_string(nic.gid->type)}};
  if (nic.numa_node >= 0) out["numa_node"] = nic.numa_node;
  out["gpus"] = Json::array();
  for (const auto& gpu : nic.gpus)
    out["gpus"].push_back({{"pci", gpu.pci_address}, {"distance", to_string(gpu.distance)}});
  return out;
}

std::string to_json(const transport::FoundNics& nics, bool all) {
  Json out{{"host", nics.host}, {"nics", Json::array()}, {"remarks", nics.remarks}};
  for (const auto& nic : nics.nics)
    if (all || nic.left_out.empty()) out["nics"].push_back(json_of(nic));
  return out.dump(2);
}

std::string rate_text(double gbit_s) {
  if (gbit_s <= 0) return "?";
  std::string text = std::to_string(gbit_s);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// "PIX NODE SYS", in the order of the GPUs.
std::string gpus_text(const FoundNic& nic) {
  std::string text;
  for (const auto& gpu : nic.gpus)
    text += (text.empty() ? "" : " ") + std::string(to_string(gpu.distance));
  return text.empty() ? "-" : text;
}

using Row = std::vector<std::string>;

Row row_of(const FoundNic& nic) {
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  const auto address = nic.gid && nic.layer == NicLayer::kRoce ? nic.gid->address
                       : nic.addresses.empty()                 ? ""
                                                               : nic.addresses.front().address;
  return {nic.name,
          std::string(to_string(nic.layer)),
          or_dash(nic.interface),
          rate_text(nic.gbit_s),
          nic.mtu_bytes > 0 ? std::to_string(nic.mtu_bytes) : "?",
          or_dash(address),
          or_dash(nic.subnet),
          nic.numa_node < 0 ? "-" : std::to_string(nic.numa_node),
          gpus_text(nic),
          nic.left_out.empty() ? nic.remark : "left out: " + nic.left_out};
}

std::string to_table(const transport::FoundNics& nics, bool all) {
  std::vector<Row> rows{
      {"NIC", "kind", "interface", "Gbit/s", "MTU", "address", "subnet", "NUMA", "GPUs", ""}};
  for (const auto& nic : nics.nics)
    if (all || nic.left_out.empty()) rows.push_back(row_of(nic));
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i].resize(widths[i], ' ');
      line += (i == 0 ? "" : "  ") + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  for (const auto& remark : nics.remarks) text += remark + "\n";
  return text;
}

Result<std::optional<std::uint32_t>> gid_index(const std::optional<std::string>& text) {
  if (!text || *text == "-1") return std::optional<std::uint32_t>();  // -1: NCCL's own choice
  std::uint32_t index = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), index);
  if (error == std::errc() && end == text->data() + text->size()) return std::optional(index);
  return Error(ErrorCode::kInvalidArgument,
               "NCCL_IB_GID_INDEX=" + text->substr(0, 64) + " is no index; use 0 or more, or -1");
}

Status try_show_nics(const NicsCommand& command, Console& console) {
  transport::NicOptions options;
  HOLMES_TRY_ASSIGN(options.gid_index, gid_index(command.gid_index));
  HOLMES_TRY_ASSIGN(const auto facts, command.root.empty()
                                          ? transport::machine_facts()
                                          : transport::recorded_facts(command.root));
  HOLMES_TRY_ASSIGN(auto nics, transport::find_nics(facts, options));
  HOLMES_TRY(apply(command.nccl, nics));
  console.print(command.json ? to_json(nics, command.all) : to_table(nics, command.all));
  return {};
}

}  // namespace

int show_nics(const NicsCommand& command, Console& console) {
  const auto shown = try_show_nics(command, console);
  if (shown) return kExitDone;
  return report_failure(shown.error(), console, command.json);
}

}  // namespace holmes::launcher

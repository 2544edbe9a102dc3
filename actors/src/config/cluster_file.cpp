// Reads a cluster file: [[fabric]], [[cluster]], [[link]], [[host]] with [[host.device]] and
// [[host.nic]].

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/cluster_entries.hpp"
#include "config/text_file.hpp"
#include "holmes/actors/job_config.hpp"
#include "holmes/base/limits.hpp"
#include "holmes/base/suggest.hpp"

namespace holmes::actors {
namespace {

// In the order of partition::NicKind.
constexpr std::string_view kNicKinds[] = {"infiniband", "roce", "ethernet", "loopback"};
constexpr Rule kGbit{1e-6, 1e5};
constexpr Rule kLatencyUs{0, 1e7};
constexpr Rule kTflops{1e-6, 1e6};
constexpr std::uint32_t kNicsPerHostMax = 64;
constexpr std::size_t kLinksMax = 4096;
// In the order of partition::GidKind, but for the first, which means that the key is not given.
constexpr std::string_view kGidKinds[] = {"unknown", "infiniband", "roce-v1", "roce-v2"};
constexpr std::string_view kPortStates[] = {"up", "down"};

class ClusterReader {
 public:
  ClusterReader(const Table& root, const std::string& file) : root_(root), file_(file) {}

  Result<partition::Cluster> read() {
    HOLMES_TRY(check_root());
    HOLMES_TRY(read_fabrics());
    HOLMES_TRY(read_clusters());
    HOLMES_TRY(read_hosts());
    HOLMES_TRY(read_links());
    if (const Status status = partition::validate(cluster_); !status) {
      return status.error().in(file_);
    }
    return std::move(cluster_);
  }

 private:
  Status check_root() const {
    constexpr std::string_view kKnown[] = {"fabric", "cluster", "host", "link"};
    for (const Member& member : root_) {
      if (std::find(std::begin(kKnown), std::end(kKnown), member.key) != std::end(kKnown)) continue;
      const std::string at = place(file_, member.line) + ": ";
      return Error(ErrorCode::kInvalidArgument, at + "unknown entry [[" + member.key.substr(0, 64) +
                                                    "]]" + did_you_mean(member.key, kKnown));
    }
    return {};
  }

  Status read_fabrics() {
    HOLMES_TRY_ASSIGN(const auto list, entries(root_, "fabric", "fabric", file_));
    for (const Entry& entry : list) {
      partition::Fabric fabric;
      HOLMES_TRY(read_fields(entry, {{"name", &fabric.name, {}, true},
                                     {"kind", &fabric.kind, {0, 0, kNicKinds}, true},
                                     {"gbit_s", &fabric.gbit_s, kGbit, true},
                                     {"latency_us", &fabric.latency_us, kLatencyUs, true},
                                     {"trunk_gbit_s", &fabric.trunk_gbit_s, kGbit},
                                     {"trusted", &fabric.trusted}}));
      HOLMES_TRY(fabric_names_.add(entry, "fabrics", fabric.name));
      cluster_.fabrics.push_back(std::move(fabric));
    }
    return {};
  }

  Status read_clusters() {
    HOLMES_TRY_ASSIGN(const auto list, entries(root_, "cluster", "cluster", file_));
    for (const Entry& entry : list) {
      std::string name;
      HOLMES_TRY(read_fields(entry, {{"name", &name, {}, true}}));
      HOLMES_TRY(cluster_names_.add(entry, "clusters", name));
    }
    return {};
  }

  Status read_hosts() {
    HOLMES_TRY_ASSIGN(const auto list, entries(root_, "host", "host", file_));
    if (list.empty()) {
      return Error(ErrorCode::kInvalidArgument,
                   file_ + ": the cluster has no hosts; add at least one [[host]]");
    }
    for (const Entry& entry : list) HOLMES_TRY(read_host(entry));
    return {};
  }

  Status read_host(const Entry& entry) {
    partition::Host host;
    std::uint32_t count = 0;
    constexpr auto kCountMax = static_cast<double>(limits::kHostsMax);
    HOLMES_TRY(read_fields(entry,
                           {{"name", &host.name, {}, true},
                            {"count", &count, {1, kCountMax}},
                            {"cluster", &host.cluster},
                            {"address", &host.address}},
                           {"device", "nic"}));
    if (!host.cluster.empty() && !cluster_names_.empty() &&
        !cluster_names_.contains(host.cluster)) {
      return entry.invalid(
          "cluster", "'" + host.cluster + "' is not declared" + cluster_names_.near(host.cluster));
    }
    if (!host.cluster.empty()) {
      if (const Status status = partition::check_name(host.cluster); !status) {
        return entry.invalid("cluster", status.error().message());
      }
      used_clusters_.insert(host.cluster);
    }
    HOLMES_TRY(read_devices(entry, std::max(count, 1U), host));
    HOLMES_TRY(read_nics(entry, host));
    return add_hosts(entry, host, count);
  }

  Status read_devices(const Entry& entry, std::uint32_t host_count, partition::Host& host) {
    HOLMES_TRY_ASSIGN(const auto list, entries(*entry.table, "device", "host.device", file_));
    if (list.empty()) {
      return entry.invalid(entry.line,
                           "host '" + host.name + "' has no device; add [[host.device]] below it");
    }
    for (const Entry& item : list) {
      partition::Device device;
      std::uint32_t count = 1;
      constexpr auto kCountMax = static_cast<double>(limits::kDevicesMax);
      HOLMES_TRY(read_fields(item, {{"kind", &device.kind},
                                    {"count", &count, {1, kCountMax}},
                                    {"threads", &device.threads, {1, 4096}},
                                    {"tflops", &device.tflops, kTflops},
                                    {"training_tflops", &device.training_tflops, kTflops},
                                    {"memory_gib", &device.memory_gib, {1e-6, 1e6}}}));
      if (const Status status = partition::check_name(device.kind); !status) {
        return item.invalid("kind", status.error().message());
      }
      devices_ += std::size_t{count} * host_count;
      if (devices_ > limits::kDevicesMax) {
        return item.invalid("count",
                            "over " + std::to_string(limits::kDevicesMax) + " devices in all");
      }
      host.devices.insert(host.devices.end(), count, device);
    }
    return {};
  }

  Status read_nics(const Entry& entry, partition::Host& host) {
    HOLMES_TRY_ASSIGN(const auto list, entries(*entry.table, "nic", "host.nic", file_));
    Names names;
    for (const Entry& item : list) HOLMES_TRY(read_nic(item, names, host));
    return {};
  }

  Status read_nic(const Entry& item, Names& names, partition::Host& host) {
    partition::Nic nic;
    std::string fabric;
    std::string port = "up";
    std::string gid = "unknown";
    std::uint32_t count = 0;
    double gbit_s = 0;
    double latency_us = -1;
    HOLMES_TRY(read_fields(item,
                           {{"name", &nic.name, {}, true},
                            {"fabric", &fabric, {}, true},
                            {"count", &count, {1, kNicsPerHostMax}},
                            {"gbit_s", &gbit_s, kGbit},
                            {"latency_us", &latency_us, kLatencyUs},
                            {"address", &nic.address},
                            {"subnet", &nic.subnet},
                            {"gid", &gid, {0, 0, kGidKinds}},
                            {"mtu_bytes", &nic.mtu_bytes, {256, 65536}},
                            {"port", &port, {0, 0, kPortStates}},
                            {"use", &nic.use}},
                           {"near"}));
    const auto id = find_fabric(fabric);
    if (!id) {
      return item.invalid("fabric", "'" + fabric + "' is not declared" +
                                        fabric_names_.near(fabric) +
                                        (cluster_.fabrics.empty() ? "; add a [[fabric]]" : ""));
    }
    const partition::Fabric& of = cluster_.fabrics[id->index()];
    nic.fabric = *id;
    nic.gbit_s = gbit_s > 0 ? gbit_s : of.gbit_s;
    nic.latency_us = latency_us >= 0 ? latency_us : of.latency_us;
    nic.port_up = port == "up";
    nic.gid = static_cast<partition::GidKind>(
        std::find(std::begin(kGidKinds), std::end(kGidKinds), gid) - std::begin(kGidKinds));
    if (!partition::fits(nic.gid, of.kind)) {
      return item.invalid("gid", "'" + gid + "' is not possible on fabric '" + of.name +
                                     "', which is of kind " + std::string(to_string(of.kind)));
    }
    HOLMES_TRY_ASSIGN(nic.near, read_indices(item, "near", host.devices.size()));
    return add_nics(item, nic, count, names, host);
  }

  static Status add_nics(const Entry& item, const partition::Nic& nic, std::uint32_t count,
                         Names& names, partition::Host& host) {
    for (std::uint32_t i = 0; i < std::max(count, 1U); ++i) {
      partition::Nic one = nic;
      if (count > 0) one.name += std::to_string(i);
      HOLMES_TRY(names.add(item, "NICs of the host", one.name));
      host.nics.push_back(std::move(one));
    }
    if (host.nics.size() <= kNicsPerHostMax) return {};
    return item.invalid("count", "over " + std::to_string(kNicsPerHostMax) + " NICs on one host");
  }

  Status add_hosts(const Entry& entry, const partition::Host& host, std::uint32_t count) {
    for (std::uint32_t i = 0; i < std::max(count, 1U); ++i) {
      if (cluster_.hosts.size() == limits::kHostsMax) {
        return entry.invalid("count",
                             "over " + std::to_string(limits::kHostsMax) + " hosts in all");
      }
      partition::Host one = host;
      if (count > 0) one.name += std::to_string(i);
      HOLMES_TRY(host_names_.add(entry, "hosts", one.name));
      cluster_.hosts.push_back(std::move(one));
    }
    return {};
  }

  Status read_links() {
    HOLMES_TRY_ASSIGN(const auto list, entries(root_, "link", "link", file_));
    if (list.size() > kLinksMax) {
      return list[kLinksMax].invalid(list[kLinksMax].line,
                                     "over " + std::to_string(kLinksMax) + " links");
    }
    for (const Entry& entry : list) {
      partition::Link link;
      HOLMES_TRY(read_fields(entry, {{"from", &link.from, {}, true},
                                     {"to", &link.to, {}, true},
                                     {"gbit_s", &link.gbit_s, kGbit, true},
                                     {"latency_us", &link.latency_us, kLatencyUs, true}}));
      HOLMES_TRY(check_link(entry, link));
      cluster_.links.push_back(std::move(link));
    }
    return {};
  }

  /// Both ends are fabrics of one kind, or both are clusters, and no link joined them before.
  Status check_link(const Entry& entry, const partition::Link& link) {
    const bool fabrics = fabric_names_.contains(link.from);
    for (const auto& [key, end] : {std::pair("from", &link.from), std::pair("to", &link.to)}) {
      const bool is_fabric = fabric_names_.contains(*end);
      const bool is_cluster = used_clusters_.contains(*end);
      if (!is_fabric && !is_cluster) {
        const std::string near = fabric_names_.near(*end);
        return entry.invalid(key, "'" + *end + "' is neither a fabric nor the cluster of a host" +
                                      (near.empty() ? cluster_names_.near(*end) : near));
      }
      if (is_fabric && is_cluster) {
        return entry.invalid(key, "'" + *end + "' is a fabric and a cluster; rename one");
      }
      if (is_fabric != fabrics) {
        return entry.invalid(key, "'" + *end + "' is a " + (is_fabric ? "fabric" : "cluster") +
                                      ", the other end is not; name two of a kind");
      }
    }
    if (link.from == link.to) return entry.invalid("to", "a link has two different ends");
    if (fabrics) {
      const auto kind = cluster_.fabrics[find_fabric(link.from)->index()].kind;
      const auto other = cluster_.fabrics[find_fabric(link.to)->index()].kind;
      if (kind != other || kind == partition::NicKind::kLoopback) {
        return entry.invalid("to", "fabrics of kind " + std::string(to_string(kind)) + " and " +
                                       std::string(to_string(other)) + " cannot be joined");
      }
    }
    const auto [place, added] =
        link_lines_.try_emplace(std::minmax(link.from, link.to), entry.line);
    if (added) return {};
    return entry.invalid(entry.line, "two links join '" + link.from + "' and '" + link.to +
                                         "'; the first is at line " +
                                         std::to_string(place->second) + "; make them one");
  }

  std::optional<FabricId> find_fabric(const std::string& name) const {
    for (std::uint32_t i = 0; i < cluster_.fabrics.size(); ++i) {
      if (cluster_.fabrics[i].name == name) return FabricId(i);
    }
    return std::nullopt;
  }

  const Table& root_;
  const std::string& file_;
  partition::Cluster cluster_;
  Names fabric_names_;
  Names cluster_names_;
  Names host_names_;
  std::set<std::string> used_clusters_;
  std::map<std::pair<std::string, std::string>, int> link_lines_;
  std::size_t devices_ = 0;
};

}  // namespace

Result<partition::Cluster> parse_cluster(std::string_view text, const std::string& name) {
  HOLMES_TRY_ASSIGN(const Table root, parse_document(text, name));
  return ClusterReader(root, name).read();
}

Result<partition::Cluster> load_cluster(const std::filesystem::path& file) {
  HOLMES_TRY_ASSIGN(const std::string text, read_text_file(file));
  return parse_cluster(text, file.string());
}

}  // namespace holmes::actors

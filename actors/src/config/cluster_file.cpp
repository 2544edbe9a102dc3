// Reads a cluster file: [[fabric]], [[cluster]], [[host]] with [[host.device]] and [[host.nic]].

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/assign.hpp"
#include "config/document.hpp"
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
constexpr std::uint32_t kNicsPerHostMax = 64;

/// One [[...]] entry of the file.
struct Entry {
  const std::string* file = nullptr;
  std::string_view section;  ///< "host.nic"
  int line = 0;
  const Table* table = nullptr;

  Error invalid(int at, const std::string& what) const {
    return Error(ErrorCode::kInvalidArgument, place(*file, at) + ": " + what);
  }
  /// The line of `key`, or of the entry where it is not given.
  int line_of(std::string_view key) const {
    for (const Member& member : *table) {
      if (member.key == key) return member.line;
    }
    return line;
  }
  Error invalid(std::string_view key, const std::string& what) const {
    return invalid(line_of(key),
                   "[[" + std::string(section) + "]] " + std::string(key) + ": " + what);
  }
};

struct Field {
  std::string_view name;
  Target target;
  Rule rule = {};
  bool required = false;
};

/// Fills `fields`; `children` are the names of nested entries, which are read elsewhere.
Status read_fields(const Entry& entry, const std::vector<Field>& fields,
                   const std::vector<std::string_view>& children = {}) {
  for (const Member& member : *entry.table) {
    if (std::find(children.begin(), children.end(), member.key) != children.end()) continue;
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& f) { return f.name == member.key; });
    if (field == fields.end()) {
      std::vector<std::string_view> names = children;
      for (const Field& known : fields) names.push_back(known.name);
      return entry.invalid(member.line, "unknown key '" + member.key.substr(0, 64) + "' in [[" +
                                            std::string(entry.section) + "]]" +
                                            did_you_mean(member.key, names));
    }
    if (const Status status = assign(field->target, field->rule, member.node); !status) {
      return entry.invalid(member.key, status.error().message());
    }
  }
  for (const Field& field : fields) {
    if (!field.required) continue;
    const auto given = [&](const Member& member) { return member.key == field.name; };
    if (std::none_of(entry.table->begin(), entry.table->end(), given)) {
      return entry.invalid(entry.line, "[[" + std::string(entry.section) + "]] needs the key '" +
                                           std::string(field.name) + "'");
    }
  }
  return {};
}

/// The entries [[section]] below `table`, under `key`; none is fine.
Result<std::vector<Entry>> entries(const Table& table, std::string_view key,
                                   std::string_view section, const std::string& file) {
  std::vector<Entry> found;
  for (const Member& member : table) {
    if (member.key != key) continue;
    const auto* array = std::get_if<Array>(&member.node.value);
    const auto wrong = [&](int line) {
      return Error(ErrorCode::kInvalidArgument, place(file, line) + ": '" + std::string(key) +
                                                    "' is a list: write [[" + std::string(section) +
                                                    "]] before each entry");
    };
    if (array == nullptr) return wrong(member.line);
    for (const Node& node : *array) {
      const auto* entry = std::get_if<Table>(&node.value);
      if (entry == nullptr) return wrong(node.line);
      found.push_back({&file, section, node.line, entry});
    }
  }
  return found;
}

/// Names seen so far and their lines.
class Names {
 public:
  Status add(const Entry& entry, const std::string& what, const std::string& name) {
    const int line = entry.line_of("name");
    const auto [place, added] = lines_.try_emplace(name, line);
    if (added) return {};
    return entry.invalid("name", "two " + what + " are named '" + name +
                                     "'; the first is at line " + std::to_string(place->second) +
                                     "; rename one");
  }
  bool empty() const { return lines_.empty(); }
  bool contains(const std::string& name) const { return lines_.contains(name); }
  std::string near(const std::string& name) const {
    std::vector<std::string_view> names;
    for (const auto& [known, line] : lines_) names.push_back(known);
    return did_you_mean(name, names);
  }

 private:
  std::map<std::string, int> lines_;
};

class ClusterReader {
 public:
  ClusterReader(const Table& root, const std::string& file) : root_(root), file_(file) {}

  Result<partition::Cluster> read() {
    HOLMES_TRY(check_root());
    HOLMES_TRY(read_fabrics());
    HOLMES_TRY(read_clusters());
    HOLMES_TRY(read_hosts());
    if (const Status status = partition::validate(cluster_); !status) {
      return status.error().in(file_);
    }
    return std::move(cluster_);
  }

 private:
  Status check_root() const {
    constexpr std::string_view kKnown[] = {"fabric", "cluster", "host"};
    for (const Member& member : root_) {
      if (std::find(std::begin(kKnown), std::end(kKnown), member.key) != std::end(kKnown)) continue;
      const std::string at = place(file_, member.line) + ": ";
      if (member.key == "link") {
        return Error(ErrorCode::kInvalidArgument,
                     at + "[[link]] is not supported yet; declare the network between clusters as "
                          "a [[fabric]] and give the hosts NICs on it");
      }
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
                                     {"latency_us", &fabric.latency_us, kLatencyUs, true}}));
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
                                    {"tflops", &device.tflops, {1e-6, 1e6}},
                                    {"memory_gib", &device.memory_gib, {1e-6, 1e6}}}));
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
    for (const Entry& item : list) {
      partition::Nic nic;
      std::string fabric;
      std::uint32_t count = 0;
      double gbit_s = 0;
      double latency_us = -1;
      HOLMES_TRY(read_fields(item, {{"name", &nic.name, {}, true},
                                    {"fabric", &fabric, {}, true},
                                    {"count", &count, {1, kNicsPerHostMax}},
                                    {"gbit_s", &gbit_s, kGbit},
                                    {"latency_us", &latency_us, kLatencyUs}}));
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
      HOLMES_TRY(add_nics(item, nic, count, names, host));
    }
    return {};
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

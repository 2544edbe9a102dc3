// Writes a job and a cluster as the text of their files: how a coordinator tells agents what the
// job is, and what a run folder keeps.

#include <sstream>

#include "config/config_keys.hpp"
#include "config/toml_library.hpp"

namespace holmes::actors {
namespace {

std::string absolute_path(const std::filesystem::path& path) {
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path, failed);
  return failed ? path.string() : absolute.lexically_normal().string();
}

void insert(toml::table& table, const Key& key, const Target& target) {
  std::visit(
      [&]<class T>(const T* value) {
        if constexpr (std::is_same_v<T, std::filesystem::path>) {
          // An empty one means that there is none, and is left out.
          if (!value->empty()) table.insert(key.name, absolute_path(*value));
        } else if constexpr (std::is_enum_v<T>)
          table.insert(key.name, key.rule.choices[static_cast<std::size_t>(*value)]);
        else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
          table.insert(key.name, static_cast<std::int64_t>(*value));
        else if constexpr (std::is_floating_point_v<T>)
          table.insert(key.name, static_cast<double>(*value));
        else
          table.insert(key.name, *value);
      },
      target);
}

std::string text_of(const toml::table& root) {
  std::ostringstream out;
  out << root << "\n";
  return out.str();
}

toml::table device_table(const partition::Device& device) {
  toml::table table{{"kind", device.kind},
                    {"threads", static_cast<std::int64_t>(device.threads)},
                    {"tflops", device.tflops},
                    {"memory_gib", device.memory_gib}};
  if (device.training_tflops > 0) table.insert("training_tflops", device.training_tflops);
  return table;
}

toml::table nic_table(const partition::Nic& nic, const partition::Cluster& cluster) {
  toml::table table{{"name", nic.name},
                    {"fabric", cluster.fabrics.at(nic.fabric.index()).name},
                    {"gbit_s", nic.gbit_s},
                    {"latency_us", nic.latency_us}};
  if (!nic.address.empty()) table.insert("address", nic.address);
  if (!nic.subnet.empty()) table.insert("subnet", nic.subnet);
  if (nic.gid != partition::GidKind::kUnknown) table.insert("gid", partition::to_string(nic.gid));
  if (nic.mtu_bytes > 0) table.insert("mtu_bytes", static_cast<std::int64_t>(nic.mtu_bytes));
  if (!nic.use) table.insert("use", false);
  if (!nic.port_up) table.insert("port", "down");
  if (!nic.near.empty()) {
    toml::array near;
    for (const std::uint32_t device : nic.near) near.push_back(static_cast<std::int64_t>(device));
    table.insert("near", std::move(near));
  }
  return table;
}

toml::table host_table(const partition::Host& host, const partition::Cluster& cluster) {
  toml::array devices;
  for (const auto& device : host.devices) devices.push_back(device_table(device));
  toml::array nics;
  for (const auto& nic : host.nics) nics.push_back(nic_table(nic, cluster));
  toml::table table{{"name", host.name}, {"device", std::move(devices)}};
  if (!host.cluster.empty()) table.insert("cluster", host.cluster);
  if (!host.address.empty()) table.insert("address", host.address);
  if (!nics.empty()) table.insert("nic", std::move(nics));
  return table;
}

toml::table fabric_table(const partition::Fabric& fabric) {
  toml::table table{{"name", fabric.name},
                    {"kind", partition::to_string(fabric.kind)},
                    {"gbit_s", fabric.gbit_s},
                    {"latency_us", fabric.latency_us}};
  if (fabric.trunk_gbit_s > 0) table.insert("trunk_gbit_s", fabric.trunk_gbit_s);
  if (fabric.trusted) table.insert("trusted", true);
  return table;
}

}  // namespace

std::string to_toml(const JobConfig& job) {
  Draft draft;
  draft.job = job;
  toml::table root;
  for (const Section& section : config_sections()) {
    if (section.name == "cluster") continue;
    toml::table table;
    for (const Key& key : config_keys())
      if (key.section == section.name) insert(table, key, key.target(draft));
    if (!table.empty()) root.insert(section.name, std::move(table));
  }
  return text_of(root);
}

std::string to_toml(const partition::Cluster& cluster) {
  toml::array fabrics;
  for (const auto& fabric : cluster.fabrics) fabrics.push_back(fabric_table(fabric));
  toml::array hosts;
  for (const auto& host : cluster.hosts) hosts.push_back(host_table(host, cluster));
  toml::table root;
  if (!fabrics.empty()) root.insert("fabric", std::move(fabrics));
  root.insert("host", std::move(hosts));
  toml::array links;
  for (const auto& link : cluster.links)
    links.push_back(toml::table{{"from", link.from},
                                {"to", link.to},
                                {"gbit_s", link.gbit_s},
                                {"latency_us", link.latency_us}});
  if (!links.empty()) root.insert("link", std::move(links));
  return text_of(root);
}

}  // namespace holmes::actors

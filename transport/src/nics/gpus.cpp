#include "nics/gpus.hpp"

#include <algorithm>

namespace holmes::transport::nics {

namespace {

// Class of a PCI device: display controllers of two kinds, and accelerators.
constexpr const char* kGpuClasses[] = {"0x0300", "0x0302", "0x1200"};

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < path.size();) {
    const auto end = std::min(path.find('/', at), path.size());
    if (end > at) parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace

std::vector<Gpu> read_gpus(const MachineTree& tree) {
  std::vector<Gpu> gpus;
  const std::string folder = "sys/bus/pci/devices/";
  for (const auto& address : tree.names(folder)) {
    const auto kind = tree.text(folder + address + "/class").value_or("").substr(0, 6);
    const auto vendor = tree.text(folder + address + "/vendor").value_or("");
    const bool makes_gpus = vendor == "0x10de" || vendor == "0x1002";
    if (!makes_gpus ||
        std::find(std::begin(kGpuClasses), std::end(kGpuClasses), kind) == std::end(kGpuClasses))
      continue;
    gpus.push_back({address, tree.real(folder + address),
                    tree.number(folder + address + "/numa_node").value_or(-1)});
  }
  return gpus;
}

GpuDistance distance(const Gpu& gpu, const std::string& device_path, long long numa_node) {
  const auto a = parts_of(gpu.path);
  const auto b = parts_of(device_path);
  const auto shorter = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  const auto same = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + shorter, b.begin()).first - a.begin());
  const auto bridge = std::find_if(a.begin(), a.end(), [](const std::string& part) {
    return part.starts_with("pci");  // the host bridge: "pci0000:40"
  });
  const auto bridge_at = static_cast<std::size_t>(bridge - a.begin());
  if (bridge != a.end() && same > bridge_at) {
    // Each step above the two devices is a bridge; a switch has one on top and one for each port.
    const auto apart = a.size() - same + b.size() - same;
    if (same == bridge_at + 1) return GpuDistance::kHostBridge;
    return apart <= 4 ? GpuDistance::kSwitch : GpuDistance::kSwitches;
  }
  return numa_node >= 0 && gpu.numa_node == numa_node ? GpuDistance::kNumaNode
                                                      : GpuDistance::kSystem;
}

}  // namespace holmes::transport::nics

#pragma once

// The GPUs of a machine, and how near each is to another device, by their places in the tree of
// PCI buses.

#include <string>
#include <vector>

#include "holmes/transport/nics.hpp"
#include "nics/tree.hpp"

namespace holmes::transport::nics {

struct Gpu {
  std::string pci_address;
  std::string path;
  long long numa_node = -1;
};

std::vector<Gpu> read_gpus(const MachineTree& tree);

GpuDistance distance(const Gpu& gpu, const std::string& device_path, long long numa_node);

}  // namespace holmes::transport::nics

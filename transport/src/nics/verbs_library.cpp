#include "nics/verbs_library.hpp"

#include <dlfcn.h>
#include <net/if.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <infiniband/verbs.h>

#include "nics/address.hpp"

namespace holmes::transport::nics {

namespace {

constexpr std::size_t kGidsMax = 1024;

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};

/// The functions that discovery uses.
struct Verbs {
  ibv_device** (*get_device_list)(int*) = nullptr;
  void (*free_device_list)(ibv_device**) = nullptr;
  const char* (*get_device_name)(ibv_device*) = nullptr;
  ibv_context* (*open_device)(ibv_device*) = nullptr;
  int (*close_device)(ibv_context*) = nullptr;
  int (*query_port)(ibv_context*, std::uint8_t, ibv_port_attr*) = nullptr;
  int (*query_device)(ibv_context*, ibv_device_attr*) = nullptr;
  ssize_t (*query_gid_table)(ibv_context*, ibv_gid_entry*, std::size_t, std::uint32_t,
                             std::size_t) = nullptr;
};

template <class Function>
bool look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

/// False: some function that every libibverbs has is missing.
bool look_up_all(void* library, Verbs& verbs) {
  look_up(library, "_ibv_query_gid_table", verbs.query_gid_table);  // since rdma-core 32
  return look_up(library, "ibv_get_device_list", verbs.get_device_list) &&
         look_up(library, "ibv_free_device_list", verbs.free_device_list) &&
         look_up(library, "ibv_get_device_name", verbs.get_device_name) &&
         look_up(library, "ibv_open_device", verbs.open_device) &&
         look_up(library, "ibv_close_device", verbs.close_device) &&
         look_up(library, "ibv_query_port", verbs.query_port) &&
         look_up(library, "ibv_query_device", verbs.query_device);
}

GidType type_of(std::uint32_t type) {
  if (type == IBV_GID_TYPE_ROCE_V2) return GidType::kRoceV2;
  return type == IBV_GID_TYPE_ROCE_V1 ? GidType::kRoceV1 : GidType::kInfiniBand;
}

void add_gids(const Verbs& verbs, ibv_context* context, std::vector<VerbsPort>& ports) {
  if (verbs.query_gid_table == nullptr) return;  // those in sysfs have to do
  std::vector<ibv_gid_entry> entries(kGidsMax);
  const auto count =
      verbs.query_gid_table(context, entries.data(), entries.size(), 0, sizeof(ibv_gid_entry));
  for (ssize_t i = 0; i < count; ++i) {
    const auto& entry = entries[static_cast<std::size_t>(i)];
    IpAddress address;
    std::memcpy(address.bytes.data(), entry.gid.raw, address.bytes.size());
    std::array<char, IF_NAMESIZE> name{};
    if (entry.ndev_ifindex != 0) ::if_indextoname(entry.ndev_ifindex, name.data());
    for (auto& port : ports)
      if (port.port == entry.port_num)
        port.gids.push_back(
            {entry.gid_index, address.text(), type_of(entry.gid_type), name.data()});
  }
}

std::vector<VerbsPort> ask_device(const Verbs& verbs, ibv_device* device) {
  const std::string name = verbs.get_device_name(device);
  const auto failed = [&](const std::string& what) {
    VerbsPort port;
    port.device = name;
    port.error = what + ": " + std::strerror(errno);
    return std::vector<VerbsPort>{port};
  };
  errno = 0;
  const std::unique_ptr<ibv_context, int (*)(ibv_context*)> context(verbs.open_device(device),
                                                                    verbs.close_device);
  if (context == nullptr) return failed("libibverbs cannot open it");
  ibv_device_attr about{};
  if (verbs.query_device(context.get(), &about) != 0) return failed("libibverbs cannot query it");
  std::vector<VerbsPort> ports;
  for (std::uint8_t number = 1; number <= about.phys_port_cnt; ++number) {
    ibv_port_attr attributes{};  // the function fills what older versions of it know
    VerbsPort port;
    port.device = name;
    port.port = number;
    if (verbs.query_port(context.get(), number, &attributes) != 0)
      port.error = "libibverbs cannot query the port";
    port.active = attributes.state == IBV_PORT_ACTIVE;
    port.lid = attributes.lid;
    if (attributes.active_mtu >= IBV_MTU_256 && attributes.active_mtu <= IBV_MTU_4096)
      port.mtu_bytes = 128U << attributes.active_mtu;
    ports.push_back(std::move(port));
  }
  add_gids(verbs, context.get(), ports);
  return ports;
}

}  // namespace

void ask_verbs(MachineFacts& facts) {
  const std::unique_ptr<void, CloseLibrary> library(
      ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL));
  Verbs verbs;
  if (library == nullptr || !look_up_all(library.get(), verbs)) {
    facts.verbs_error =
        "libibverbs.so.1 cannot be loaded: install libibverbs1 and "
        "ibverbs-providers to use RDMA";
    return;
  }
  int count = 0;
  errno = 0;
  ibv_device** const devices = verbs.get_device_list(&count);
  if (devices == nullptr) {
    facts.verbs_error = std::string("libibverbs has no devices: ") + std::strerror(errno);
    return;
  }
  for (int i = 0; i < count; ++i)
    for (auto& port : ask_device(verbs, devices[i])) facts.verbs.push_back(std::move(port));
  verbs.free_device_list(devices);
}

}  // namespace holmes::transport::nics

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "cuda/engine.hpp"
#include "holmes/base/assert.hpp"
#include "holmes/model/cuda.hpp"

namespace holmes::model {
namespace {

using cuda::Outcome;

/// The plugin, for as long as the process lives: CUDA does not survive being unloaded.
struct Plugin {
  cuda::PluginCount* count = nullptr;
  cuda::PluginOpen* open = nullptr;
};

constexpr const char* kPluginFile = "libholmes_cuda.so";

/// Beside the executable, where it is installed, then wherever the system looks.
std::vector<std::string> places() {
  std::vector<std::string> found;
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const auto folder = executable.parent_path();
    for (const auto& each : {folder / kPluginFile, folder / "../lib/holmes" / kPluginFile})
      if (std::filesystem::exists(each, error)) found.push_back(each.lexically_normal().string());
  }
  found.emplace_back(kPluginFile);
  return found;
}

template <class Function>
Status find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function != nullptr) return {};
  return Error(ErrorCode::kUnavailable, std::string(kPluginFile) + " has no " + name +
                                            ": it is of another version of holmes");
}

Result<Plugin> load() {
  void* library = nullptr;
  std::string reason;
  for (const auto& place : places()) {
    library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    if (reason.empty()) reason = dlerror();  // the first place is the one that should have done
  }
  if (library == nullptr)
    return Error(ErrorCode::kUnavailable,
                 "the CUDA plugin cannot be loaded: " + reason +
                     "; build holmes where the CUDA toolkit is, keep " + kPluginFile +
                     " beside the executable or in ../lib/holmes, and let LD_LIBRARY_PATH name the "
                     "folder of libcublasLt.so");
  cuda::PluginVersion* version = nullptr;
  HOLMES_TRY(find(library, cuda::kVersionSymbol, version));
  if (version() != cuda::kPluginVersion)
    return Error(ErrorCode::kUnavailable, std::string(kPluginFile) + " speaks version " +
                                              std::to_string(version()) + ", holmes version " +
                                              std::to_string(cuda::kPluginVersion) +
                                              "; install both from one build");
  Plugin plugin;
  HOLMES_TRY(find(library, cuda::kCountSymbol, plugin.count));
  HOLMES_TRY(find(library, cuda::kOpenSymbol, plugin.open));
  return plugin;
}

Result<std::uint32_t> count(const Plugin& plugin) {
  Outcome outcome;
  const std::uint32_t devices = plugin.count(&outcome);
  if (outcome.done() && devices > 0) return devices;
  const std::string reason = outcome.done() ? "CUDA shows no device" : outcome.text;
  return Error(
      ErrorCode::kUnavailable,
      "no GPU can be used: " + reason +
          "; look whether nvidia-smi lists one, and whether CUDA_VISIBLE_DEVICES hides it");
}

Result<std::unique_ptr<cuda::Device>> open(const CudaOptions& options) {
  HOLMES_TRY_ASSIGN(const Plugin plugin, load());
  HOLMES_TRY_ASSIGN(const std::uint32_t devices, count(plugin));
  if (options.device >= devices)
    return Error(ErrorCode::kUnavailable,
                 "GPU " + std::to_string(options.device) + " is asked for, and CUDA shows " +
                     std::to_string(devices) +
                     "; lower the count of the host's cuda devices, or let CUDA_VISIBLE_DEVICES "
                     "show more");
  Outcome outcome;
  const cuda::DeviceOptions chosen{options.device, options.tf32};
  std::unique_ptr<cuda::Device> device(plugin.open(&chosen, &outcome));
  if (device != nullptr) return device;
  return Error(ErrorCode::kUnavailable,
               "GPU " + std::to_string(options.device) + " cannot be opened: " + outcome.text);
}

}  // namespace

Result<std::uint32_t> cuda_device_count() {
  HOLMES_TRY_ASSIGN(const Plugin plugin, load());
  return count(plugin);
}

Result<CudaFacts> cuda_facts(std::uint32_t index) {
  HOLMES_TRY_ASSIGN(const auto device, open({.device = index}));
  cuda::DeviceFacts facts;
  device->facts(facts);
  return CudaFacts{facts.name,        facts.architecture, facts.memory_bytes,
                   facts.peak_tflops, facts.memory_gb_s,  facts.shares_memory};
}

Result<std::unique_ptr<Engine>> make_cuda_engine(const CudaOptions& options) {
  HOLMES_TRY_ASSIGN(auto device, open(options));
  return cuda::make_device_engine(std::move(device));
}

}  // namespace holmes::model

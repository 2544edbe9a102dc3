// A device of CUDA's: one stream, products by cuBLASLt, our own kernels.

#include <cstring>
#include <memory>
#include <new>

#include "cuda/gpu_team.cuh"
#include "cuda/plugin/products.hpp"

namespace holmes::model::cuda {
namespace {

class CudaDevice final : public Device {
 public:
  CudaDevice(const DeviceOptions& options, Outcome& outcome)
      : index_(static_cast<int>(options.index)) {
    if (!use(outcome) || !settle(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                                 "cudaStreamCreateWithFlags", outcome))
      return;
    products_ = std::make_unique<Products>(options.tf32, outcome);
    read_facts(outcome);
  }
  ~CudaDevice() override {
    Outcome ignored;
    if (!use(ignored)) return;
    products_.reset();
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  void facts(DeviceFacts& out) override { out = facts_; }
  void* allocate(MemoryKind kind, std::size_t bytes, Outcome& outcome) override;
  void release(MemoryKind kind, void* memory) override;
  FreeMemory free_memory() override;
  void copy(void* to, const void* from, std::size_t bytes, Outcome& outcome) override;
  void clear(void* memory, std::size_t bytes, Outcome& outcome) override;
  void multiply(const Product& product, Outcome& outcome) override;
  void launch(KernelId id, const void* kernel, Outcome& outcome) override;
  void wait(Outcome& outcome) override;

 private:
  /// CUDA's current device is a thread's; calls come from several.
  bool use(Outcome& outcome) { return settle(cudaSetDevice(index_), "cudaSetDevice", outcome); }
  void read_facts(Outcome& outcome);
  int attribute(cudaDeviceAttr which, Outcome& outcome) const;
  template <class Kernel>
  void start(const Kernel& kernel, Outcome& outcome);

  const int index_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Products> products_;
  DeviceFacts facts_;
};

int CudaDevice::attribute(cudaDeviceAttr which, Outcome& outcome) const {
  int value = 0;
  settle(cudaDeviceGetAttribute(&value, which, index_), "cudaDeviceGetAttribute", outcome);
  return value;
}

/// fp32 multiply-and-adds of a processor in one cycle.
int lanes_of(int major, int minor) {
  return major == 8 && minor == 0 ? 64 : 128;
}

void CudaDevice::read_facts(Outcome& outcome) {
  cudaDeviceProp properties = {};
  if (!settle(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties", outcome))
    return;
  std::snprintf(facts_.name, sizeof facts_.name, "cuda device %d (%.80s)", index_, properties.name);
  std::snprintf(facts_.architecture, sizeof facts_.architecture, "sm_%d%d", properties.major,
                properties.minor);
  facts_.memory_bytes = properties.totalGlobalMem;
  facts_.processors = static_cast<std::uint32_t>(properties.multiProcessorCount);
  const double clock_hz = 1e3 * attribute(cudaDevAttrClockRate, outcome);
  facts_.peak_tflops = 2e-12 * properties.multiProcessorCount *
                       lanes_of(properties.major, properties.minor) * clock_hz;
  // Two transfers a cycle.
  facts_.memory_gb_s = 2e-9 * 1e3 * attribute(cudaDevAttrMemoryClockRate, outcome) *
                       attribute(cudaDevAttrGlobalMemoryBusWidth, outcome) / 8;
  facts_.shares_memory = attribute(cudaDevAttrConcurrentManagedAccess, outcome) != 0;
}

void* CudaDevice::allocate(MemoryKind kind, std::size_t bytes, Outcome& outcome) {
  if (!use(outcome)) return nullptr;
  void* memory = nullptr;
  if (kind == MemoryKind::kDevice)
    return settle(cudaMalloc(&memory, bytes), "cudaMalloc", outcome) ? memory : nullptr;
  if (kind == MemoryKind::kPinned)
    return settle(cudaMallocHost(&memory, bytes), "cudaMallocHost", outcome) ? memory : nullptr;
  if (!settle(cudaMallocManaged(&memory, bytes), "cudaMallocManaged", outcome)) return nullptr;
  cudaMemLocation here = {};
  here.type = cudaMemLocationTypeDevice;
  here.id = index_;
  // Written to at once, so that it lies on the device and counts there.
  if (settle(cudaMemAdvise(memory, bytes, cudaMemAdviseSetPreferredLocation, here), "cudaMemAdvise",
             outcome) &&
      settle(cudaMemsetAsync(memory, 0, bytes, stream_), "cudaMemsetAsync", outcome) &&
      settle(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", outcome))
    return memory;
  cudaFree(memory);
  return nullptr;
}

void CudaDevice::release(MemoryKind kind, void* memory) {
  Outcome ignored;  // nothing can be done about it, and the next call says it again
  if (!use(ignored)) return;
  if (kind == MemoryKind::kPinned)
    cudaFreeHost(memory);
  else
    cudaFree(memory);
}

FreeMemory CudaDevice::free_memory() {
  Outcome ignored;
  std::size_t free = 0;
  std::size_t total = 0;
  if (use(ignored)) settle(cudaMemGetInfo(&free, &total), "cudaMemGetInfo", ignored);
  return {free, total};
}

void CudaDevice::copy(void* to, const void* from, std::size_t bytes, Outcome& outcome) {
  if (use(outcome) && settle(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_),
                             "cudaMemcpyAsync", outcome))
    wait(outcome);
}

void CudaDevice::clear(void* memory, std::size_t bytes, Outcome& outcome) {
  if (use(outcome)) settle(cudaMemsetAsync(memory, 0, bytes, stream_), "cudaMemsetAsync", outcome);
}

void CudaDevice::multiply(const Product& product, Outcome& outcome) {
  if (use(outcome)) products_->multiply(product, stream_, outcome);
}

template <class Kernel>
void CudaDevice::start(const Kernel& kernel, Outcome& outcome) {
  const Teams teams = kernel.teams();
  if (teams.x == 0 || teams.y == 0 || teams.z == 0) return;
  const auto shared = static_cast<int>(kernel.shared_bytes());
  constexpr int kWithoutAsking = 48 * 1024;
  if (shared > kWithoutAsking &&
      !settle(cudaFuncSetAttribute(run_on_gpu<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   shared),
              "cudaFuncSetAttribute", outcome))
    return;
  run_on_gpu<<<dim3(teams.x, teams.y, teams.z), Kernel::kThreads, static_cast<std::size_t>(shared),
               stream_>>>(kernel);
  settle(cudaGetLastError(), "starting a kernel", outcome);
}

void CudaDevice::launch(KernelId id, const void* kernel, Outcome& outcome) {
  if (!use(outcome)) return;
  with_kernel(id, kernel, [&](const auto& each) { start(each, outcome); });
}

void CudaDevice::wait(Outcome& outcome) {
  if (use(outcome)) settle(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", outcome);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) std::uint32_t holmes_cuda_version() {
  return kPluginVersion;
}

extern "C" __attribute__((visibility("default"))) std::uint32_t holmes_cuda_count(
    Outcome* outcome) {
  int count = 0;
  settle(cudaGetDeviceCount(&count), "cudaGetDeviceCount", *outcome);
  return outcome->done() ? static_cast<std::uint32_t>(count) : 0;
}

extern "C" __attribute__((visibility("default"))) Device* holmes_cuda_open(
    const DeviceOptions* options, Outcome* outcome) {
  auto device = std::make_unique<CudaDevice>(*options, *outcome);
  return outcome->done() ? device.release() : nullptr;
}

}  // namespace holmes::model::cuda

#pragma once

// A team as a CUDA block; see team.hpp. Only the plugin includes this.

#include "cuda/team.hpp"

namespace holmes::model::cuda {

class GpuTeam {
 public:
  template <class T>
  struct Local {
    __device__ T& operator[](int) { return value; }
    T value;
  };

  __device__ std::size_t x() const { return blockIdx.x; }
  __device__ std::size_t y() const { return blockIdx.y; }
  __device__ std::size_t z() const { return blockIdx.z; }
  template <class T>
  __device__ T* shared() {
    extern __shared__ double memory[];
    return reinterpret_cast<T*>(memory);
  }
  template <class Phase>
  __device__ void each(const Phase& phase) {
    phase(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
  __device__ void barrier() { __syncthreads(); }
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads) run_on_gpu(const Kernel kernel) {
  GpuTeam team;
  kernel.run(team);
}

}  // namespace holmes::model::cuda

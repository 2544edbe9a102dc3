#pragma once

// What CUDA and cuBLASLt return, as an Outcome.

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdio>

#include "cuda/device.hpp"

namespace holmes::model::cuda {

/// Whether `status` is fine; if not, the outcome says what was called and what came of it. An
/// outcome that has failed already stays.
inline bool settle(cudaError_t status, const char* call, Outcome& outcome) {
  if (status == cudaSuccess) return true;
  if (!outcome.done()) return false;
  outcome.code =
      status == cudaErrorMemoryAllocation ? Outcome::Code::kOutOfMemory : Outcome::Code::kFailed;
  std::snprintf(outcome.text, sizeof outcome.text, "%s: %s (%s)", call, cudaGetErrorString(status),
                cudaGetErrorName(status));
  (void)cudaGetLastError();  // or the next call that is fine would seem to fail
  return false;
}

inline bool settle(cublasStatus_t status, const char* call, Outcome& outcome) {
  if (status == CUBLAS_STATUS_SUCCESS) return true;
  if (!outcome.done()) return false;
  outcome.code =
      status == CUBLAS_STATUS_ALLOC_FAILED ? Outcome::Code::kOutOfMemory : Outcome::Code::kFailed;
  std::snprintf(outcome.text, sizeof outcome.text, "%s: cuBLASLt status %d (%s)", call,
                static_cast<int>(status), cublasLtGetStatusString(status));
  return false;
}

}  // namespace holmes::model::cuda

#pragma once

// Every kernel, by number: what passes between the engine and the plugin.

#include "cuda/kernels/attention.hpp"
#include "cuda/kernels/attention_backward.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/kernels/norm.hpp"
#include "cuda/kernels/reduce.hpp"
#include "cuda/kernels/tokens.hpp"

namespace holmes::model::cuda {

using AttentionForward64 = AttentionForwardKernel<4>;
using AttentionForward128 = AttentionForwardKernel<8>;
using AttentionForward256 = AttentionForwardKernel<16>;
using AttentionQueries64 = AttentionQueriesKernel<4>;
using AttentionQueries128 = AttentionQueriesKernel<8>;
using AttentionQueries256 = AttentionQueriesKernel<16>;
using AttentionKeys64 = AttentionKeysKernel<4>;
using AttentionKeys128 = AttentionKeysKernel<8>;
using AttentionKeys256 = AttentionKeysKernel<16>;
constexpr std::size_t kHeadWidthMax = 256;

#define HOLMES_EACH_KERNEL(apply)                                                              \
  apply(NormKernel) apply(NormAgainKernel) apply(NormBackwardKernel) apply(ColumnRunsKernel)   \
      apply(AddRunsKernel) apply(ChunkSumsKernel) apply(GeluKernel) apply(GeluBackwardKernel)  \
          apply(SwigluKernel) apply(SwigluBackwardKernel) apply(RotateKernel) apply(AddKernel) \
              apply(AdamWKernel) apply(EmbedKernel) apply(EmbedBackwardKernel)                 \
                  apply(PositionsBackwardKernel) apply(CrossEntropyKernel)                     \
                      apply(AttentionForward64) apply(AttentionForward128)                     \
                          apply(AttentionForward256) apply(AttentionDeltaKernel)               \
                              apply(AttentionQueries64) apply(AttentionQueries128)             \
                                  apply(AttentionQueries256) apply(AttentionKeys64)            \
                                      apply(AttentionKeys128) apply(AttentionKeys256)

enum class KernelId : std::uint32_t {
#define HOLMES_NAME_KERNEL(Kernel) k##Kernel,
  HOLMES_EACH_KERNEL(HOLMES_NAME_KERNEL)
#undef HOLMES_NAME_KERNEL
};

template <class Kernel>
struct IdOf;
#define HOLMES_NUMBER_KERNEL(Kernel)                       \
  template <>                                              \
  struct IdOf<Kernel> {                                    \
    static constexpr KernelId value = KernelId::k##Kernel; \
  };
HOLMES_EACH_KERNEL(HOLMES_NUMBER_KERNEL)
#undef HOLMES_NUMBER_KERNEL

/// Calls body(kernel) with the arguments behind `kernel` as the struct that `id` says they are.
template <class Body>
void with_kernel(KernelId id, const void* kernel, const Body& body) {
  switch (id) {
#define HOLMES_CALL_KERNEL(Kernel) \
  case KernelId::k##Kernel:        \
    return body(*static_cast<const Kernel*>(kernel));
    HOLMES_EACH_KERNEL(HOLMES_CALL_KERNEL)
#undef HOLMES_CALL_KERNEL
  }
}

}  // namespace holmes::model::cuda

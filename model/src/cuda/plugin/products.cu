#include "cuda/plugin/products.hpp"

#include <cstdint>

#include "cuda/column_major.hpp"

namespace holmes::model::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

/// The largest power of two, up to 16, that divides the address: wide loads ask for 16.
unsigned alignment_of(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (unsigned bytes = 16; bytes > 4; bytes /= 2)
    if (address % bytes == 0) return bytes;
  return 4;
}

struct Preference {
  cublasLtMatmulPreference_t value = nullptr;
  ~Preference() {
    if (value != nullptr) cublasLtMatmulPreferenceDestroy(value);
  }
  template <class T>
  bool set(cublasLtMatmulPreferenceAttributes_t attribute, const T& to, Outcome& outcome) {
    return settle(cublasLtMatmulPreferenceSetAttribute(value, attribute, &to, sizeof to),
                  "cublasLtMatmulPreferenceSetAttribute", outcome);
  }
};

template <class T>
bool set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const T& to,
         Outcome& outcome) {
  return settle(cublasLtMatmulDescSetAttribute(operation, attribute, &to, sizeof to),
                "cublasLtMatmulDescSetAttribute", outcome);
}

bool make_layout(cublasLtMatrixLayout_t& layout, std::size_t rows, std::size_t columns,
                 std::size_t stride, Outcome& outcome) {
  return settle(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, rows, columns,
                                           static_cast<std::int64_t>(stride)),
                "cublasLtMatrixLayoutCreate", outcome);
}

cublasOperation_t turned(const ColumnMajor::Operand& operand) {
  return operand.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

}  // namespace

Products::Products(bool tf32, Outcome& outcome) : tf32_(tf32) {
  if (!settle(cublasLtCreate(&handle_), "cublasLtCreate", outcome)) return;
  settle(cudaMalloc(&workspace_, kWorkspaceBytes), "cudaMalloc of cuBLASLt's workspace", outcome);
}

Products::~Products() {
  for (const auto& [key, made] : made_) destroy(made);
  if (workspace_ != nullptr) cudaFree(workspace_);
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

void Products::destroy(const Made& made) {
  for (const auto layout : {made.left, made.right, made.out})
    if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
  if (made.operation != nullptr) cublasLtMatmulDescDestroy(made.operation);
}

Products::Key Products::key_of(const Product& p) {
  const unsigned kind = (p.left.transposed ? 1U : 0U) | (p.right.transposed ? 2U : 0U) |
                        (p.bias != nullptr ? 4U : 0U) | (p.added != nullptr ? 8U : 0U) |
                        (p.added == p.out ? 16U : 0U);
  unsigned alignment = 0;
  for (const void* pointer :
       {static_cast<const void*>(p.left.data), static_cast<const void*>(p.right.data),
        static_cast<const void*>(p.added), static_cast<const void*>(p.out),
        static_cast<const void*>(p.bias)})
    alignment = alignment * 32 + alignment_of(pointer);
  return {p.rows, p.columns, p.inner, p.left.stride, p.right.stride, p.out_stride, kind, alignment};
}

Products::Made Products::make(const Product& p, Outcome& outcome) const {
  Made made;
  const auto compute = tf32_ ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  if (!settle(cublasLtMatmulDescCreate(&made.operation, compute, CUDA_R_32F),
              "cublasLtMatmulDescCreate", outcome))
    return made;
  const ColumnMajor turn = column_major(p);
  set(made.operation, CUBLASLT_MATMUL_DESC_TRANSA, turned(turn.first), outcome);
  set(made.operation, CUBLASLT_MATMUL_DESC_TRANSB, turned(turn.second), outcome);
  const auto epilogue = p.bias != nullptr ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  set(made.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue, outcome);
  if (p.bias != nullptr) set(made.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias, outcome);
  make_layout(made.right, turn.first.rows, turn.first.columns, turn.first.stride, outcome);
  make_layout(made.left, turn.second.rows, turn.second.columns, turn.second.stride, outcome);
  make_layout(made.out, turn.rows, turn.columns, p.out_stride, outcome);
  if (outcome.done()) choose(p, made, outcome);
  return made;
}

void Products::choose(const Product& p, Made& made, Outcome& outcome) const {
  Preference preference;
  if (!settle(cublasLtMatmulPreferenceCreate(&preference.value), "cublasLtMatmulPreferenceCreate",
              outcome))
    return;
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes, outcome);
  // Not "in place", which adds parts in the order in which they are done.
  const std::uint32_t schemes =
      CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes, outcome);
  const std::uint32_t right = alignment_of(p.right.data);
  const std::uint32_t left = alignment_of(p.left.data);
  const std::uint32_t added = p.added == nullptr ? alignment_of(p.out) : alignment_of(p.added);
  const std::uint32_t out = alignment_of(p.out);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, right, outcome);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, left, outcome);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, added, outcome);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, out, outcome);
  if (!outcome.done()) return;
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  if (!settle(
          cublasLtMatmulAlgoGetHeuristic(handle_, made.operation, made.right, made.left, made.out,
                                         made.out, preference.value, 1, &result, &found),
          "cublasLtMatmulAlgoGetHeuristic", outcome))
    return;
  if (found == 0) {
    settle(CUBLAS_STATUS_NOT_SUPPORTED, "no algorithm for a product of this shape", outcome);
    return;
  }
  made.algorithm = result.algo;
}

void Products::multiply(const Product& p, cudaStream_t stream, Outcome& outcome) {
  if (p.rows == 0 || p.columns == 0) return;
  const Key key = key_of(p);
  auto at = made_.find(key);
  if (at == made_.end()) {
    const Made made = make(p, outcome);
    if (!outcome.done()) {
      destroy(made);
      return;
    }
    at = made_.emplace(key, made).first;
  }
  const Made& made = at->second;
  if (p.bias != nullptr && !set(made.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias, outcome))
    return;
  const float beta = p.added == nullptr ? 0.0F : 1.0F;
  const float* added = p.added == nullptr ? p.out : p.added;
  settle(cublasLtMatmul(handle_, made.operation, &p.scale, p.right.data, made.right, p.left.data,
                        made.left, &beta, added, made.out, p.out, made.out, &made.algorithm,
                        workspace_, kWorkspaceBytes, stream),
         "cublasLtMatmul", outcome);
}

}  // namespace holmes::model::cuda

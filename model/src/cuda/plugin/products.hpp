#pragma once

// Products of matrices by cuBLASLt, in fp32. For each shape the library's first choice is taken
// once and kept, among algorithms whose results do not depend on timing.

#include <map>
#include <tuple>

#include "cuda/plugin/status.hpp"

namespace holmes::model::cuda {

class Products {
 public:
  Products(bool tf32, Outcome& outcome);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  void multiply(const Product& product, cudaStream_t stream, Outcome& outcome);

 private:
  /// What an algorithm is chosen by: sizes, strides, what is transposed or added, and how pointers
  /// are aligned.
  using Key = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t,
                         std::size_t, unsigned, unsigned>;
  /// A product of one shape, made once.
  struct Made {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t left = nullptr;
    cublasLtMatrixLayout_t right = nullptr;
    cublasLtMatrixLayout_t out = nullptr;
    cublasLtMatmulAlgo_t algorithm = {};
  };

  static Key key_of(const Product& product);
  Made make(const Product& product, Outcome& outcome) const;
  void choose(const Product& product, Made& made, Outcome& outcome) const;
  static void destroy(const Made& made);

  const bool tf32_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, Made> made_;
};

}  // namespace holmes::model::cuda

#pragma once

// What the layers of every engine have in common: their tensors, sizes and checks of arguments.

#include <utility>

#include "gpt/parameters.hpp"
#include "gpt/shape.hpp"
#include "holmes/base/assert.hpp"
#include "holmes/model/layer.hpp"

namespace holmes::model {

class LayerBase : public Layer {
 public:
  LayerBase(Dims dims, std::vector<ParameterSpec> specs)
      : dims_(dims), specs_(std::move(specs)), parameter_count_(total_count(specs_)) {}

  const std::vector<ParameterSpec>& parameters() const final { return specs_; }
  std::size_t parameter_count() const final { return parameter_count_; }

 protected:
  enum class Kind { kEmbedding, kBlock, kHead };

  void check(Kind kind, const ForwardArgs& args) const;
  void check(Kind kind, const BackwardArgs& args) const;

  Dims dims_;
  std::vector<ParameterSpec> specs_;

 private:
  /// Tokens and targets come from files: one out of range would write outside the tables.
  void check_tokens(std::span<const std::int32_t> tokens) const;

  std::size_t parameter_count_;
};

}  // namespace holmes::model

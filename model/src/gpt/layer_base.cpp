#include "gpt/layer_base.hpp"

namespace holmes::model {

void LayerBase::check_tokens(std::span<const std::int32_t> tokens) const {
  HOLMES_ASSERT(tokens.size() == dims_.rows(), "tokens or targets of another shape");
  for (const std::int32_t token : tokens)
    HOLMES_ASSERT(token >= 0 && static_cast<std::size_t>(token) < dims_.V,
                  "a token outside the vocabulary");
}

void LayerBase::check(Kind kind, const ForwardArgs& args) const {
  const std::size_t activations = dims_.rows() * dims_.C;
  HOLMES_ASSERT(args.parameters.size() == parameter_count_, "parameters of another layer");
  HOLMES_ASSERT(args.stash.size() >= stash_bytes(), "stash too small");
  if (kind == Kind::kEmbedding)
    check_tokens(args.tokens);
  else
    HOLMES_ASSERT(args.input.size() == activations, "input of another shape");
  if (kind == Kind::kHead) {
    check_tokens(args.targets);
    HOLMES_ASSERT(args.loss != nullptr, "nowhere to put the loss");
  } else {
    HOLMES_ASSERT(args.output.size() == activations, "output of another shape");
  }
}

void LayerBase::check(Kind kind, const BackwardArgs& args) const {
  const std::size_t activations = dims_.rows() * dims_.C;
  HOLMES_ASSERT(args.parameters.size() == parameter_count_, "parameters of another layer");
  HOLMES_ASSERT(args.gradients.size() == parameter_count_, "gradients of another layer");
  HOLMES_ASSERT(args.stash.size() >= stash_bytes(), "stash too small");
  if (kind == Kind::kEmbedding) {
    check_tokens(args.tokens);
  } else {
    HOLMES_ASSERT(args.input.size() == activations, "input of another shape");
    HOLMES_ASSERT(args.input_gradient.size() == activations, "input gradient of another shape");
  }
  if (kind == Kind::kHead)
    check_tokens(args.targets);
  else
    HOLMES_ASSERT(args.output_gradient.size() == activations, "output gradient of another shape");
}

}  // namespace holmes::model

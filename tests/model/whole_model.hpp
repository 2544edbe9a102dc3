#pragma once

// All layers of a model in one place, with the memory that a stage and its replica would own:
// what tests and benchmarks drive an engine with. Only public headers are used.

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "holmes/base/buffer.hpp"
#include "holmes/model/gpt.hpp"
#include "holmes/model/optimizer.hpp"

namespace holmes::model {

inline Buffer allocate(std::size_t bytes, BufferPool* pool) {
  return pool == nullptr ? Buffer::allocate(bytes) : pool->acquire(bytes).value();
}

/// Zeroed, aligned floats, of the pool if there is one.
class Floats {
 public:
  explicit Floats(std::size_t count, BufferPool* pool = nullptr)
      : buffer_(allocate(count * sizeof(float), pool)) {
    fill(0);
  }
  std::span<float> span() { return buffer_.mutable_as<float>(); }
  void fill(float value) {
    for (float& each : span()) each = value;
  }

 private:
  Buffer buffer_;
};

/// One layer with its arrays.
struct OwnedLayer {
  std::unique_ptr<Layer> layer;
  Floats parameters, gradients, exp_avg, exp_avg_sq;
  Buffer stash;

  OwnedLayer(std::unique_ptr<Layer> owned, BufferPool* pool)
      : layer(std::move(owned)),
        parameters(layer->parameter_count(), pool),
        gradients(layer->parameter_count(), pool),
        exp_avg(layer->parameter_count(), pool),
        exp_avg_sq(layer->parameter_count(), pool),
        stash(allocate(layer->stash_bytes(), pool)) {}
};

/// Its memory is the engine's, if that has any.
class WholeModel {
 public:
  WholeModel(const GptConfig& config, const MicroBatchShape& shape, Engine& engine)
      : tokens_(std::size_t{shape.samples} * shape.tokens),
        activations_count_(tokens_ * config.channels) {
    if (auto memory = engine.memory()) pool_.emplace(~std::size_t{0}, std::move(memory));
    BufferPool* pool = pool_ ? &*pool_ : nullptr;
    for (auto& layer : make_layers(config, whole_model(config), shape, engine))
      layers_.emplace_back(std::move(layer), pool);
    for (std::size_t i = 0; i + 1 < layers_.size(); ++i)
      activations_.emplace_back(activations_count_, pool);
    for (int i = 0; i < 2; ++i) activation_gradients_.emplace_back(activations_count_, pool);
  }

  std::size_t token_count() const { return tokens_; }
  std::vector<OwnedLayer>& layers() { return layers_; }
  OwnedLayer& embedding() { return layers_.front(); }
  OwnedLayer& head() { return layers_.back(); }
  /// Input of the head after forward().
  std::span<const float> head_input() { return activations_.back().span(); }

  void initialise_all(std::uint64_t seed) {
    for (auto& each : layers_) initialise(each.layer->parameters(), seed, each.parameters.span());
  }
  void zero_gradients() {
    for (auto& each : layers_) each.gradients.fill(0);
  }

  float forward(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets) {
    float loss = 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      auto& each = layers_[i];
      each.layer->forward(
          {.parameters = each.parameters.span(),
           .input = input_of(i),
           .output = i + 1 < layers_.size() ? activations_[i].span() : std::span<float>(),
           .stash = each.stash.mutable_bytes(),
           .tokens = tokens,
           .targets = targets,
           .loss = &loss});
    }
    return loss;
  }

  void backward(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets,
                float loss_scale) {
    for (std::size_t i = layers_.size(); i-- > 0;) {
      auto& each = layers_[i];
      const bool last = i + 1 == layers_.size();
      each.layer->backward(
          {.parameters = each.parameters.span(),
           .input = input_of(i),
           .stash = each.stash.bytes(),
           .output_gradient =
               last ? std::span<const float>() : activation_gradients_[(i + 1) % 2].span(),
           .input_gradient = i == 0 ? std::span<float>() : activation_gradients_[i % 2].span(),
           .gradients = each.gradients.span(),
           .tokens = tokens,
           .targets = targets,
           .loss_scale = loss_scale});
    }
  }

  /// Adds the gradient of the embedding's copy to the head's, as the end of a step
  /// does; nothing where the head is untied.
  void merge_tied_gradients() {
    const auto tied = tied_part(embedding());
    if (!tied.tied_copy) return;
    add(head().gradients.span().subspan(output_table().offset, tied.count),
        embedding().gradients.span().subspan(tied.offset, tied.count));
  }
  /// Norm over all gradients but those of the tied copy, which were merged.
  double gradient_norm() {
    double sum = 0;
    for (auto& each : layers_)
      for (const Chunk& chunk : chunks_of(each.layer->parameters()))
        if (!chunk.tied_copy)
          sum += sum_of_squares(each.gradients.span().subspan(chunk.offset, chunk.count));
    return std::sqrt(sum);
  }
  /// Merges, clips and updates; then the copy takes the head's values.
  double update(const AdamW& config, std::uint64_t step, float rate, double max_norm) {
    merge_tied_gradients();
    const double norm = gradient_norm();
    const float factor = clip_factor(norm, max_norm);
    for (auto& each : layers_)
      for (const Chunk& chunk : chunks_of(each.layer->parameters())) {
        if (chunk.tied_copy) continue;
        adamw(config, step, rate, factor, chunk.decay, part(each.parameters, chunk),
              part(each.gradients, chunk), part(each.exp_avg, chunk), part(each.exp_avg_sq, chunk));
      }
    copy_tied_values();
    return norm;
  }
  /// The same by the engine.
  double update_on(Engine& engine, const AdamW& config, std::uint64_t step, float rate,
                   double max_norm) {
    const auto tied = tied_part(embedding());
    if (tied.tied_copy)
      engine.add(head().gradients.span().subspan(output_table().offset, tied.count),
                 embedding().gradients.span().subspan(tied.offset, tied.count));
    double sum = 0;
    for (auto& each : layers_) {
      const auto chunks = chunks_of(each.layer->parameters());
      std::vector<double> squares(chunks.size());
      engine.sums_of_squares(each.gradients.span(), chunks, squares);
      for (std::size_t i = 0; i < chunks.size(); ++i)
        if (!chunks[i].tied_copy) sum += squares[i];
    }
    const double norm = std::sqrt(sum);
    const float factor = clip_factor(norm, max_norm);
    for (auto& each : layers_)
      for (const Chunk& chunk : chunks_of(each.layer->parameters()))
        if (!chunk.tied_copy)
          engine.adamw(config, {step, rate, factor, chunk.decay},
                       {part(each.parameters, chunk), part(each.gradients, chunk),
                        part(each.exp_avg, chunk), part(each.exp_avg_sq, chunk)});
    copy_tied_values();
    return norm;
  }
  void copy_tied_values() {
    const auto tied = tied_part(embedding());
    if (!tied.tied_copy) return;
    const auto from = head().parameters.span().subspan(output_table().offset, tied.count);
    std::memcpy(embedding().parameters.span().data() + tied.offset, from.data(), from.size_bytes());
  }

 private:
  static std::span<float> part(Floats& floats, const Chunk& chunk) {
    return floats.span().subspan(chunk.offset, chunk.count);
  }
  static const ParameterSpec& tied_part(const OwnedLayer& each) {
    return each.layer->parameters().front();
  }
  const ParameterSpec& output_table() { return head().layer->parameters().back(); }
  std::span<const float> input_of(std::size_t i) {
    return i == 0 ? std::span<const float>() : activations_[i - 1].span();
  }

  std::size_t tokens_;
  std::size_t activations_count_;
  std::optional<BufferPool> pool_;
  std::vector<OwnedLayer> layers_;
  std::vector<Floats> activations_;
  std::vector<Floats> activation_gradients_;
};

}  // namespace holmes::model

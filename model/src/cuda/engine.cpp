#include "cuda/engine.hpp"

#include <limits>

#include "cuda/layers.hpp"
#include "holmes/model/optimizer.hpp"
#include "optimizer/factors.hpp"

namespace holmes::model::cuda {
namespace {

class DeviceEngine final : public Engine {
 public:
  explicit DeviceEngine(std::unique_ptr<Device> device) : session_(std::move(device)) {}

  std::unique_ptr<Layer> make_embedding(const GptConfig& config,
                                        const MicroBatchShape& shape) override {
    return std::make_unique<EmbeddingLayer>(session_, config, shape);
  }
  std::unique_ptr<Layer> make_block(const GptConfig& config, const MicroBatchShape& shape,
                                    std::uint32_t index) override {
    HOLMES_ASSERT(supports(config), "a block that the device does not compute");
    if (config.family == Family::kGpt2)
      return std::make_unique<BlockLayer>(session_, config, shape, index);
    return std::make_unique<LlamaBlockLayer>(session_, config, shape, index,
                                             rotary_for(config, shape.tokens));
  }
  std::unique_ptr<Layer> make_head(const GptConfig& config, const MicroBatchShape& shape) override {
    return std::make_unique<HeadLayer>(session_, config, shape);
  }
  void logits(const GptConfig& config, std::span<const float> head_parameters,
              std::span<const float> input, std::span<float> out) override;

  Status supports(const GptConfig& config) const override;
  Status status() const override { return session_.status(); }
  std::string arithmetic() const override {
    return std::string("cuda ") + session_.facts().architecture;
  }
  std::shared_ptr<BufferMemory> memory() override { return session_.shared(); }
  std::shared_ptr<BufferMemory> payload_memory() override { return session_.pinned(); }

  void clear(std::span<float> values) override;
  void add(std::span<float> destination, std::span<const float> source) override;
  void sums_of_squares(std::span<const float> values, std::span<const Chunk> chunks,
                       std::span<double> sums) override;
  void adamw(const AdamW& config, const AdamWStep& step, const AdamWArrays& arrays) override;

 private:
  std::shared_ptr<const DeviceRotary> rotary_for(const GptConfig& config, std::size_t positions);

  Session session_;
  std::shared_ptr<const DeviceRotary> rotary_;  ///< Of the last Llama's blocks.
};

Status DeviceEngine::supports(const GptConfig& config) const {
  if (config.head_width() <= kHeadWidthMax) return {};
  return Error(ErrorCode::kInvalidArgument,
               "a head has " + std::to_string(config.head_width()) +
                   " channels (model.head_channels, or model.channels / model.heads); on a GPU "
                   "at most " +
                   std::to_string(kHeadWidthMax) + " are supported, so take more heads");
}

std::shared_ptr<const DeviceRotary> DeviceEngine::rotary_for(const GptConfig& config,
                                                             std::size_t positions) {
  if (rotary_ && rotary_->table.is_for(config.rope, config.head_width(), positions)) return rotary_;
  const Operation operation(session_, "rotary embeddings");
  RotaryTable table(config.rope, config.head_width(), positions);
  auto cosines = session_.floats(table.cosines.size());
  auto sines = session_.floats(table.sines.size());
  session_.copy(cosines.as(), table.cosines.data(), table.cosines.size() * sizeof(float));
  session_.copy(sines.as(), table.sines.data(), table.sines.size() * sizeof(float));
  rotary_ = std::make_shared<const DeviceRotary>(
      DeviceRotary{std::move(table), std::move(cosines), std::move(sines)});
  return rotary_;
}

void DeviceEngine::logits(const GptConfig& config, std::span<const float> head_parameters,
                          std::span<const float> input, std::span<float> out) {
  const std::size_t rows = input.size() / config.channels;
  HOLMES_ASSERT(input.size() == rows * config.channels && out.size() == rows * config.vocabulary,
                "logits of another shape");
  HeadLayer head(session_, config, {.samples = 1, .tokens = static_cast<std::uint32_t>(rows)});
  HOLMES_ASSERT(head_parameters.size() == head.parameter_count(), "parameters of another head");
  const Operation operation(session_, "logits");
  const Reads<float> p(session_, head_parameters);
  const Reads<float> x(session_, input);
  const Writes<float> y(session_, out);
  head.logits(rows, p.data(), x.data(), y.data());
}

void DeviceEngine::clear(std::span<float> values) {
  if (!session_.shared()->is_in_place(values.data())) return Engine::clear(values);
  const Operation operation(session_, "clearing gradients");
  session_.clear(values.data(), values.size_bytes());
}

void DeviceEngine::add(std::span<float> destination, std::span<const float> source) {
  HOLMES_ASSERT(destination.size() == source.size(), "spans of different sizes are added");
  const Operation operation(session_, "adding gradients");
  const Reads<float> from(session_, source);
  const Writes<float> to(session_, destination, Writes<float>::Before::kKept);
  session_.launch(AddKernel{source.size(), to.data(), from.data()});
}

void DeviceEngine::sums_of_squares(std::span<const float> values, std::span<const Chunk> chunks,
                                   std::span<double> sums) {
  // Had the device failed, the step must not look as if it were fine.
  std::fill(sums.begin(), sums.end(), std::numeric_limits<double>::quiet_NaN());
  std::vector<ChunkSumsKernel::Range> ranges;
  ranges.reserve(chunks.size());
  for (const auto& chunk : chunks) {
    HOLMES_ASSERT(chunk.offset + chunk.count <= values.size(), "a chunk beyond the values");
    ranges.push_back({chunk.offset, chunk.count});
  }
  const Operation operation(session_, "the norm of gradients");
  const Reads<float> from(session_, values);
  chunk_sums(session_, ranges, from.data(), true, sums);
}

void DeviceEngine::adamw(const AdamW& config, const AdamWStep& step, const AdamWArrays& arrays) {
  const std::size_t count = arrays.parameters.size();
  HOLMES_ASSERT(arrays.gradients.size() == count && arrays.exp_avg.size() == count &&
                    arrays.exp_avg_sq.size() == count,
                "an update's spans have different sizes");
  const Operation operation(session_, "AdamW");
  const auto kept = Writes<float>::Before::kKept;
  const Reads<float> gradients(session_, arrays.gradients);
  const Writes<float> parameters(session_, arrays.parameters, kept);
  const Writes<float> exp_avg(session_, arrays.exp_avg, kept);
  const Writes<float> exp_avg_sq(session_, arrays.exp_avg_sq, kept);
  session_.launch(AdamWKernel{adamw_factors(config, step), count, parameters.data(),
                              gradients.data(), exp_avg.data(), exp_avg_sq.data()});
}

}  // namespace

std::unique_ptr<Engine> make_device_engine(std::unique_ptr<Device> device) {
  return std::make_unique<DeviceEngine>(std::move(device));
}

}  // namespace holmes::model::cuda

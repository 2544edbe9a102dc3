#include <algorithm>
#include <string>

#include "holmes/base/assert.hpp"
#include "holmes/base/buffer.hpp"
#include "holmes/model/generate.hpp"

namespace holmes::model {
namespace {

/// Layers for windows of one length, with the memory of a forward pass.
struct Window {
  std::uint32_t tokens = 0;
  std::vector<std::unique_ptr<Layer>> layers;  ///< Without the head, whose logits the engine gives.
  std::vector<Buffer> stashes;
};

Buffer floats(std::size_t count) {
  return Buffer::allocate(count * sizeof(float));
}

}  // namespace

struct LanguageModel::State {
  State(const GptConfig& model, Engine& compute) : config(model), engine(compute) {}

  GptConfig config;
  Engine& engine;
  std::vector<Buffer> parameters;  ///< Of the embedding, each block, and the head.
  Window window;
  Buffer activations[2];
  std::vector<std::int32_t> tokens;
  std::vector<float> logits;

  void use_window(std::uint32_t count);
};

/// Prepares for `count` tokens. Short contexts take short windows, whose lengths double: a window's
/// cost grows with its length, and making one costs more than a pass.
void LanguageModel::State::use_window(std::uint32_t count) {
  constexpr std::uint32_t kShortest = 16;
  std::uint32_t length = std::min(kShortest, config.sequence);
  while (length < count) length = std::min(2 * length, config.sequence);
  if (window.tokens == length) return;
  LayerRange range = whole_model(config);
  range.head = false;
  window = {length, make_layers(config, range, {.samples = 1, .tokens = length}, engine), {}};
  for (const auto& layer : window.layers) {
    window.stashes.push_back(Buffer::allocate(layer->stash_bytes()));
  }
  for (auto& buffer : activations) buffer = floats(std::size_t{length} * config.channels);
}

LanguageModel::LanguageModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&&) noexcept = default;
LanguageModel::~LanguageModel() = default;

Result<LanguageModel> LanguageModel::load(const Checkpoint& checkpoint, Engine& engine) {
  const GptConfig& config = checkpoint.job().model;
  HOLMES_TRY(validate(config));
  auto state = std::make_unique<State>(config, engine);
  for (std::uint32_t number = 0; number <= config.layers + 1; ++number) {
    const auto specs = layer_parameters(config, number);
    state->parameters.push_back(floats(specs.back().offset + specs.back().count));
    HOLMES_TRY(checkpoint.read_layer(specs, state->parameters.back().mutable_as<float>()));
  }
  state->logits.resize(config.vocabulary);
  return LanguageModel(std::move(state));
}

const GptConfig& LanguageModel::config() const {
  return state_->config;
}

std::span<const float> LanguageModel::next_logits(std::span<const std::int32_t> context) {
  HOLMES_ASSERT(!context.empty(), "no context to go on from");
  auto& state = *state_;
  const std::size_t C = state.config.channels;
  context = context.last(std::min<std::size_t>(context.size(), state.config.sequence));
  state.use_window(static_cast<std::uint32_t>(context.size()));
  // Attention looks back only: what fills the window after the context changes nothing before it.
  state.tokens.assign(state.window.tokens, 0);
  std::copy(context.begin(), context.end(), state.tokens.begin());
  for (std::size_t i = 0; i < state.window.layers.size(); ++i) {
    const auto input = state.activations[(i + 1) % 2].as<float>();
    state.window.layers[i]->forward({.parameters = state.parameters[i].as<float>(),
                                     .input = i == 0 ? std::span<const float>() : input,
                                     .output = state.activations[i % 2].mutable_as<float>(),
                                     .stash = state.window.stashes[i].mutable_bytes(),
                                     .tokens = i == 0 ? std::span<const std::int32_t>(state.tokens)
                                                      : std::span<const std::int32_t>(),
                                     .targets = {},
                                     .loss = nullptr});
  }
  const auto output = state.activations[(state.window.layers.size() - 1) % 2].as<float>();
  state.engine.logits(state.config, state.parameters.back().as<float>(),
                      output.subspan((context.size() - 1) * C, C), state.logits);
  return state.logits;
}

}  // namespace holmes::model

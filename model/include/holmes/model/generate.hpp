#pragma once

// Text from a trained model, token by token, in one process. The whole window is computed anew for
// each token. Not for training, and no server: one call, one thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "holmes/base/random.hpp"
#include "holmes/base/result.hpp"
#include "holmes/model/checkpoint.hpp"
#include "holmes/model/gpt.hpp"

namespace holmes::model {

struct GenerateOptions {
  std::uint32_t max_tokens = 200;  ///< New tokens, after the prompt.
  float temperature = 0.8F;        ///< 0: always the likeliest token.
  std::uint32_t top_k = 40;        ///< Choose among so many likeliest tokens; 0: among all.
  std::uint64_t seed = 1;
};

/// kInvalidArgument with the option and what would be right.
Status validate(const GenerateOptions& options);

/// Chooses a token by its logit. `options` must be valid and `logits` not empty.
std::int32_t sample_token(std::span<const float> logits, const GenerateOptions& options,
                          Random& random);

/// Logits of a whole model for the token after a context. Owns the parameters.
class LanguageModel {
 public:
  /// Reads all parameters. The engine must outlive the model.
  static Result<LanguageModel> load(const Checkpoint& checkpoint, Engine& engine);
  LanguageModel(LanguageModel&&) noexcept;
  LanguageModel& operator=(LanguageModel&&) noexcept;
  ~LanguageModel();

  const GptConfig& config() const;
  /// Of the token after `context`, one for each of the vocabulary, valid until the next call. Only
  /// the last config().sequence tokens count; at least one is needed.
  std::span<const float> next_logits(std::span<const std::int32_t> context);

 private:
  struct State;
  explicit LanguageModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Takes the text of each new token as soon as it is known; returns whether to go on.
using OnToken = std::function<bool(std::string_view text)>;

/// Continues `prompt` with the checkpoint's model and tokenizer. The same checkpoint, prompt and
/// options give the same text. kInvalidArgument for bad options, an empty prompt, or one with
/// tokens that the model does not know.
Status generate(const Checkpoint& checkpoint, Engine& engine, std::string_view prompt,
                const GenerateOptions& options, const OnToken& on_token);

}  // namespace holmes::model

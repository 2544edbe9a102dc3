#include "holmes/model/generate.hpp"

#include <string>

#include "holmes/model/tokenizer.hpp"

namespace holmes::model {
namespace {

Result<std::vector<std::int32_t>> encode_prompt(const Tokenizer& tokenizer, std::string_view prompt,
                                                const GptConfig& config) {
  auto ids = tokenizer.encode(prompt);
  if (ids.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "the prompt is empty; give at least one character to go on from");
  }
  for (const std::int32_t id : ids) {
    if (static_cast<std::uint32_t>(id) < config.vocabulary) continue;
    return Error(ErrorCode::kInvalidArgument, "the prompt has token " + std::to_string(id) +
                                                  ", the model knows only " +
                                                  std::to_string(config.vocabulary) + " tokens");
  }
  return ids;
}

}  // namespace

Status generate(const Checkpoint& checkpoint, Engine& engine, std::string_view prompt,
                const GenerateOptions& options, const OnToken& on_token) {
  HOLMES_TRY(validate(options));
  HOLMES_TRY_ASSIGN(const auto tokenizer,
                    find_tokenizer(checkpoint.job().tokenizer, checkpoint.folder()));
  HOLMES_TRY_ASSIGN(auto context, encode_prompt(*tokenizer, prompt, checkpoint.job().model));
  HOLMES_TRY_ASSIGN(LanguageModel model, LanguageModel::load(checkpoint, engine));
  Random random(options.seed);
  for (std::uint32_t i = 0; i < options.max_tokens; ++i) {
    const std::int32_t next = sample_token(model.next_logits(context), options, random);
    context.push_back(next);
    if (!on_token(tokenizer->decode({&next, 1}))) return {};
  }
  return {};
}

}  // namespace holmes::model

#include "generator.hpp"

#include "holmes/model/checkpoint.hpp"
#include "holmes/model/generate.hpp"

namespace service {

using namespace holmes;

Result<std::string> Generator::generate(const std::string& prompt, std::uint32_t tokens) {
  if (tokens == 0 || tokens > kTokensMax)
    return Error(ErrorCode::kInvalidArgument, "tokens: wants 1 .. " + std::to_string(kTokensMax) +
                                                  ", not " + std::to_string(tokens));
  const std::unique_lock alone(busy_, std::try_to_lock);
  if (!alone || stopping_)
    return Error(ErrorCode::kUnavailable,
                 stopping_ ? "the service is ending" : "another text is being written; try again");
  HOLMES_TRY_ASSIGN(const auto folder, model::find_latest(checkpoints_));
  HOLMES_TRY_ASSIGN(const auto checkpoint, model::Checkpoint::open(folder));
  const auto engine = model::make_cpu_engine();
  model::GenerateOptions options;
  options.max_tokens = tokens;
  std::string text;
  HOLMES_TRY(model::generate(checkpoint, *engine, prompt, options, [&](std::string_view more) {
    text += more;
    return !stopping_;
  }));
  return text;
}

}  // namespace service

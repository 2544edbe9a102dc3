#pragma once

// Text to token ids and back. A tokenizer is a pure function: no state, any thread.
// It does not read files of tokens (data.hpp) and knows nothing of a model's padded vocabulary.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/result.hpp"

namespace holmes::model {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// As configuration names it, e.g. "bytes".
  virtual std::string_view name() const = 0;
  /// Ids are 0 .. vocabulary() - 1.
  virtual std::uint32_t vocabulary() const = 0;
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// Ids outside the vocabulary, which a model with a padded table could name, give no text.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
};

/// "bytes": each byte is one token with its value as the id, so any text survives unchanged.
/// kInvalidArgument for a name that is none.
Result<std::unique_ptr<Tokenizer>> make_tokenizer(std::string_view name);

}  // namespace holmes::model

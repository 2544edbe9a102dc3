#pragma once

// Cuts text into the pieces that are encoded one by one: what a tokenizer.json calls the
// pre-tokenizer. Pieces follow one another without gaps, whatever the rules say about the text
// between matches. Text given here is UTF-8.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/result.hpp"

namespace holmes::model {

/// GPT-2's rule, as it is written down everywhere.
extern const std::string_view kGpt2Pattern;

/// Bytes of the first piece of `text` by GPT-2's rule; `text` is not empty. The same pieces as by
/// the pattern, but faster.
std::size_t gpt2_piece(std::string_view text);

/// A rule of which each match, and each text between matches, is a piece.
class SplitRule {
 public:
  virtual ~SplitRule() = default;
  /// Appends the end of each piece of `text` (from its beginning), in order.
  virtual void split(std::string_view text, std::vector<std::size_t>& ends) const = 0;
};

std::unique_ptr<SplitRule> make_gpt2_rule();
/// kInvalidArgument when the expression does not compile, with the place and the reason.
Result<std::unique_ptr<SplitRule>> make_regex_rule(std::string_view pattern);

}  // namespace holmes::model

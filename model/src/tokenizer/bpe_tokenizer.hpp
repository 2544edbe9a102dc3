#pragma once

// A byte-level BPE tokenizer of its parts: the model, the rules that cut text, the normalizer and
// the special tokens. Made by the readers of files.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/model/tokenizer.hpp"
#include "tokenizer/bpe_model.hpp"
#include "tokenizer/splitter.hpp"

namespace holmes::model {

enum class Normalization : std::uint8_t { kNfc, kNfd, kNfkc, kNfkd };

struct SpecialToken {
  std::string content;
  std::uint32_t id = 0;
};

struct BpeParts {
  BpeModel model;
  /// Each cuts the pieces of the one before it.
  std::vector<std::unique_ptr<SplitRule>> rules;
  std::vector<Normalization> normalizers;
  bool prefix_space = false;  ///< A blank is put before text that does not begin with one.
  std::vector<SpecialToken> specials;
  std::vector<TokenizerFile> files;
};

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeParts parts);

}  // namespace holmes::model

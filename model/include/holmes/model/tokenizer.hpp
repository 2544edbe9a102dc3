#pragma once

// Text to token ids and back. A tokenizer is a pure function: no state, any thread; an encoder of
// it, which remembers words that it has seen, is for one thread at a time.
// It does not read files of tokens (data.hpp) and knows nothing of a model's padded vocabulary.
//
// Byte-level BPE (GPT-2, Llama 3 and their like): decode(encode(x)) == x for any bytes, unless the
// tokenizer's own normalizer changes text. Bytes that are no UTF-8 are encoded one run at a time,
// as they stand. No token is added at either end of a text, whatever a post-processor says.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/result.hpp"

namespace holmes::model {

/// In place of a tokenizer's name: of a job that trains on ready tokens, and names no tokenizer.
constexpr const char* kNoTokenizer = "none";

/// What is made of text that spells a special token, such as "<|endoftext|>".
enum class SpecialTokens : std::uint8_t {
  kParse,   ///< The token: for prompts, as reference implementations do.
  kAsText,  ///< Its characters: for data, where a document must not forge its end.
};

class Encoder {
 public:
  virtual ~Encoder() = default;
  /// Appends the ids of `text`.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) = 0;
};

/// A file that makes up a tokenizer, for whoever stores it beside a model.
struct TokenizerFile {
  std::string name;  ///< "tokenizer.json", "vocab.json" or "merges.txt".
  std::string content;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// "bytes", or "bpe-" and a hash of its files: equal names mean equal ids.
  virtual std::string_view name() const = 0;
  /// Ids are 0 .. vocabulary() - 1.
  virtual std::uint32_t vocabulary() const = 0;
  /// The tokenizer must outlive the encoder.
  virtual std::unique_ptr<Encoder> make_encoder(SpecialTokens specials) const = 0;
  /// Special tokens are parsed.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// Ids outside the vocabulary, which a model with a padded table could name, give no text.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  /// The token that ends a document, e.g. "<|endoftext|>", if there is one.
  virtual std::optional<std::int32_t> end_of_document() const { return std::nullopt; }
  /// Empty for "bytes", which needs none.
  virtual std::span<const TokenizerFile> files() const { return {}; }
};

/// "bytes": each byte is one token with its value as the id, so any text survives unchanged.
/// Else a path: tokenizer.json; vocab.json or encoder.json with merges.txt or vocab.bpe beside it;
/// or a folder with such files (tokenizer.json first). kInvalidArgument for a name that is none of
/// these, kCorrupt for a file that is damaged or asks for what is not supported.
Result<std::unique_ptr<Tokenizer>> make_tokenizer(std::string_view name);

/// The tokenizer called `name` (as its name() says) from the files in `folder`: a checkpoint's.
Result<std::unique_ptr<Tokenizer>> find_tokenizer(std::string_view name,
                                                  const std::filesystem::path& folder);

/// From the text of a tokenizer.json, or of vocab.json and merges.txt; the names are for errors.
Result<std::unique_ptr<Tokenizer>> parse_tokenizer_json(std::string content,
                                                        const std::string& name);
Result<std::unique_ptr<Tokenizer>> parse_vocab_and_merges(std::string vocab, std::string merges,
                                                          const std::string& name);

/// Learns a byte-level BPE of GPT-2's kind: counts words of the texts given to it, then merges the
/// most frequent pair again and again. The same texts give the same tokens.
class BpeTrainer {
 public:
  BpeTrainer();
  ~BpeTrainer();
  /// Words do not go across the ends of `text`. The rarest words are forgotten when there are
  /// too many different ones.
  void add(std::string_view text);
  /// A tokenizer.json with `vocabulary` tokens, the last of which is "<|endoftext|>", or with fewer
  /// when no pair occurs twice any more. kInvalidArgument when `vocabulary` is below 257.
  Result<std::string> train(std::uint32_t vocabulary) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holmes::model

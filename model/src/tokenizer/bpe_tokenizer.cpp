#include "tokenizer/bpe_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <utf8proc.h>

#include "data/content_hash.hpp"
#include "tokenizer/piece_cache.hpp"
#include "tokenizer/utf8.hpp"

namespace holmes::model {
namespace {

std::string normalized(std::string_view text, Normalization form) {
  int options = UTF8PROC_STABLE;
  const bool composed = form == Normalization::kNfc || form == Normalization::kNfkc;
  options |= composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == Normalization::kNfkc || form == Normalization::kNfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* result = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                   static_cast<utf8proc_ssize_t>(text.size()), &result,
                                   static_cast<utf8proc_option_t>(options));
  if (length < 0) return std::string(text);
  std::string out(reinterpret_cast<const char*>(result), static_cast<std::size_t>(length));
  std::free(result);  // NOLINT: the library's memory
  return out;
}

/// Finds special tokens in text: the leftmost one, of several there the longest.
class SpecialFinder {
 public:
  explicit SpecialFinder(std::vector<SpecialToken> tokens) : tokens_(std::move(tokens)) {
    std::stable_sort(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) {
      return a.content.size() > b.content.size();
    });
    for (const auto& token : tokens_) first_[static_cast<unsigned char>(token.content[0])] = true;
  }

  /// Null when there is none from `from` on; `at` is where it begins.
  const SpecialToken* find(std::string_view text, std::size_t from, std::size_t& at) const {
    if (tokens_.empty()) return nullptr;
    for (at = from; at < text.size(); ++at) {
      if (!first_[static_cast<unsigned char>(text[at])]) continue;
      for (const auto& token : tokens_) {
        if (text.substr(at).starts_with(token.content)) return &token;
      }
    }
    return nullptr;
  }

 private:
  std::vector<SpecialToken> tokens_;
  std::array<bool, 256> first_{};
};

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeParts parts) : parts_(std::move(parts)), finder_(parts_.specials) {
    ContentHash hash;
    for (const auto& file : parts_.files) {
      for (const auto& text : {file.name, file.content}) {
        const std::uint64_t size = text.size();
        hash.update(std::as_bytes(std::span(&size, 1)));
        hash.update(std::as_bytes(std::span(text)));
      }
    }
    name_ = "bpe-" + hash.hex();
    vocabulary_ = parts_.model.vocabulary();
    special_of_.assign(vocabulary_, nullptr);
    for (const auto& special : parts_.specials) {
      vocabulary_ = std::max(vocabulary_, special.id + 1);
      special_of_.resize(vocabulary_, nullptr);
      special_of_[special.id] = &special;
    }
  }

  std::string_view name() const override { return name_; }
  std::uint32_t vocabulary() const override { return vocabulary_; }
  std::unique_ptr<Encoder> make_encoder(SpecialTokens specials) const override;

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      const auto index = static_cast<std::uint32_t>(id);
      if (id < 0 || index >= vocabulary_) continue;
      text +=
          special_of_[index] != nullptr ? special_of_[index]->content : parts_.model.bytes(index);
    }
    return text;
  }

  std::optional<std::int32_t> end_of_document() const override {
    for (const char* name : {"<|endoftext|>", "<|end_of_text|>", "</s>"}) {
      for (const auto& special : parts_.specials) {
        if (special.content == name) return static_cast<std::int32_t>(special.id);
      }
    }
    return std::nullopt;
  }
  std::span<const TokenizerFile> files() const override { return parts_.files; }

  const BpeParts& parts() const { return parts_; }
  const SpecialFinder& finder() const { return finder_; }

 private:
  BpeParts parts_;
  SpecialFinder finder_;
  std::string name_;
  std::uint32_t vocabulary_ = 0;
  std::vector<const SpecialToken*> special_of_;
};

class BpeEncoder final : public Encoder {
 public:
  BpeEncoder(const BpeTokenizer& tokenizer, bool parse_specials)
      : tokenizer_(tokenizer), parts_(tokenizer.parts()), parse_specials_(parse_specials) {}

  void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
    std::size_t done = 0;
    while (parse_specials_ && done < text.size()) {
      std::size_t at = 0;
      const auto* special = tokenizer_.finder().find(text, done, at);
      if (special == nullptr) break;
      encode_plain(text.substr(done, at - done), ids);
      ids.push_back(static_cast<std::int32_t>(special->id));
      done = at + special->content.size();
    }
    encode_plain(text.substr(done), ids);
  }

 private:
  /// Text without special tokens: runs of UTF-8, and of bytes that are none.
  void encode_plain(std::string_view text, std::vector<std::int32_t>& ids) {
    while (!text.empty()) {
      const auto good = valid_prefix(text);
      if (good > 0) encode_characters(text.substr(0, good), ids);
      text.remove_prefix(good);
      if (text.empty()) return;
      const auto bad = broken_prefix(text);
      encode_piece(text.substr(0, bad), ids);
      text.remove_prefix(bad);
    }
  }

  void encode_characters(std::string_view text, std::vector<std::int32_t>& ids) {
    std::string changed;
    if (!parts_.normalizers.empty()) {
      changed = text;
      for (const auto form : parts_.normalizers) changed = normalized(changed, form);
      text = changed;
    }
    if (parts_.prefix_space && !text.starts_with(' ')) {
      changed = " " + std::string(text);
      text = changed;
    }
    // Most text is cut by one rule; GPT-2's needs no list of its pieces then, but it is small.
    split(text, 0, ids);
  }

  void split(std::string_view text, std::size_t rule, std::vector<std::int32_t>& ids) {
    if (rule == parts_.rules.size()) return encode_piece(text, ids);
    if (ends_.size() < parts_.rules.size()) ends_.resize(parts_.rules.size());
    auto& ends = ends_[rule];
    ends.clear();
    parts_.rules[rule]->split(text, ends);
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      split(text.substr(begin, end - begin), rule + 1, ids);
      begin = end;
    }
  }

  void encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) {
    if (piece.empty()) return;
    bool found = false;
    auto* entry = cache_.find(piece, found);
    if (found) {
      ids.insert(ids.end(), entry->ids.begin(), entry->ids.begin() + entry->count);
      return;
    }
    const std::size_t before = ids.size();
    parts_.model.encode(piece, ids);
    if (entry != nullptr) PieceCache::keep(*entry, piece, ids.data() + before, ids.size() - before);
  }

  const BpeTokenizer& tokenizer_;
  const BpeParts& parts_;
  bool parse_specials_;
  std::vector<std::vector<std::size_t>> ends_;
  PieceCache cache_;
};

std::unique_ptr<Encoder> BpeTokenizer::make_encoder(SpecialTokens specials) const {
  return std::make_unique<BpeEncoder>(*this, specials == SpecialTokens::kParse);
}

}  // namespace

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeParts parts) {
  return std::make_unique<BpeTokenizer>(std::move(parts));
}

}  // namespace holmes::model

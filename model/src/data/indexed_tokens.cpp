// Tokens of Megatron's data sets, and of texts that are encoded when they are opened.
#include <algorithm>
#include <cstring>

#include "data/content_hash.hpp"
#include "data/watched_file.hpp"
#include "holmes/base/assert.hpp"
#include "holmes/model/data.hpp"
#include "holmes/model/indexed.hpp"

namespace holmes::model {
namespace {

namespace fs = std::filesystem;

fs::path with_suffix(const fs::path& prefix, const char* suffix) {
  return prefix.string() + suffix;
}

template <class T>
std::int64_t element(std::span<const std::byte> bytes, std::uint64_t index) {
  T value{};
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(value));
  return static_cast<std::int64_t>(value);
}

/// Calls `fn` with a function that reads elements of the type.
template <class Fn>
auto with_reader(TokenType type, const Fn& fn) {
  switch (type) {
    case TokenType::kU8:
      return fn(element<std::uint8_t>);
    case TokenType::kI8:
      return fn(element<std::int8_t>);
    case TokenType::kI16:
      return fn(element<std::int16_t>);
    case TokenType::kU16:
      return fn(element<std::uint16_t>);
    case TokenType::kI64:
      return fn(element<std::int64_t>);
    default:
      return fn(element<std::int32_t>);
  }
}

class IndexedTokens final : public TokenFile {
 public:
  IndexedTokens(MappedFile watched_bin, const IndexFacts& facts, std::string name)
      : bin_(std::move(watched_bin), "token file", std::move(name)), facts_(facts) {}

  std::uint64_t token_count() const override { return facts_.tokens; }
  void read(std::uint64_t first, std::span<std::int32_t> out) const override {
    HOLMES_ASSERT(first <= facts_.tokens && out.size() <= facts_.tokens - first,
                  "read beyond the end of a token file");
    with_reader(facts_.type, [&](const auto& reader) {
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<std::int32_t>(reader(bin_.bytes(), first + i));
      }
    });
  }
  const std::string& hash() const override { return bin_.hash(); }
  const std::string& name() const override { return bin_.name(); }
  Status unchanged() const override { return bin_.unchanged(); }

 private:
  WatchedFile bin_;
  IndexFacts facts_;
};

class EncodedText final : public TokenFile {
 public:
  EncodedText(std::vector<std::int32_t> ids, std::string name)
      : ids_(std::move(ids)),
        name_(std::move(name)),
        hash_(content_hash(std::as_bytes(std::span(ids_)))) {}

  std::uint64_t token_count() const override { return ids_.size(); }
  void read(std::uint64_t first, std::span<std::int32_t> out) const override {
    HOLMES_ASSERT(first <= ids_.size() && out.size() <= ids_.size() - first,
                  "read beyond the end of a token file");
    std::copy_n(ids_.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
  }
  const std::string& hash() const override { return hash_; }
  const std::string& name() const override { return name_; }
  Status unchanged() const override { return {}; }  // its tokens are in memory

 private:
  std::vector<std::int32_t> ids_;
  std::string name_;
  std::string hash_;
};

/// What cannot be opened was named by the user, who has to name something else.
Error unusable(const Error& error, const char* key) {
  return Error(ErrorCode::kInvalidArgument, error.message() + "; see " + key);
}

Status check_ids(std::span<const std::byte> bytes, const IndexFacts& facts,
                 std::uint32_t vocabulary, const std::string& name) {
  return with_reader(facts.type, [&](const auto& reader) -> Status {
    for (std::uint64_t i = 0; i < facts.tokens; ++i) {
      const std::int64_t id = reader(bytes, i);
      if (id >= 0 && id < std::int64_t{vocabulary}) continue;
      return Error(ErrorCode::kInvalidArgument,
                   name + ": token " + std::to_string(i) + " is " + std::to_string(id) +
                       ", but model.vocabulary is " + std::to_string(vocabulary) +
                       "; raise it, or build the data with the model's tokenizer");
    }
    return {};
  });
}

struct OpenSet {
  IndexFacts facts;
  MappedFile bin;
  std::string name;
};

Result<OpenSet> open_set(const fs::path& prefix, std::uint32_t vocabulary) {
  const auto index_path = with_suffix(prefix, ".idx");
  const auto bin_path = with_suffix(prefix, ".bin");
  const auto index = MappedFile::open(index_path, "index file");
  if (!index) return unusable(index.error(), "data.tokens, which names both files without .idx");
  auto bin = MappedFile::open(bin_path, "token file");
  if (!bin) return unusable(bin.error(), "data.tokens, which names both files without .bin");
  HOLMES_TRY_ASSIGN(const auto facts,
                    check_index(index->bytes(), bin->bytes().size(), index_path.string()));
  if (facts.tokens == 0) {
    return Error(ErrorCode::kInvalidArgument, bin_path.string() + " has no tokens");
  }
  HOLMES_TRY(bin->watch(bin_path));
  HOLMES_TRY(check_ids(bin->bytes(), facts, vocabulary, bin_path.string()));
  return OpenSet{facts, *std::move(bin), bin_path.string()};
}

}  // namespace

Result<IndexFacts> inspect_indexed(const fs::path& prefix, std::uint32_t vocabulary) {
  HOLMES_TRY_ASSIGN(const auto set, open_set(prefix, vocabulary));
  return set.facts;
}

Result<std::unique_ptr<TokenFile>> open_indexed_tokens(const fs::path& prefix,
                                                       std::uint32_t vocabulary) {
  HOLMES_TRY_ASSIGN(auto set, open_set(prefix, vocabulary));
  return std::unique_ptr<TokenFile>(
      std::make_unique<IndexedTokens>(std::move(set.bin), set.facts, std::move(set.name)));
}

Result<std::unique_ptr<TokenFile>> encode_text(const fs::path& text, const Tokenizer& tokenizer) {
  const auto file = MappedFile::open(text, "text file");
  if (!file) return unusable(file.error(), "data.text, which names a plain text file");
  const auto bytes = file->bytes();
  if (bytes.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "text file " + text.string() + " is empty; there is nothing to learn from");
  }
  std::vector<std::int32_t> ids;
  tokenizer.make_encoder(SpecialTokens::kAsText)
      ->encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, ids);
  return std::unique_ptr<TokenFile>(std::make_unique<EncodedText>(std::move(ids), text.string()));
}

}  // namespace holmes::model

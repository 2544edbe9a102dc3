#include "holmes/model/tokenizer.hpp"

#include "data/mapped_file.hpp"

namespace holmes::model {
namespace {

namespace fs = std::filesystem;

class ByteTokenizer final : public Tokenizer {
 public:
  std::string_view name() const override { return "bytes"; }
  std::uint32_t vocabulary() const override { return kVocabulary; }
  std::unique_ptr<Encoder> make_encoder(SpecialTokens /*specials*/) const override {
    return std::make_unique<ByteEncoder>();
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    text.reserve(ids.size());
    for (const std::int32_t id : ids) {
      if (id >= 0 && id < static_cast<std::int32_t>(kVocabulary)) text += static_cast<char>(id);
    }
    return text;
  }

 private:
  class ByteEncoder final : public Encoder {
   public:
    void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
      ids.reserve(ids.size() + text.size());
      for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    }
  };
  static constexpr std::uint32_t kVocabulary = 256;
};

Result<std::string> read_text(const fs::path& path) {
  HOLMES_TRY_ASSIGN(const auto file, MappedFile::open(path, "tokenizer file"));
  const auto bytes = file.bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<std::unique_ptr<Tokenizer>> open_json(const fs::path& path) {
  HOLMES_TRY_ASSIGN(auto content, read_text(path));
  return parse_tokenizer_json(std::move(content), path.string());
}

Result<std::unique_ptr<Tokenizer>> open_pair(const fs::path& vocab, const fs::path& merges) {
  HOLMES_TRY_ASSIGN(auto first, read_text(vocab));
  HOLMES_TRY_ASSIGN(auto second, read_text(merges));
  return parse_vocab_and_merges(std::move(first), std::move(second),
                                vocab.string() + " with " + merges.filename().string());
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

constexpr const char* kPairs[][2] = {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}};

Error unknown(std::string_view name, const std::string& why) {
  return Error(ErrorCode::kInvalidArgument,
               "the tokenizer \"" + std::string(name) + "\" " + why +
                   "; give \"bytes\", a tokenizer.json, or a folder with tokenizer.json or with "
                   "vocab.json and merges.txt");
}

Result<std::unique_ptr<Tokenizer>> open_path(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    if (is_file(path / "tokenizer.json")) return open_json(path / "tokenizer.json");
    for (const auto& [vocab, merges] : kPairs) {
      if (is_file(path / vocab) && is_file(path / merges)) {
        return open_pair(path / vocab, path / merges);
      }
    }
    return unknown(path.string(), "is a folder without a tokenizer");
  }
  if (!is_file(path)) return unknown(path.string(), "is no file or folder");
  for (const auto& [vocab, merges] : kPairs) {
    if (path.filename() != vocab && path.filename() != merges) continue;
    const auto folder = path.parent_path();
    return open_pair(folder / vocab, folder / merges);
  }
  return open_json(path);
}

}  // namespace

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  make_encoder(SpecialTokens::kParse)->encode(text, ids);
  return ids;
}

Result<std::unique_ptr<Tokenizer>> make_tokenizer(std::string_view name) {
  if (name == "bytes") return std::unique_ptr<Tokenizer>(std::make_unique<ByteTokenizer>());
  auto opened = open_path(fs::path(name));
  if (!opened && opened.error().code() == ErrorCode::kNotFound) {
    return Error(ErrorCode::kInvalidArgument, opened.error().message());
  }
  return opened;
}

Result<std::unique_ptr<Tokenizer>> find_tokenizer(std::string_view name, const fs::path& folder) {
  if (name == "bytes") return make_tokenizer(name);
  if (name == kNoTokenizer) {
    return Error(ErrorCode::kInvalidArgument,
                 "the model of " + folder.string() +
                     " was trained on tokens without a tokenizer; train with data.tokenizer set");
  }
  HOLMES_TRY_ASSIGN(auto tokenizer, make_tokenizer(folder.string()));
  if (tokenizer->name() == name) return tokenizer;
  return Error(ErrorCode::kCorrupt, "the tokenizer files in " + folder.string() +
                                        " are not those of the model: they have the hash " +
                                        std::string(tokenizer->name()) + ", it needs " +
                                        std::string(name));
}

}  // namespace holmes::model

#include "holmes/model/tokenizer.hpp"

namespace holmes::model {
namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  std::string_view name() const override { return "bytes"; }
  std::uint32_t vocabulary() const override { return kVocabulary; }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    ids.reserve(text.size());
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
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
  static constexpr std::uint32_t kVocabulary = 256;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_tokenizer(std::string_view name) {
  if (name == "bytes") return std::unique_ptr<Tokenizer>(std::make_unique<ByteTokenizer>());
  return Error(ErrorCode::kInvalidArgument, "data.tokenizer is \"" + std::string(name) +
                                                "\"; the tokenizer there is: \"bytes\"");
}

}  // namespace holmes::model

#include <algorithm>
#include <cmath>

#include "data/watched_file.hpp"
#include "holmes/base/assert.hpp"
#include "holmes/model/data.hpp"

namespace holmes::model {
namespace {

class ByteText final : public TokenFile {
 public:
  ByteText(MappedFile watched, std::string name)
      : file_(std::move(watched), "text file", std::move(name)) {}

  std::uint64_t token_count() const override { return file_.bytes().size(); }

  void read(std::uint64_t first, std::span<std::int32_t> out) const override {
    const auto bytes = file_.bytes();
    HOLMES_ASSERT(first <= bytes.size() && out.size() <= bytes.size() - first,
                  "read beyond the end of a token file");
    std::transform(bytes.begin() + static_cast<std::ptrdiff_t>(first),
                   bytes.begin() + static_cast<std::ptrdiff_t>(first + out.size()), out.begin(),
                   [](std::byte b) { return std::to_integer<std::int32_t>(b); });
  }

  const std::string& hash() const override { return file_.hash(); }
  const std::string& name() const override { return file_.name(); }
  Status unchanged() const override { return file_.unchanged(); }

 private:
  WatchedFile file_;
};

}  // namespace

Result<std::unique_ptr<TokenFile>> open_byte_text(const std::filesystem::path& text) {
  auto file = MappedFile::open(text, "text file");
  if (!file) {
    // Whatever keeps us from reading what the user named, the user has to name something else.
    return Error(ErrorCode::kInvalidArgument,
                 file.error().message() + "; name a readable plain text file in data.text");
  }
  if (file->bytes().empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "text file " + text.string() + " is empty; there is nothing to learn from");
  }
  HOLMES_TRY(file->watch(text));
  return std::unique_ptr<TokenFile>(std::make_unique<ByteText>(*std::move(file), text.string()));
}

Result<Split> split(const TokenFile& file, double validation_share, std::uint32_t sequence) {
  if (!(validation_share >= 0.0 && validation_share < 1.0)) {
    return Error(ErrorCode::kInvalidArgument,
                 "data.validation is " + std::to_string(validation_share) +
                     "; it is a share of the text, at least 0 and below 1");
  }
  if (sequence == 0) {
    return Error(ErrorCode::kInvalidArgument, "train.sequence is 0; it must be at least 1");
  }
  const std::uint64_t count = file.token_count();
  const auto kept =
      static_cast<std::uint64_t>(std::floor(static_cast<double>(count) * validation_share));
  const Split parts{{0, count - kept}, {count - kept, count}};
  const std::uint64_t needed = std::uint64_t{sequence} + 1;
  const auto too_short = [&](const char* part, std::uint64_t size, const char* remedy) {
    return Error(ErrorCode::kInvalidArgument,
                 file.name() + " has " + std::to_string(count) + " tokens, of which " +
                     std::to_string(size) + " are for " + part + "; one sample of sequence " +
                     std::to_string(sequence) + " needs " + std::to_string(needed) + "; " + remedy);
  };
  if (parts.train.size() < needed) {
    return too_short("training", parts.train.size(),
                     "use a longer text, a shorter train.sequence or a smaller data.validation");
  }
  if (parts.validation.size() < needed) {
    return too_short("validation", parts.validation.size(),
                     "use a longer text, a shorter train.sequence or a larger data.validation");
  }
  return parts;
}

}  // namespace holmes::model

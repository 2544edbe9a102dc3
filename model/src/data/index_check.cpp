#include <cstring>

#include "data/index_layout.hpp"
#include "holmes/model/indexed.hpp"

namespace holmes::model {
namespace {

template <class T>
T load(std::span<const std::byte> bytes, std::uint64_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

struct Header {
  TokenType type = TokenType::kI32;
  std::uint64_t sequences = 0;
  std::uint64_t entries = 0;
};

class Check {
 public:
  Check(std::span<const std::byte> index, std::uint64_t bin_bytes, std::string_view name)
      : index_(index), bin_bytes_(bin_bytes), name_(name) {}

  Result<IndexFacts> run() {
    HOLMES_TRY(read_header());
    IndexFacts facts{header_.type, header_.sequences, header_.entries - 1, 0};
    HOLMES_TRY_ASSIGN(facts.tokens, check_sequences());
    HOLMES_TRY(check_documents());
    return facts;
  }

 private:
  Error corrupt(const std::string& why) const {
    return Error(ErrorCode::kCorrupt, std::string(name_) + ": " + why);
  }

  Status read_header() {
    if (index_.size() < kIndexHeaderBytes ||
        std::memcmp(index_.data(), kIndexMagic.data(), kIndexMagic.size()) != 0) {
      return corrupt("no index of a Megatron data set: it does not begin with MMIDIDX");
    }
    const auto version = load<std::uint64_t>(index_, kIndexMagic.size());
    if (version != kIndexVersion) {
      return corrupt("version " + std::to_string(version) + "; only version 1 is known");
    }
    const auto code = load<std::uint8_t>(index_, kIndexTypeAt);
    header_ = {static_cast<TokenType>(code), load<std::uint64_t>(index_, kIndexTypeAt + 1),
               load<std::uint64_t>(index_, kIndexTypeAt + 9)};
    if (token_bytes(header_.type) == 0) {
      return corrupt("element type " + std::to_string(code) + " holds no tokens");
    }
    if (header_.entries == 0) return corrupt("no document entries; at least one is needed");
    // Bounded first, so that nothing below overflows.
    const std::uint64_t size = index_.size();
    const bool fits = header_.sequences <= size / 12 && header_.entries <= size / 8;
    const std::uint64_t needed =
        fits ? kIndexHeaderBytes + 12 * header_.sequences + 8 * header_.entries : 0;
    if (needed == size) return {};
    return corrupt("it has " + std::to_string(size) + " bytes, but " +
                   std::to_string(header_.sequences) + " sequences and " +
                   std::to_string(header_.entries) + " document entries need " +
                   (fits ? std::to_string(needed) : std::string("more")) + "; was it cut short?");
  }

  Result<std::uint64_t> check_sequences() const {
    const std::uint64_t width = token_bytes(header_.type);
    const std::uint64_t offsets_at = kIndexHeaderBytes + 4 * header_.sequences;
    std::uint64_t expected = 0;
    for (std::uint64_t i = 0; i < header_.sequences; ++i) {
      const auto length = load<std::int32_t>(index_, kIndexHeaderBytes + 4 * i);
      const auto offset = load<std::int64_t>(index_, offsets_at + 8 * i);
      const std::string which = "sequence " + std::to_string(i);
      if (length < 0) return corrupt(which + " has " + std::to_string(length) + " tokens");
      if (offset < 0 || static_cast<std::uint64_t>(offset) != expected) {
        return corrupt(which + " begins at byte " + std::to_string(offset) + ", expected " +
                       std::to_string(expected) + ": sequences lie one after another");
      }
      expected += static_cast<std::uint64_t>(length) * width;
      if (expected > bin_bytes_) {
        return corrupt(which + " ends at byte " + std::to_string(expected) + ", but the .bin has " +
                       std::to_string(bin_bytes_) + "; was it cut short?");
      }
    }
    if (expected == bin_bytes_) return expected / width;
    return corrupt("its sequences have " + std::to_string(expected) + " bytes, the .bin has " +
                   std::to_string(bin_bytes_) + "; do the two files belong together?");
  }

  Status check_documents() const {
    const std::uint64_t at = kIndexHeaderBytes + 12 * header_.sequences;
    std::int64_t before = 0;
    for (std::uint64_t i = 0; i < header_.entries; ++i) {
      const auto first = load<std::int64_t>(index_, at + 8 * i);
      const bool bad = i == 0 ? first != 0 : first < before;
      if (bad) {
        return corrupt("document entry " + std::to_string(i) + " is " + std::to_string(first) +
                       ", expected " + (i == 0 ? "0" : "at least " + std::to_string(before)));
      }
      before = first;
    }
    if (static_cast<std::uint64_t>(before) == header_.sequences) return {};
    return corrupt("the last document entry is " + std::to_string(before) + ", expected " +
                   std::to_string(header_.sequences) + ", the number of sequences");
  }

  std::span<const std::byte> index_;
  std::uint64_t bin_bytes_;
  std::string_view name_;
  Header header_;
};

}  // namespace

std::uint32_t token_bytes(TokenType type) {
  switch (type) {
    case TokenType::kU8:
    case TokenType::kI8:
      return 1;
    case TokenType::kI16:
    case TokenType::kU16:
      return 2;
    case TokenType::kI32:
      return 4;
    case TokenType::kI64:
      return 8;
    case TokenType::kF32:
    case TokenType::kF64:
      break;
  }
  return 0;
}

Result<IndexFacts> check_index(std::span<const std::byte> index, std::uint64_t bin_bytes,
                               std::string_view name) {
  return Check(index, bin_bytes, name).run();
}

}  // namespace holmes::model

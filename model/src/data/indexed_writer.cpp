#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "data/index_layout.hpp"
#include "holmes/model/indexed.hpp"

namespace holmes::model {
namespace {

namespace fs = std::filesystem;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// A file that is deleted unless it is kept.
class NewFile {
 public:
  Status open(const fs::path& path) {
    path_ = path;
    unfinished_ = path.string() + ".tmp";
    file_.reset(std::fopen(unfinished_.c_str(), "w+b"));
    if (file_ == nullptr) return system_error("cannot write " + unfinished_, errno);
    return {};
  }
  ~NewFile() {
    if (file_ == nullptr) return;
    file_.reset();
    std::remove(unfinished_.c_str());
  }
  NewFile() = default;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  Status write(const void* data, std::size_t bytes) {
    if (std::fwrite(data, 1, bytes, file_.get()) == bytes) return {};
    return system_error("cannot write " + unfinished_, errno);
  }
  Status read_at(std::uint64_t at, void* data, std::size_t bytes) {
    const bool good = std::fseek(file_.get(), static_cast<long>(at), SEEK_SET) == 0 &&
                      std::fread(data, 1, bytes, file_.get()) == bytes;
    if (!good) return system_error("cannot read " + unfinished_, errno);
    return {};
  }
  Status seek_to_end() {
    if (std::fseek(file_.get(), 0, SEEK_END) == 0) return {};
    return system_error("cannot write " + unfinished_, errno);
  }
  Status seek_to_begin() {
    if (std::fseek(file_.get(), 0, SEEK_SET) == 0) return {};
    return system_error("cannot write " + unfinished_, errno);
  }
  Status flush() {
    if (std::fflush(file_.get()) == 0) return {};
    return system_error("cannot write " + unfinished_, errno);
  }
  Status keep() {
    if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) {
      return system_error("cannot name " + path_.string(), errno);
    }
    file_.reset();
    return {};
  }

 private:
  fs::path path_;
  std::string unfinished_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

}  // namespace

struct IndexedWriter::State {
  NewFile bin;
  NewFile index;
  TokenType type = TokenType::kI32;
  std::uint64_t in_document = 0;
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;
  std::vector<std::uint16_t> narrow;

  Status write_header();
  Status write_offsets();
};

Status IndexedWriter::State::write_header() {
  const std::uint64_t entries = documents + 1;
  std::array<char, kIndexHeaderBytes> header{};
  std::memcpy(header.data(), kIndexMagic.data(), kIndexMagic.size());
  std::memcpy(header.data() + kIndexMagic.size(), &kIndexVersion, sizeof(kIndexVersion));
  header[kIndexTypeAt] = static_cast<char>(type);
  std::memcpy(header.data() + kIndexTypeAt + 1, &documents, sizeof(documents));
  std::memcpy(header.data() + kIndexTypeAt + 9, &entries, sizeof(entries));
  return index.write(header.data(), header.size());
}

/// Behind the lengths, which are read back block by block.
Status IndexedWriter::State::write_offsets() {
  constexpr std::size_t kBlock = 65536;
  std::vector<std::int32_t> lengths(kBlock);
  std::vector<std::int64_t> values(kBlock);
  std::int64_t offset = 0;
  const std::int64_t width = token_bytes(type);
  for (std::uint64_t first = 0; first < documents; first += kBlock) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, documents - first));
    HOLMES_TRY(index.read_at(kIndexHeaderBytes + 4 * first, lengths.data(), 4 * count));
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = offset;
      offset += width * lengths[i];
    }
    HOLMES_TRY(index.seek_to_end());
    HOLMES_TRY(index.write(values.data(), 8 * count));
  }
  for (std::uint64_t first = 0; first <= documents; first += kBlock) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, documents + 1 - first));
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int64_t>(first + i);
    HOLMES_TRY(index.write(values.data(), 8 * count));
  }
  return {};
}

IndexedWriter::IndexedWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
IndexedWriter::IndexedWriter(IndexedWriter&&) noexcept = default;
IndexedWriter& IndexedWriter::operator=(IndexedWriter&&) noexcept = default;
IndexedWriter::~IndexedWriter() = default;

Result<IndexedWriter> IndexedWriter::begin(const fs::path& prefix, std::uint32_t vocabulary) {
  auto state = std::make_unique<State>();
  state->type = vocabulary < kVocabularyOf16Bits ? TokenType::kU16 : TokenType::kI32;
  HOLMES_TRY(state->bin.open(prefix.string() + ".bin"));
  HOLMES_TRY(state->index.open(prefix.string() + ".idx"));
  HOLMES_TRY(state->write_header());  // again in the end, with the numbers
  return IndexedWriter(std::move(state));
}

Status IndexedWriter::add(std::span<const std::int32_t> tokens) {
  auto& state = *state_;
  state.in_document += tokens.size();
  if (state.type == TokenType::kI32) return state.bin.write(tokens.data(), tokens.size_bytes());
  state.narrow.assign(tokens.begin(), tokens.end());
  return state.bin.write(state.narrow.data(), state.narrow.size() * sizeof(state.narrow[0]));
}

Status IndexedWriter::end_document() {
  auto& state = *state_;
  if (state.in_document == 0) return {};
  if (state.in_document > std::numeric_limits<std::int32_t>::max()) {
    return Error(ErrorCode::kInvalidArgument,
                 "a document has " + std::to_string(state.in_document) +
                     " tokens; the format allows 2147483647: cut the text into several files");
  }
  const auto length = static_cast<std::int32_t>(state.in_document);
  state.tokens += state.in_document;
  state.in_document = 0;
  ++state.documents;
  return state.index.write(&length, sizeof(length));
}

Result<IndexFacts> IndexedWriter::finish() {
  auto& state = *state_;
  HOLMES_TRY(end_document());
  if (state.tokens == 0) {
    return Error(ErrorCode::kInvalidArgument, "there is no text: no token would be written");
  }
  HOLMES_TRY(state.write_offsets());
  HOLMES_TRY(state.index.seek_to_begin());
  HOLMES_TRY(state.write_header());
  HOLMES_TRY(state.index.flush());
  HOLMES_TRY(state.bin.flush());
  HOLMES_TRY(state.bin.keep());
  HOLMES_TRY(state.index.keep());
  return IndexFacts{state.type, state.documents, state.documents, state.tokens};
}

}  // namespace holmes::model

#include "holmes/model/documents.hpp"

#include <zlib.h>

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

namespace holmes::model {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadBytes = std::size_t{1} << 20;
/// Longest word or line: beyond it text is cut anywhere, and a JSON line is an error.
constexpr std::size_t kHeldBytesMax = std::size_t{1} << 28;

struct CloseGzip {
  void operator()(gzFile_s* file) const { gzclose_r(file); }
};

Error unusable(const fs::path& path, const std::string& why) {
  return Error(ErrorCode::kInvalidArgument, path.string() + " " + why);
}

Status collect(const fs::path& input, std::vector<fs::path>& files) {
  std::error_code failed;
  const auto status = fs::status(input, failed);
  if (!fs::exists(status)) return unusable(input, "does not exist; name files or folders of text");
  if (!fs::is_directory(status)) {
    files.push_back(input);
    return {};
  }
  std::vector<fs::path> found;
  auto entry = fs::recursive_directory_iterator(input, failed);
  for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    const bool hidden = entry->path().filename().string().starts_with('.');
    if (hidden && entry->is_directory()) entry.disable_recursion_pending();
    if (!hidden && entry->is_regular_file()) found.push_back(entry->path());
  }
  if (failed) return system_error("cannot read folder " + input.string(), failed.value());
  if (found.empty()) return unusable(input, "is a folder without files");
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
  return {};
}

bool holds_lines(const fs::path& path) {
  const auto name = path.extension() == ".gz" ? path.stem() : path.filename();
  return name.extension() == ".jsonl" || name.extension() == ".json";
}

/// The last place where cutting changes no word, 0 when there is none: before white space that
/// follows a letter.
std::size_t last_cut(std::string_view text) {
  for (const char space : {'\n', ' '}) {
    for (std::size_t at = text.rfind(space); at != std::string_view::npos && at > 0;
         at = text.rfind(space, at - 1)) {
      if (std::isalpha(static_cast<unsigned char>(text[at - 1])) != 0) return at;
    }
  }
  return 0;
}

}  // namespace

struct DocumentReader::State {
  std::vector<fs::path> files;
  std::string key;
  std::uint64_t bytes_total = 0;
  std::uint64_t bytes_before = 0;  ///< In files that have been read.

  std::size_t next_file = 0;
  std::unique_ptr<gzFile_s, CloseGzip> file;
  fs::path path;
  bool lines = false;
  bool file_ended = false;
  std::uint64_t line_number = 0;
  std::string held;
  std::size_t held_from = 0;

  Result<bool> open_next();
  Status read_more();
  Result<bool> next_line(DocumentPiece& piece);
  Result<bool> next_text(DocumentPiece& piece);
  Status parse_line(std::string_view line, DocumentPiece& piece) const;
  std::string_view rest() const { return std::string_view(held).substr(held_from); }
};

Result<bool> DocumentReader::State::open_next() {
  if (!path.empty()) {
    std::error_code failed;
    const auto size = fs::file_size(path, failed);
    if (!failed) bytes_before += size;
  }
  path.clear();
  file.reset();
  if (next_file == files.size()) return false;
  path = files[next_file++];
  file.reset(gzopen(path.c_str(), "rb"));
  if (file == nullptr) return system_error("cannot read " + path.string(), errno);
  gzbuffer(file.get(), kReadBytes);
  lines = holds_lines(path);
  file_ended = false;
  line_number = 0;
  held.clear();
  held_from = 0;
  return true;
}

Status DocumentReader::State::read_more() {
  held.erase(0, held_from);
  held_from = 0;
  const std::size_t before = held.size();
  held.resize(before + kReadBytes);
  const int count = gzread(file.get(), held.data() + before, static_cast<unsigned>(kReadBytes));
  held.resize(before + static_cast<std::size_t>(std::max(count, 0)));
  int code = Z_OK;
  const char* why = gzerror(file.get(), &code);
  // A stream that is cut short gives its bytes first and this error with them.
  if (count < 0 || code == Z_BUF_ERROR) {
    if (code == Z_ERRNO) return system_error("cannot read " + path.string(), errno);
    return Error(ErrorCode::kCorrupt, path.string() + ": damaged gzip data: " + why);
  }
  file_ended = static_cast<std::size_t>(count) < kReadBytes;
  return {};
}

Status DocumentReader::State::parse_line(std::string_view line, DocumentPiece& piece) const {
  const auto corrupt = [&](const std::string& why) {
    return Error(ErrorCode::kCorrupt,
                 path.string() + ":" + std::to_string(line_number) + ": " + why);
  };
  auto object = nlohmann::json::parse(line, nullptr, false);
  if (object.is_discarded()) return corrupt("no valid JSON");
  if (!object.is_object()) return corrupt("no JSON object");
  const auto found = object.find(key);
  if (found == object.end()) {
    return corrupt("the object has no key \"" + key + "\"; name the text's key with --key");
  }
  if (!found->is_string()) return corrupt("\"" + key + "\" is no text");
  piece = {std::move(found->get_ref<std::string&>()), true};
  return {};
}

Result<bool> DocumentReader::State::next_line(DocumentPiece& piece) {
  for (std::size_t searched = 0;;) {
    const auto end = rest().find('\n', searched);
    if (end == std::string_view::npos && !file_ended) {
      searched = rest().size();
      if (searched > kHeldBytesMax) {
        return Error(ErrorCode::kCorrupt, path.string() + ":" + std::to_string(line_number + 1) +
                                              ": a line of more than 256 MiB");
      }
      HOLMES_TRY(read_more());
      continue;
    }
    const auto line = rest().substr(0, end);
    if (line.empty() && end == std::string_view::npos) return false;
    ++line_number;
    const bool blank = line.find_first_not_of(" \t\r") == std::string_view::npos;
    if (!blank) HOLMES_TRY(parse_line(line, piece));
    held_from += end == std::string_view::npos ? line.size() : end + 1;
    if (!blank) return true;
    searched = 0;
  }
}

Result<bool> DocumentReader::State::next_text(DocumentPiece& piece) {
  while (!file_ended) {
    if (rest().size() >= kReadBytes) {
      std::size_t cut = last_cut(rest());
      if (cut == 0 && rest().size() > kHeldBytesMax) cut = rest().size();
      if (cut > 0) {
        piece = {std::string(rest().substr(0, cut)), false};
        held_from += cut;
        return true;
      }
    }
    HOLMES_TRY(read_more());
  }
  if (line_number > 0) return false;  // the end of this document has been given
  line_number = 1;
  piece = {std::string(rest()), true};
  return true;
}

DocumentReader::DocumentReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
DocumentReader::DocumentReader(DocumentReader&&) noexcept = default;
DocumentReader& DocumentReader::operator=(DocumentReader&&) noexcept = default;
DocumentReader::~DocumentReader() = default;

Result<DocumentReader> DocumentReader::open(const DocumentSource& source) {
  auto state = std::make_unique<State>();
  state->key = source.key;
  for (const auto& input : source.inputs) HOLMES_TRY(collect(input, state->files));
  if (state->files.empty()) {
    return Error(ErrorCode::kInvalidArgument, "no input; name files or folders of text");
  }
  for (const auto& file : state->files) {
    std::error_code failed;
    const auto size = fs::file_size(file, failed);
    if (!failed) state->bytes_total += size;
  }
  return DocumentReader(std::move(state));
}

Result<bool> DocumentReader::next(DocumentPiece& piece) {
  auto& state = *state_;
  for (;;) {
    if (state.file != nullptr) {
      HOLMES_TRY_ASSIGN(const bool found,
                        state.lines ? state.next_line(piece) : state.next_text(piece));
      if (found) return true;
    }
    HOLMES_TRY_ASSIGN(const bool opened, state.open_next());
    if (!opened) return false;
  }
}

std::uint64_t DocumentReader::bytes_total() const {
  return state_->bytes_total;
}

std::uint64_t DocumentReader::bytes_read() const {
  const auto* file = state_->file.get();
  const auto here = file == nullptr ? 0 : gzoffset(state_->file.get());
  return state_->bytes_before + static_cast<std::uint64_t>(std::max<z_off_t>(here, 0));
}

}  // namespace holmes::model

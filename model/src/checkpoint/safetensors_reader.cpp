#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "checkpoint/dtype.hpp"
#include "data/content_hash.hpp"
#include "data/mapped_file.hpp"
#include "holmes/base/assert.hpp"
#include "holmes/model/safetensors.hpp"

namespace holmes::model {
namespace {

using nlohmann::json;

/// The JSON library keeps the last of several equal keys; here a second one is an error.
class DuplicateKeys {
 public:
  bool operator()(int depth, json::parse_event_t event, json& value) {
    // Thrown through the library and caught by capture(): a bound on what hostile files can nest.
    if (depth > kDepthMax) throw std::length_error("nested too deeply");
    const auto level = static_cast<std::size_t>(depth);
    if (event == json::parse_event_t::object_start) {
      if (keys_.size() <= level) keys_.resize(level + 1);
      keys_[level].clear();
    } else if (event == json::parse_event_t::key) {
      const auto& name = value.get_ref<const std::string&>();
      // A key's depth is one more than that of its object.
      if (!keys_.at(level - 1).insert(name).second && !found_) found_ = name;
    }
    return true;
  }
  const std::optional<std::string>& found() const { return found_; }

 private:
  static constexpr int kDepthMax = 4;
  std::vector<std::set<std::string>> keys_;
  std::optional<std::string> found_;
};

Error corrupt(std::string_view file, const std::string& why) {
  return Error(ErrorCode::kCorrupt, std::string(file) + ": " + why);
}

Error corrupt_tensor(std::string_view file, const std::string& tensor, const std::string& why) {
  return corrupt(file, "tensor " + tensor + ": " + why);
}

/// The text of the header, once its length has been checked.
Result<std::string_view> header_text(std::span<const std::byte> content, std::string_view file) {
  if (content.size() < kLengthBytes) {
    return corrupt(file, "has " + std::to_string(content.size()) +
                             " bytes, too few for a safetensors file; it was cut short");
  }
  std::uint64_t length = 0;
  std::memcpy(&length, content.data(), kLengthBytes);
  if (length > kHeaderBytesMax) {
    return corrupt(
        file, "is no safetensors file: its header would have " + std::to_string(length) + " bytes");
  }
  if (length > content.size() - kLengthBytes) {
    return corrupt(file, "the header has " + std::to_string(length) + " bytes, the file only " +
                             std::to_string(content.size()) + "; it was cut short");
  }
  return std::string_view(reinterpret_cast<const char*>(content.data()) + kLengthBytes, length);
}

Result<json> parse_header(std::string_view text, std::string_view file) {
  if (text.empty() || text.front() != '{') return corrupt(file, "the header is no JSON object");
  DuplicateKeys duplicates;
  auto header = capture([&] { return json::parse(text, std::ref(duplicates)); });
  if (!header) return corrupt(file, "the header is not valid JSON: " + header.error().message());
  if (duplicates.found()) {
    return corrupt_tensor(file, *duplicates.found(), "the header names it twice");
  }
  return header;
}

std::optional<std::vector<std::uint64_t>> numbers(const json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<std::uint64_t> result;
  result.reserve(value.size());
  for (const auto& item : value) {
    if (!item.is_number_unsigned()) return std::nullopt;
    result.push_back(item.get<std::uint64_t>());
  }
  return result;
}

/// One entry of the header, whose offsets count from the end of the header.
Result<TensorInfo> parse_tensor(const std::string& name, const json& entry, std::string_view file) {
  if (!entry.is_object()) return corrupt_tensor(file, name, "its entry is no object");
  for (const auto& [key, value] : entry.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return corrupt_tensor(file, name, "unknown key \"" + key + "\"");
    }
  }
  const auto dtype_text = entry.find("dtype");
  if (dtype_text == entry.end() || !dtype_text->is_string()) {
    return corrupt_tensor(file, name, "has no dtype");
  }
  const auto dtype = parse_dtype(dtype_text->get_ref<const std::string&>());
  if (!dtype) {
    return corrupt_tensor(file, name, "unknown dtype " + dtype_text->get<std::string>());
  }
  const auto shape = entry.contains("shape") ? numbers(entry["shape"]) : std::nullopt;
  if (!shape) return corrupt_tensor(file, name, "has no valid shape");
  const auto offsets =
      entry.contains("data_offsets") ? numbers(entry["data_offsets"]) : std::nullopt;
  if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1]) {
    return corrupt_tensor(file, name, "has no valid data_offsets");
  }
  const auto needed = tensor_bytes(*dtype, *shape);
  const std::uint64_t given = (*offsets)[1] - (*offsets)[0];
  if (!needed || *needed != given) {
    return corrupt_tensor(file, name,
                          "its shape and dtype need " +
                              (needed ? std::to_string(*needed) : std::string("too many")) +
                              " bytes, its data_offsets span " + std::to_string(given));
  }
  return TensorInfo{name, *dtype, *shape, (*offsets)[0], given};
}

Status parse_metadata(const json& entry, std::map<std::string, std::string>& metadata,
                      std::string_view file) {
  if (!entry.is_object()) return corrupt(file, "the metadata are no object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return corrupt(file, "metadata \"" + key + "\" is no text");
    metadata[key] = value.get<std::string>();
  }
  return {};
}

/// Sorts the tensors by place and checks that they fill the data exactly.
Status place_tensors(std::vector<TensorInfo>& tensors, std::uint64_t data_begin,
                     std::uint64_t data_bytes, std::string_view file) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.bytes != b.bytes) return a.bytes < b.bytes;  // empty ones before what follows them
    return a.name < b.name;
  });
  std::uint64_t end = 0;
  for (auto& tensor : tensors) {
    if (tensor.begin != end) {
      return corrupt_tensor(file, tensor.name,
                            std::string(tensor.begin < end ? "overlaps the tensor before it"
                                                           : "leaves a gap before it") +
                                " (begins at " + std::to_string(tensor.begin) + ", expected " +
                                std::to_string(end) + ")");
    }
    end += tensor.bytes;
    if (end > data_bytes) {
      return corrupt_tensor(file, tensor.name,
                            "is cut short: its data end at byte " + std::to_string(end) +
                                ", the file has " + std::to_string(data_bytes));
    }
    tensor.begin += data_begin;
  }
  if (end != data_bytes) {
    return corrupt(file, std::to_string(data_bytes - end) + " bytes follow the last tensor");
  }
  return {};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> content,
                                            std::string_view name) {
  HOLMES_TRY_ASSIGN(const std::string_view text, header_text(content, name));
  HOLMES_TRY_ASSIGN(const json header, parse_header(text, name));
  SafetensorsHeader result;
  for (const auto& [key, entry] : header.items()) {
    if (key == kMetadataKey) {
      HOLMES_TRY(parse_metadata(entry, result.metadata, name));
      continue;
    }
    HOLMES_TRY_ASSIGN(TensorInfo tensor, parse_tensor(key, entry, name));
    result.tensors.push_back(std::move(tensor));
  }
  const std::uint64_t data_begin = kLengthBytes + text.size();
  HOLMES_TRY(place_tensors(result.tensors, data_begin, content.size() - data_begin, name));
  return result;
}

struct SafetensorsFile::State {
  MappedFile file;
  SafetensorsHeader header;
  std::map<std::string, std::size_t, std::less<>> by_name;
};

SafetensorsFile::SafetensorsFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  HOLMES_TRY_ASSIGN(MappedFile file, MappedFile::open(path, "file"));
  HOLMES_TRY_ASSIGN(SafetensorsHeader header, parse_safetensors(file.bytes(), path.string()));
  auto state = std::make_unique<State>(State{std::move(file), std::move(header), {}});
  for (std::size_t i = 0; i < state->header.tensors.size(); ++i) {
    state->by_name[state->header.tensors[i].name] = i;
  }
  return SafetensorsFile(std::move(state));
}

const std::vector<TensorInfo>& SafetensorsFile::tensors() const {
  return state_->header.tensors;
}

const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return state_->header.metadata;
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : &state_->header.tensors[found->second];
}

std::span<const std::byte> SafetensorsFile::bytes(const TensorInfo& tensor) const {
  HOLMES_ASSERT(tensor.begin + tensor.bytes <= state_->file.bytes().size(),
                "a tensor of another file");
  return state_->file.bytes().subspan(tensor.begin, tensor.bytes);
}

std::uint64_t SafetensorsFile::file_bytes() const {
  return state_->file.bytes().size();
}

std::string SafetensorsFile::hash() const {
  return content_hash(state_->file.bytes());
}

}  // namespace holmes::model

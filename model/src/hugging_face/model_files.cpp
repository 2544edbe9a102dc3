#include "hugging_face/model_files.hpp"

#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "data/mapped_file.hpp"

namespace holmes::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kSmallFileBytesMax = std::size_t{64} << 20;
constexpr std::string_view kPrefix = "transformer.";

/// Names of the files beside the index. They may not lead out of the folder.
std::set<std::string> files_of(const std::string& index) {
  const auto object = json::parse(index);
  const auto& map = object.at("weight_map");
  if (!map.is_object()) throw std::invalid_argument("\"weight_map\" is no object");
  std::set<std::string> names;
  for (const auto& [tensor, value] : map.items()) {
    auto name = value.get<std::string>();
    if (name.empty() || fs::path(name).filename() != fs::path(name))
      throw std::invalid_argument("tensor " + tensor + " lies in \"" + name +
                                  "\", which is no name of a file beside it");
    names.insert(std::move(name));
  }
  return names;
}

}  // namespace

Result<std::string> read_small_file(const fs::path& path) {
  HOLMES_TRY_ASSIGN(const auto file, MappedFile::open(path, "model file"));
  const auto bytes = file.bytes();
  if (bytes.size() > kSmallFileBytesMax)
    return Error(ErrorCode::kCorrupt,
                 path.string() + ": has " + std::to_string(bytes.size()) + " bytes, too many");
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<ModelFiles> ModelFiles::open(const fs::path& folder) {
  ModelFiles result;
  std::error_code ignored;
  const auto index = folder / kHuggingFaceIndex;
  if (fs::exists(folder / kHuggingFaceModel, ignored) || !fs::exists(index, ignored)) {
    HOLMES_TRY(result.add(folder / kHuggingFaceModel));
    return result;
  }
  HOLMES_TRY_ASSIGN(const auto text, read_small_file(index));
  const auto names = capture([&] { return files_of(text); });
  if (!names) return Error(ErrorCode::kCorrupt, index.string() + ": " + names.error().message());
  for (const auto& name : *names) HOLMES_TRY(result.add(folder / name));
  return result;
}

Status ModelFiles::add(const fs::path& path) {
  HOLMES_TRY_ASSIGN(auto file, SafetensorsFile::open(path));
  files_.push_back(std::make_unique<SafetensorsFile>(std::move(file)));
  for (const auto& info : files_.back()->tensors()) {
    std::string name = info.name;
    if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
    if (!tensors_.emplace(name, Tensor{&info, files_.back().get()}).second)
      return Error(ErrorCode::kCorrupt,
                   path.string() + ": tensor " + info.name + ": is there twice");
  }
  return {};
}

const ModelFiles::Tensor* ModelFiles::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace holmes::model

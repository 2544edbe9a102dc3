#pragma once

// The safetensors files of a folder as transformers lays them out, opened and checked.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/result.hpp"
#include "holmes/model/safetensors.hpp"

namespace holmes::model {

constexpr const char* kHuggingFaceConfig = "config.json";
constexpr const char* kHuggingFaceModel = "model.safetensors";
constexpr const char* kHuggingFaceIndex = "model.safetensors.index.json";

/// A small file's content. kCorrupt when it is too large to be what it should be.
Result<std::string> read_small_file(const std::filesystem::path& path);

class ModelFiles {
 public:
  struct Tensor {
    const TensorInfo* info = nullptr;
    const SafetensorsFile* file = nullptr;
  };

  /// model.safetensors, or all files that model.safetensors.index.json names.
  static Result<ModelFiles> open(const std::filesystem::path& folder);

  /// By name, without "transformer." in front.
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }
  const Tensor* find(std::string_view name) const;

 private:
  Status add(const std::filesystem::path& path);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace holmes::model

#pragma once

// Names inside a checkpoint, and the runs of a tensor that a part of a layer's flat array covers.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "holmes/base/ids.hpp"
#include "holmes/model/checkpoint.hpp"

namespace holmes::model {

constexpr const char* kManifestName = "manifest.json";
constexpr const char* kConfigName = "config.json";
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kModelPart = "model";
constexpr const char* kOptimizerPart = "optimizer";
constexpr std::string_view kUnfinishedSuffix = ".tmp";
constexpr std::uint32_t kPartsMax = 99999;

/// "step-00000100".
std::string step_name(Step step);
/// The step of a folder's name, with `suffix` after it.
std::optional<Step> parse_step_name(std::string_view name, std::string_view suffix);

/// "model-00001-of-00002.safetensors".
std::string part_name(std::string_view kind, PartNumber part);
struct PartName {
  std::string kind;
  PartNumber part;
};
std::optional<PartName> parse_part_name(std::string_view name);

enum class Moment : std::uint8_t { kExpAvg, kExpAvgSq };

/// A tensor of an optimizer file: a run of elements of a parameter's moment.
struct MomentName {
  Moment moment = Moment::kExpAvg;
  std::string parameter;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};
/// "exp_avg:h.3.mlp.c_fc.weight:65536+65536".
std::string encode(const MomentName& name);
std::optional<MomentName> parse_moment_name(std::string_view name);

/// The part of one tensor that lies in a range of a layer's flat array.
struct TensorRun {
  const ParameterSpec* tensor = nullptr;
  std::size_t first = 0;   ///< Within the tensor.
  std::size_t count = 0;   ///< Elements.
  std::size_t offset = 0;  ///< Within the range.
};
/// In element order; the range must lie within the layer.
std::vector<TensorRun> runs_of(std::span<const ParameterSpec> parameters, std::size_t first,
                               std::size_t count);

}  // namespace holmes::model

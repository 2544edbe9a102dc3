#include "checkpoint/layout.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "holmes/base/assert.hpp"

namespace holmes::model {
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kExpAvg = "exp_avg";
constexpr std::string_view kExpAvgSq = "exp_avg_sq";
constexpr std::string_view kTensorSuffix = ".safetensors";

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::string padded(std::uint64_t value, int width) {
  std::string text = std::to_string(value);
  const auto wanted = static_cast<std::size_t>(width);
  if (text.size() < wanted) text.insert(0, wanted - text.size(), '0');
  return text;
}

}  // namespace

std::string step_name(Step step) {
  constexpr int kWidth = 8;
  return std::string(kStepPrefix) + padded(step.value(), kWidth);
}

std::optional<Step> parse_step_name(std::string_view name, std::string_view suffix) {
  if (!name.starts_with(kStepPrefix) || !name.ends_with(suffix)) return std::nullopt;
  if (name.size() < kStepPrefix.size() + suffix.size()) return std::nullopt;
  name.remove_prefix(kStepPrefix.size());
  name.remove_suffix(suffix.size());
  const auto step = parse_number<std::uint64_t>(name);
  // Only names as we write them: two folders of one step must not exist.
  if (!step || step_name(Step(*step)).substr(kStepPrefix.size()) != name) return std::nullopt;
  return Step(*step);
}

std::string part_name(std::string_view kind, PartNumber part) {
  constexpr int kWidth = 5;
  return std::string(kind) + "-" + padded(part.index + 1, kWidth) + "-of-" +
         padded(part.count, kWidth) + std::string(kTensorSuffix);
}

std::optional<PartName> parse_part_name(std::string_view name) {
  for (const std::string_view kind : {kModelPart, kOptimizerPart}) {
    constexpr std::size_t kDigits = 5;
    constexpr std::string_view kOf = "-of-";
    if (!name.starts_with(kind)) continue;
    const auto index_at = kind.size() + 1;
    const auto count_at = index_at + kDigits + kOf.size();
    if (name.size() != count_at + kDigits + kTensorSuffix.size()) return std::nullopt;
    const auto index = parse_number<std::uint32_t>(name.substr(index_at, kDigits));
    const auto count = parse_number<std::uint32_t>(name.substr(count_at, kDigits));
    if (!index || !count || *index == 0 || *index > *count) return std::nullopt;
    const PartNumber part{*index - 1, *count};
    if (part_name(kind, part) != name) return std::nullopt;
    return PartName{std::string(kind), part};
  }
  return std::nullopt;
}

std::string encode(const MomentName& name) {
  return std::string(name.moment == Moment::kExpAvg ? kExpAvg : kExpAvgSq) + ":" + name.parameter +
         ":" + std::to_string(name.first) + "+" + std::to_string(name.count);
}

std::optional<MomentName> parse_moment_name(std::string_view name) {
  const auto kind_end = name.find(':');
  const auto range_at = name.rfind(':');
  if (kind_end == std::string_view::npos || range_at <= kind_end + 1) return std::nullopt;
  const auto kind = name.substr(0, kind_end);
  if (kind != kExpAvg && kind != kExpAvgSq) return std::nullopt;
  const auto range = name.substr(range_at + 1);
  const auto plus = range.find('+');
  if (plus == std::string_view::npos) return std::nullopt;
  const auto first = parse_number<std::uint64_t>(range.substr(0, plus));
  const auto count = parse_number<std::uint64_t>(range.substr(plus + 1));
  if (!first || !count) return std::nullopt;
  return MomentName{kind == kExpAvg ? Moment::kExpAvg : Moment::kExpAvgSq,
                    std::string(name.substr(kind_end + 1, range_at - kind_end - 1)), *first,
                    *count};
}

std::vector<TensorRun> runs_of(std::span<const ParameterSpec> parameters, std::size_t first,
                               std::size_t count) {
  std::vector<TensorRun> runs;
  const std::size_t last = first + count;
  std::size_t covered = 0;
  for (const auto& tensor : parameters) {
    const std::size_t begin = std::max(first, tensor.offset);
    const std::size_t end = std::min(last, tensor.offset + tensor.count);
    if (begin >= end) continue;
    runs.push_back({&tensor, begin - tensor.offset, end - begin, begin - first});
    covered += end - begin;
  }
  HOLMES_ASSERT(covered == count, "a range outside its layer");
  return runs;
}

}  // namespace holmes::model

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "holmes/base/assert.hpp"
#include "holmes/model/generate.hpp"

namespace holmes::model {

Status validate(const GenerateOptions& options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature)) {
    return Error(ErrorCode::kInvalidArgument,
                 "the temperature is " + std::to_string(options.temperature) +
                     "; it must be 0 (always the likeliest token) or more, such as 0.8");
  }
  return {};
}

std::int32_t sample_token(std::span<const float> logits, const GenerateOptions& options,
                          Random& random) {
  HOLMES_ASSERT(!logits.empty(), "nothing to choose from");
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto logit = [&](std::int32_t id) { return logits[static_cast<std::size_t>(id)]; };
  // Equal logits in the order of ids, so that the choice does not hang on the sort.
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
  };
  if (options.temperature == 0) return *std::min_element(ids.begin(), ids.end(), likelier);
  const std::size_t count =
      options.top_k == 0 ? ids.size() : std::min<std::size_t>(options.top_k, ids.size());
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                    likelier);
  const double highest = double{logit(ids.front())};
  std::vector<double> weights(count);
  for (std::size_t i = 0; i < count; ++i) {
    weights[i] = std::exp((double{logit(ids[i])} - highest) / double{options.temperature});
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double point = random.uniform() * total;
  for (std::size_t i = 0; i < count; ++i) {
    if (point < weights[i]) return ids[i];
    point -= weights[i];
  }
  return ids.front();  // rounding has used up the last weight
}

}  // namespace holmes::model

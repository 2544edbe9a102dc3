#include "holmes/base/assert.hpp"
#include "holmes/base/random.hpp"
#include "holmes/model/gpt.hpp"

namespace holmes::model {
namespace {

std::uint64_t hash_of(const std::string& name) {
  std::uint64_t hash = name.size();
  for (const char c : name) hash = mix64(hash ^ static_cast<unsigned char>(c));
  return hash;
}

/// A nearly normal number of deviation 1: the sum of twelve uniform 16-bit numbers, whose variance
/// is 2^32 - 1. Integer arithmetic only, since logarithms and cosines differ between C libraries.
double standard_normal(std::uint64_t stream, std::uint64_t element) {
  constexpr std::int64_t kMiddle = 12 * 65535 / 2;
  std::int64_t sum = 0;
  for (std::uint64_t word = 0; word < 3; ++word) {
    const std::uint64_t bits = mix64(stream + 3 * element + word);
    for (int shift = 0; shift < 64; shift += 16)
      sum += static_cast<std::int64_t>((bits >> shift) & 0xffff);
  }
  return static_cast<double>(sum - kMiddle) * 0x1.0p-16;
}

}  // namespace

void initialise(const std::vector<ParameterSpec>& parameters, std::uint64_t seed,
                std::span<float> values) {
  for (const auto& tensor : parameters) {
    HOLMES_ASSERT(tensor.offset + tensor.count <= values.size(), tensor.name.c_str());
    const std::uint64_t stream = mix64(mix64(seed) ^ hash_of(tensor.name));
    const double deviation = tensor.init_stddev;
    const auto part = values.subspan(tensor.offset, tensor.count);
    for (std::size_t i = 0; i < part.size(); ++i)
      part[i] = deviation == 0 ? tensor.init_value
                               : static_cast<float>(deviation * standard_normal(stream, i));
  }
}

}  // namespace holmes::model

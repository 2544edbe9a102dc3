// Goal: fuzz entries also run where there is no libFuzzer. Method: samples with a few random bytes
// changed, removed or repeated, from fixed seeds, so that a failure happens again. With a folder as
// its argument it only writes the samples there: a corpus for libFuzzer to begin with.
#include <algorithm>
#include <cstdio>
#include <fstream>

#include "fuzz_entry.hpp"
#include "holmes/base/random.hpp"

namespace {

using holmes::Random;

void change(std::string& input, Random& random) {
  if (input.empty()) return;
  const auto at = random.below(input.size());
  const auto length = std::min<std::size_t>(1 + random.below(8), input.size() - at);
  switch (random.below(5)) {
    case 0:
      input[at] = static_cast<char>(random());
      break;
    case 1:
      input[at] = static_cast<char>(input[at] ^ (1 << random.below(8)));
      break;
    case 2:
      input.erase(at, length);
      break;
    case 3:
      input.insert(at, input.substr(random.below(input.size()), length));
      break;
    default:
      input.resize(at);
  }
}

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

bool write_samples(const std::string& folder) {
  int number = 0;
  for (const auto& sample : fuzz_samples()) {
    std::ofstream file(folder + "/sample-" + std::to_string(number++), std::ios::binary);
    file << sample;
    if (!file.flush()) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) return write_samples(argv[1]) ? 0 : 1;
  constexpr int kRounds = 10'000;
  int count = 0;
  for (const auto& sample : fuzz_samples()) {
    run(sample);
    for (int round = 0; round < kRounds; ++round) {
      Random random(static_cast<std::uint64_t>(round));
      std::string input = sample;
      const auto changes = 1 + random.below(4);
      for (std::uint64_t i = 0; i < changes; ++i) change(input, random);
      run(input);
      ++count;
    }
  }
  std::printf("%d inputs\n", count);
  return count > 0 ? 0 : 1;
}

// Goal: fuzz entries also run where there is no libFuzzer. Method: samples with a few random bytes
// changed, removed or repeated, from fixed seeds, so that a failure happens again: a fixed number
// of them, and with -max_total_time=SECONDS more until that time is over. With a folder as its
// argument it only writes the samples there: a corpus for libFuzzer to begin with.
#include <algorithm>
#include <charconv>
#include <chrono>
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

/// One changed input of each sample.
void run_round(const std::vector<std::string>& samples, std::uint64_t round) {
  for (const auto& sample : samples) {
    Random random(round);
    std::string input = sample;
    const auto changes = 1 + random.below(4);
    for (std::uint64_t i = 0; i < changes; ++i) change(input, random);
    run(input);
  }
}

std::chrono::seconds time_in(std::string_view argument) {
  constexpr std::string_view kOption = "-max_total_time=";
  int seconds = 0;
  if (argument.starts_with(kOption))
    std::from_chars(argument.data() + kOption.size(), argument.data() + argument.size(), seconds);
  return std::chrono::seconds(seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view argument = argc == 2 ? argv[1] : "";
  if (!argument.empty() && !argument.starts_with("-")) return write_samples(argv[1]) ? 0 : 1;
  constexpr std::uint64_t kRounds = 10'000;
  const auto end = std::chrono::steady_clock::now() + time_in(argument);
  const auto samples = fuzz_samples();
  for (const auto& sample : samples) run(sample);
  std::uint64_t round = 0;
  for (; round < kRounds || std::chrono::steady_clock::now() < end; ++round)
    run_round(samples, round);
  std::printf("%zu inputs\n", samples.size() * round);
  return samples.empty() ? 1 : 0;
}

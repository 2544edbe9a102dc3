// Goal: no index of a data set, however damaged, leads outside of its files. Method: the first two
// bytes of an input are the size of the .bin, the rest is the .idx; what is accepted must add up.
#include <cstdlib>
#include <cstring>
#include <span>

#include "fuzz_entry.hpp"
#include "holmes/model/indexed.hpp"

namespace {

using namespace holmes::model;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

std::vector<std::string> fuzz_samples() {
  std::string sample;
  append<std::uint16_t>(sample, 10);
  sample.append("MMIDIDX\0\0", 9);
  append<std::uint64_t>(sample, 1);
  append<std::uint8_t>(sample, 8);
  append<std::uint64_t>(sample, 2);
  append<std::uint64_t>(sample, 3);
  for (const std::int32_t length : {3, 2}) append(sample, length);
  for (const std::int64_t offset : {0, 6}) append(sample, offset);
  for (const std::int64_t document : {0, 1, 2}) append(sample, document);
  return {sample};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint16_t bin_bytes = 0;
  if (size < sizeof(bin_bytes)) return 0;
  std::memcpy(&bin_bytes, data, sizeof(bin_bytes));
  const auto index = std::as_bytes(std::span(data, size)).subspan(sizeof(bin_bytes));
  const auto facts = check_index(index, bin_bytes, "input");
  if (!facts) {
    require(facts.error().code() == holmes::ErrorCode::kCorrupt);
    return 0;
  }
  require(facts->tokens * token_bytes(facts->type) == bin_bytes);
  require(34 + 12 * facts->sequences + 8 * (facts->documents + 1) == index.size());
  return 0;
}

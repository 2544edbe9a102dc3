// Ids of a text, and how fast they come: tokenizer_bench TOKENIZER TEXT [IDS.i32]. With IDS, the
// ids that another program gave (32-bit, little endian) are compared; a difference ends with 1.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "holmes/base/clock.hpp"
#include "holmes/model/tokenizer.hpp"

namespace {

std::string content_of(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

double seconds_of(holmes::model::Encoder& encoder, const std::string& text,
                  std::vector<std::int32_t>& ids) {
  const holmes::SteadyClock clock;
  const auto start = clock.now();
  ids.clear();
  encoder.encode(text, ids);
  return std::chrono::duration<double>(clock.now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::puts("usage: tokenizer_bench TOKENIZER TEXT [IDS.i32]"), 2;
  const auto tokenizer = holmes::model::make_tokenizer(argv[1]);
  if (!tokenizer) return std::puts(tokenizer.error().message().c_str()), 2;
  const std::string text = content_of(argv[2]);
  std::vector<std::int32_t> ids;
  const auto encoder = (*tokenizer)->make_encoder(holmes::model::SpecialTokens::kAsText);
  const double cold = seconds_of(*encoder, text, ids);
  const double warm = seconds_of(*encoder, text, ids);
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  std::printf("%zu tokens, %.2f MB/s (first time %.2f)\n", ids.size(), megabytes / warm,
              megabytes / cold);
  if ((*tokenizer)->decode(ids) != text) return std::puts("decode(encode(x)) differs"), 1;
  if (argc < 4) return 0;
  const std::string other = content_of(argv[3]);
  const bool same = other.size() == ids.size() * sizeof(ids[0]) &&
                    std::memcmp(other.data(), ids.data(), other.size()) == 0;
  std::puts(same ? "the same ids" : "other ids");
  return same ? 0 : 1;
}

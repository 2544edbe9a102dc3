// Goal: no tokenizer file breaks the reader, and one that is accepted loses no byte of text.
// Method: an input is a tokenizer.json, a zero byte, and a text; those of the samples have 256
// bytes, a merge, a special token and a regular expression.
#include <cstdlib>
#include <limits>

#include "fuzz_entry.hpp"
#include "holmes/model/tokenizer.hpp"

namespace {

using namespace holmes::model;

void require(bool condition) {
  if (!condition) std::abort();
}

std::string trained() {
  BpeTrainer trainer;
  trainer.add("ab ab ab abc abc");
  return trainer.train(260).value_or("");
}

}  // namespace

std::vector<std::string> fuzz_samples() {
  const std::string text = std::string("\0", 1) + "abc ab\xff<|endoftext|>\xc3\xa9 12";
  std::string split = trained();
  const std::string regex =
      R"({"type":"Split","behavior":"Isolated","pattern":{"Regex":"\\p{N}|\\s+"}},)";
  const std::string at = R"("pre_tokenizer": {)";
  const auto begin = split.find(at);
  const auto end = split.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {trained() + text};
  split.insert(end + 1, "]}");
  split.insert(begin + at.size() - 1, R"({"type":"Sequence","pretokenizers":[)" + regex);
  return {trained() + text, split + text};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const auto end = std::min(input.find('\0'), input.size());
  const auto tokenizer = parse_tokenizer_json(input.substr(0, end), "input");
  if (!tokenizer) {
    require(tokenizer.error().code() == holmes::ErrorCode::kCorrupt);
    return 0;
  }
  const std::string text = input.substr(end);
  const auto ids = (*tokenizer)->encode(text);
  const bool changes = input.find("NF") < end || input.find("add_prefix_space") < end;
  const std::string back = (*tokenizer)->decode(ids);
  require(back == text || (changes && back.size() >= text.size() / 4));
  for (const auto id : ids) require(id >= 0 && id < std::numeric_limits<std::int32_t>::max());
  return 0;
}

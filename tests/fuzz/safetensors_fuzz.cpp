// Goal: no bytes, however made, crash the safetensors reader or pass it with tensors outside the
// file. Method: the input as a file, and once more as the header and data of one whose length field
// is right, so that the fuzzer reaches the checks behind it.
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <span>

#include "fuzz_entry.hpp"
#include "holmes/model/safetensors.hpp"

namespace {

using namespace holmes::model;

void require(bool condition) {
  if (!condition) std::abort();
}

void check(std::span<const std::byte> content) {
  const auto header = parse_safetensors(content, "input");
  if (!header) {
    require(header.error().code() == holmes::ErrorCode::kCorrupt);
    require(!header.error().message().empty());
    return;
  }
  std::uint64_t end = content.size();
  for (auto tensor = header->tensors.rbegin(); tensor != header->tensors.rend(); ++tensor) {
    const auto elements = std::accumulate(tensor->shape.begin(), tensor->shape.end(),
                                          std::uint64_t{1}, std::multiplies<>());
    require(tensor->bytes == elements * element_bytes(tensor->dtype));
    require(tensor->begin + tensor->bytes == end);
    end = tensor->begin;
  }
}

std::string framed(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + data;
}

}  // namespace

std::vector<std::string> fuzz_samples() {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]},)"
      R"("c":{"dtype":"I64","shape":[],"data_offsets":[14,22]}} )";
  const std::string data(22, 'x');
  return {framed(header, data), header + "\n" + data};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  check(std::as_bytes(std::span(input)));
  const auto line = std::min(input.find('\n'), input.size());
  const auto file = framed(input.substr(0, line), input.substr(std::min(line + 1, input.size())));
  check(std::as_bytes(std::span(file)));
  return 0;
}

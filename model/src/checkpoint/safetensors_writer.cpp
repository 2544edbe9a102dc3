#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>

#include <nlohmann/json.hpp>

#include "checkpoint/dtype.hpp"
#include "checkpoint/file_writer.hpp"
#include "holmes/model/safetensors.hpp"

namespace holmes::model {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie");

Status check(const TensorToWrite& tensor, std::set<std::string_view>& names) {
  const auto bad = [&](const std::string& why) {
    return Error(ErrorCode::kInvalidArgument, "tensor " + tensor.name + ": " + why);
  };
  if (tensor.name.empty() || tensor.name == kMetadataKey) return bad("no name for a tensor");
  if (!names.insert(tensor.name).second) return bad("given twice");
  const auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
  if (!bytes) return bad("the shape is too large");
  if (*bytes != tensor.bytes.size()) {
    return bad("the shape needs " + std::to_string(*bytes) + " bytes, given are " +
               std::to_string(tensor.bytes.size()));
  }
  return {};
}

/// The wider types first, so that every tensor is aligned to its elements.
std::vector<const TensorToWrite*> in_file_order(std::span<const TensorToWrite> tensors) {
  std::vector<const TensorToWrite*> order;
  order.reserve(tensors.size());
  for (const auto& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return element_bytes(a->dtype) > element_bytes(b->dtype);
  });
  return order;
}

/// Length field and JSON, padded with blanks so that the data begin at a multiple of 8.
std::string encode_header(const std::vector<const TensorToWrite*>& tensors,
                          const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  std::uint64_t offset = 0;
  for (const auto* tensor : tensors) {
    const std::uint64_t end = offset + tensor->bytes.size();
    header[tensor->name] = {{"dtype", to_string(tensor->dtype)},
                            {"shape", tensor->shape},
                            {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string json = header.dump();
  json.append((kLengthBytes - json.size() % kLengthBytes) % kLengthBytes, ' ');
  const std::uint64_t length = json.size();
  std::string encoded(kLengthBytes, '\0');
  std::memcpy(encoded.data(), &length, kLengthBytes);
  return encoded + json;
}

}  // namespace

Result<FileSummary> write_safetensors(const std::filesystem::path& path,
                                      std::span<const TensorToWrite> tensors,
                                      const std::map<std::string, std::string>& metadata) {
  std::set<std::string_view> names;
  for (const auto& tensor : tensors) {
    if (auto checked = check(tensor, names); !checked) return checked.error().in(path.string());
  }
  const auto order = in_file_order(tensors);
  // The JSON library throws on names that are not UTF-8.
  const auto header = capture([&] { return encode_header(order, metadata); });
  if (!header) return header.error().in(path.string());
  if (header->size() - kLengthBytes > kHeaderBytesMax) {
    return Error(ErrorCode::kInvalidArgument, path.string() + ": too many tensors for one header");
  }
  const std::uint64_t bytes = std::accumulate(
      order.begin(), order.end(), std::uint64_t{header->size()},
      [](std::uint64_t sum, const auto* tensor) { return sum + tensor->bytes.size(); });
  HOLMES_TRY_ASSIGN(FileWriter writer, FileWriter::create(path, bytes));
  HOLMES_TRY(writer.write(std::as_bytes(std::span(header->data(), header->size()))));
  for (const auto* tensor : order) HOLMES_TRY(writer.write(tensor->bytes));
  return writer.finish();
}

}  // namespace holmes::model

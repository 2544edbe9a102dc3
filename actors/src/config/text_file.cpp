#include "config/text_file.hpp"

#include <fstream>
#include <system_error>

#include "holmes/base/limits.hpp"

namespace holmes::actors {

Result<std::string> read_text_file(const std::filesystem::path& file) {
  const auto invalid = [&](const std::string& what) {
    return Error(ErrorCode::kInvalidArgument, file.string() + ": " + what);
  };
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) return invalid("no such file");
  // A pipe or a device might never end.
  if (!std::filesystem::is_regular_file(status)) return invalid("is not a regular file");
  const auto size = std::filesystem::file_size(file, error);
  if (error) return invalid(error.message());
  if (size > limits::kConfigBytesMax) {
    return invalid("has " + std::to_string(size) + " bytes; at most " +
                   std::to_string(limits::kConfigBytesMax) + " are read");
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text(size, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(size));
  // A file that shrank meanwhile: what was read is all there is.
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  if (stream.bad() || (!stream && !stream.eof())) return invalid("cannot be read");
  return text;
}

}  // namespace holmes::actors

#include "checkpoint/file_writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "holmes/base/assert.hpp"
#include "holmes/base/units.hpp"

namespace holmes::model {
namespace {

constexpr std::size_t kWriteBytesMax = 8 * kMiB;

bool out_of_room(int why) {
  return why == ENOSPC || why == EDQUOT || why == EFBIG;
}

std::string free_bytes(const std::filesystem::path& folder) {
  std::error_code failed;
  const auto space = std::filesystem::space(folder, failed);
  return failed ? std::string("unknown") : std::to_string(space.available);
}

int reserve(int descriptor, std::uint64_t bytes) {
  if (bytes == 0) return 0;
  while (::fallocate(descriptor, 0, 0, static_cast<off_t>(bytes)) != 0) {
    if (errno == EINTR) continue;
    // Not every file system can reserve; there, a lack of room shows when the bytes are written.
    return out_of_room(errno) ? errno : 0;
  }
  return 0;
}

}  // namespace

FileWriter::FileWriter(std::filesystem::path path, std::uint64_t bytes)
    : path_(std::move(path)),
      unfinished_(path_.string() + ".part"),
      bytes_(bytes),
      hash_(std::make_unique<ContentHash>()) {}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      unfinished_(std::move(other.unfinished_)),
      bytes_(other.bytes_),
      written_(other.written_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      hash_(std::move(other.hash_)) {}

FileWriter::~FileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(unfinished_.c_str());
}

Result<FileWriter> FileWriter::create(const std::filesystem::path& path, std::uint64_t bytes) {
  FileWriter writer(path, bytes);
  constexpr mode_t kMode = 0644;
  writer.descriptor_ =
      ::open(writer.unfinished_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (writer.descriptor_ < 0) return writer.failure("cannot create", errno);
  if (const int why = reserve(writer.descriptor_, bytes); why != 0) {
    return writer.failure("cannot write", why);
  }
  return writer;
}

Status FileWriter::write(std::span<const std::byte> bytes) {
  HOLMES_ASSERT(bytes.size() <= bytes_ - written_, "more bytes than the file was created for");
  hash_->update(bytes);
  while (!bytes.empty()) {
    const auto count = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kWriteBytesMax));
    if (count < 0) {
      if (errno == EINTR) continue;
      return failure("cannot write", errno);
    }
    written_ += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Result<FileSummary> FileWriter::finish() {
  HOLMES_ASSERT(written_ == bytes_, "the file is not whole");
  if (::fsync(descriptor_) != 0) return failure("cannot write", errno);
  if (::rename(unfinished_.c_str(), path_.c_str()) != 0) return failure("cannot name", errno);
  ::close(std::exchange(descriptor_, -1));
  return FileSummary{path_.filename().string(), bytes_, hash_->hex()};
}

Error FileWriter::failure(std::string_view action, int why) const {
  const std::string what = std::string(action) + " " + path_.string();
  if (!out_of_room(why)) return system_error(what, why);
  const std::string reason = why == EFBIG    ? "files may not become so large (ulimit -f)"
                             : why == EDQUOT ? "the disk quota is used up"
                                             : "the disk is full";
  return Error(ErrorCode::kOutOfResources, what + ": " + reason + "; the file needs " +
                                               std::to_string(bytes_) + " bytes, free are " +
                                               free_bytes(path_.parent_path()));
}

Result<FileSummary> write_file(const std::filesystem::path& path, std::string_view text) {
  HOLMES_TRY_ASSIGN(FileWriter writer, FileWriter::create(path, text.size()));
  HOLMES_TRY(writer.write(std::as_bytes(std::span(text.data(), text.size()))));
  return writer.finish();
}

Status sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return system_error("cannot open folder " + folder.string(), errno);
  const int failed = ::fsync(descriptor);
  const int why = errno;
  ::close(descriptor);
  if (failed != 0) return system_error("cannot write folder " + folder.string(), why);
  return {};
}

}  // namespace holmes::model

#include "data/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace holmes::model {
namespace {

/// Closes a descriptor at the end of the scope; a mapping outlives its descriptor.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path, std::string_view what) {
  const std::string name = std::string(what) + " " + path.string();
  // Without waiting: a pipe that nobody writes to would hold us for ever.
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    const int why = errno;
    if (why == ENOENT || why == ENOTDIR) {
      return Error(ErrorCode::kNotFound, name + " does not exist");
    }
    return system_error("cannot read " + name, why);
  }
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return system_error("cannot read " + name, errno);
  if (S_ISDIR(facts.st_mode)) {
    return Error(ErrorCode::kInvalidArgument, name + " is a folder, not a file");
  }
  if (!S_ISREG(facts.st_mode)) {
    return Error(ErrorCode::kInvalidArgument, name + " is not a regular file");
  }
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size == 0) return MappedFile(std::span<const std::byte>());
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return system_error("cannot map " + name, errno);
  return MappedFile({static_cast<const std::byte*>(memory), size});
}

Status MappedFile::watch(const std::filesystem::path& path) {
  watched_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (watched_ < 0) return system_error("cannot read " + path.string(), errno);
  return {};
}

MappedFile::Stamp MappedFile::stamp() const {
  struct stat facts {};
  if (::fstat(watched_, &facts) != 0) return {};
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  return {static_cast<std::uint64_t>(facts.st_size),
          facts.st_mtim.tv_sec * kNsPerSecond + facts.st_mtim.tv_nsec};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), watched_(std::exchange(other.watched_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(watched_, other.watched_);
  return *this;
}

MappedFile::~MappedFile() {
  if (watched_ >= 0) ::close(watched_);
  if (bytes_.empty()) return;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace holmes::model

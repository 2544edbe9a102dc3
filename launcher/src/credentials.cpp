#include "credentials.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run_folder.hpp"

namespace holmes::launcher {
namespace {

namespace fs = std::filesystem;

constexpr int kInputMs = 30'000;
constexpr std::size_t kTextBytesMax = 64 * 1024;
constexpr std::string_view kBegin = "-----BEGIN ";
constexpr std::string_view kEnd = "-----END ";

Error invalid(std::string what) {
  return Error(ErrorCode::kInvalidArgument, std::move(what));
}

/// The next PEM block of `text`, which then goes on behind it; empty: there is none.
std::string next_block(std::string_view& text) {
  const auto begin = text.find(kBegin);
  const auto end = begin == text.npos ? text.npos : text.find(kEnd, begin);
  if (end == text.npos) return "";
  const auto line_end = std::min(text.find('\n', end), text.size() - 1);
  const auto block = std::string(text.substr(begin, line_end + 1 - begin));
  text.remove_prefix(line_end + 1);
  return block;
}

/// Everything until the end of the input.
Result<std::string> read_input() {
  std::string text;
  std::array<char, 4096> block{};
  for (;;) {
    pollfd input{0, POLLIN, 0};
    if (::poll(&input, 1, kInputMs) == 0)
      return Error(ErrorCode::kTimeout,
                   "--credentials -: nothing comes from standard input; holmes launch sends it");
    const auto count = ::read(0, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("--credentials -: cannot read standard input", errno);
    if (count == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
    if (text.size() > kTextBytesMax)
      return invalid("--credentials -: over 64 KiB come from standard input");
  }
}

/// `secret`: nobody else may be able to read it.
Result<std::string> read_file(const fs::path& file, bool secret) {
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!opened) return system_error("credentials: cannot read " + file.string(), errno);
  struct stat facts {};
  if (::fstat(opened.get(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return invalid("credentials: " + file.string() + " is no regular file");
  if (secret && (facts.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return invalid("credentials: others may read " + file.string() + ": chmod 600 it");
  if (static_cast<std::size_t>(facts.st_size) > kTextBytesMax)
    return invalid("credentials: " + file.string() + " is too long to be a PEM text");
  std::string text(static_cast<std::size_t>(facts.st_size), '\0');
  const auto count = ::read(opened.get(), text.data(), text.size());
  if (count < 0) return system_error("credentials: cannot read " + file.string(), errno);
  text.resize(static_cast<std::size_t>(count));
  return text;
}

Status write_file(const fs::path& file, const std::string& text) {
  const Descriptor opened(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!opened) return system_error("credentials: cannot make " + file.string(), errno);
  if (::write(opened.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()))
    return {};
  return system_error("credentials: cannot write " + file.string(), errno);
}

}  // namespace

std::string to_text(const Credentials& credentials) {
  return credentials.key + credentials.certificate + credentials.authority;
}

Result<Credentials> parse_credentials(std::string_view text) {
  Credentials credentials;
  credentials.key = next_block(text);
  credentials.certificate = next_block(text);
  credentials.authority = next_block(text);
  if (credentials.authority.empty())
    return invalid("credentials: key, certificate and authority are not all there");
  return credentials;
}

Result<Credentials> read_credentials(const std::string& source) {
  if (source == "-") {
    HOLMES_TRY_ASSIGN(const auto text, read_input());
    return parse_credentials(text);
  }
  const fs::path folder(source);
  Credentials credentials;
  HOLMES_TRY_ASSIGN(credentials.key, read_file(folder / "key.pem", true));
  HOLMES_TRY_ASSIGN(credentials.certificate, read_file(folder / "certificate.pem", false));
  HOLMES_TRY_ASSIGN(credentials.authority, read_file(folder / "authority.pem", false));
  return credentials;
}

Status write_credentials(const fs::path& folder, const Credentials& credentials) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) fs::permissions(folder, fs::perms::owner_all, error);
  if (error) return system_error("credentials: cannot make " + folder.string(), error.value());
  HOLMES_TRY(write_file(folder / "key.pem", credentials.key));
  HOLMES_TRY(write_file(folder / "certificate.pem", credentials.certificate));
  return write_file(folder / "authority.pem", credentials.authority);
}

}  // namespace holmes::launcher

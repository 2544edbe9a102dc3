#include "bench/ranks.hpp"

#include <cerrno>
#include <csignal>
#include <optional>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holmes/base/units.hpp"

namespace holmes::launcher {
namespace {

constexpr int kPatienceMs = 300'000;
constexpr std::uint32_t kTextBytesMax = 64 * kKiB;
// What a rank's text begins with.
constexpr char kGather = 'g';
constexpr char kReport = 'r';

Status write_bytes(int descriptor, const void* bytes, std::size_t size) {
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const auto count = ::send(descriptor, at, size, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("bench: telling another process", errno);
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return {};
}

Status read_bytes(int descriptor, void* bytes, std::size_t size) {
  auto* at = static_cast<char*>(bytes);
  while (size > 0) {
    pollfd entry{descriptor, POLLIN, 0};
    if (::poll(&entry, 1, kPatienceMs) == 0)
      return Error(ErrorCode::kTimeout, "bench: a rank says nothing any more");
    const auto count = ::recv(descriptor, at, size, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Error(ErrorCode::kClosed, "bench: a rank ended without a result");
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return {};
}

/// The child's whole life.
[[noreturn]] void be_rank(std::uint32_t rank, Descriptor descriptor, const RankBody& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  RankLine line(std::move(descriptor));
  const auto figures = body(rank, line);
  const auto reported = line.report(figures);
  ::_exit(figures && reported ? 0 : 1);
}

struct Child {
  pid_t pid = 0;
  RankLine line;
};

Result<Child> start_rank(std::uint32_t rank, const RankBody& body) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_error("bench: socketpair", errno);
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return system_error("bench: fork", errno);
  if (pid == 0) be_rank(rank, std::move(theirs), body);
  return Child{pid, RankLine(std::move(ours))};
}

/// The parent's half of all ranks' all_gather.
Status serve_gather(std::vector<Child>& children) {
  std::vector<std::string> texts;
  for (auto& child : children) {
    auto text = child.line.read_text();
    if (!text) return text.error();
    const bool gathers = text->starts_with(kGather);
    if (!text->empty()) text->erase(0, 1);
    if (!gathers) return Error(ErrorCode::kUnavailable, *text);
    texts.push_back(std::move(*text));
  }
  for (auto& child : children) {
    HOLMES_TRY(child.line.write_text(std::to_string(texts.size())));
    for (const auto& text : texts) HOLMES_TRY(child.line.write_text(text));
  }
  return {};
}

Result<Figures> collect(std::vector<Child>& children, int gathers) {
  for (int i = 0; i < gathers; ++i) HOLMES_TRY(serve_gather(children));
  std::optional<Figures> first;
  std::optional<Error> error;
  for (auto& child : children) {
    const auto figures = child.line.read_report();
    if (!figures && !error) error = figures.error();
    if (figures && !first) first = *figures;
  }
  if (error) return *error;
  return *first;
}

}  // namespace

Status RankLine::write_text(const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  HOLMES_TRY(write_bytes(descriptor_.get(), &size, sizeof size));
  return write_bytes(descriptor_.get(), text.data(), size);
}

Result<std::string> RankLine::read_text() {
  std::uint32_t size = 0;
  HOLMES_TRY(read_bytes(descriptor_.get(), &size, sizeof size));
  if (size > kTextBytesMax) return Error(ErrorCode::kCorrupt, "bench: a rank's text is too long");
  std::string text(size, '\0');
  HOLMES_TRY(read_bytes(descriptor_.get(), text.data(), size));
  return text;
}

Result<std::vector<std::string>> RankLine::all_gather(const std::string& own) {
  HOLMES_TRY(write_text(kGather + own));
  // The parent writes as many texts as there are ranks; the first says how many.
  HOLMES_TRY_ASSIGN(const auto count, read_text());
  std::vector<std::string> texts(std::stoul(count));
  for (auto& text : texts) {
    HOLMES_TRY_ASSIGN(text, read_text());
  }
  return texts;
}

Status RankLine::report(const Result<Figures>& figures) {
  HOLMES_TRY(write_text(kReport + (figures ? std::string() : figures.error().message())));
  const auto value = figures ? *figures : Figures{};
  return write_bytes(descriptor_.get(), &value, sizeof value);
}

Result<Figures> RankLine::read_report() {
  HOLMES_TRY_ASSIGN(const auto problem, read_text());
  Figures figures;
  HOLMES_TRY(read_bytes(descriptor_.get(), &figures, sizeof figures));
  if (problem.size() != 1) return Error(ErrorCode::kUnavailable, problem.substr(1));
  return figures;
}

Result<Figures> run_ranks(std::uint32_t ranks, int gathers, const RankBody& body) {
  std::vector<Child> children;
  std::optional<Error> error;
  for (std::uint32_t rank = 0; rank < ranks && !error; ++rank) {
    auto child = start_rank(rank, body);
    if (child)
      children.push_back(std::move(*child));
    else
      error = child.error();
  }
  auto result = error ? Result<Figures>(*error) : collect(children, gathers);
  for (const auto& child : children) {
    if (!result) ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, 0);
  }
  return result;
}

}  // namespace holmes::launcher

#include "bench/raw.hpp"

#include <cerrno>
#include <ctime>

#include <poll.h>
#include <sys/socket.h>

#include "holmes/base/clock.hpp"

namespace holmes::launcher {
namespace {

constexpr std::size_t kPieceBytes = 256 * kKiB;
constexpr int kPatienceMs = 20'000;

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

bool would_block(ssize_t count) {
  return count < 0 && (errno == EAGAIN || errno == EINTR);
}

/// Sends `bytes` of `out` and receives as many, whichever is possible. The first byte of `out` goes
/// first, that of the peer comes back in `word`.
Status exchange(int socket, std::vector<char>& out, std::vector<char>& in, std::uint64_t bytes,
                char& word) {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  while (sent < bytes || received < bytes) {
    bool moved = false;
    if (sent < bytes) {
      const auto count =
          ::send(socket, out.data(), std::min<std::uint64_t>(out.size(), bytes - sent),
                 MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count <= 0 && !would_block(count)) return system_error("raw send", errno);
      if (count > 0) {
        sent += static_cast<std::uint64_t>(count);
        moved = true;
      }
    }
    if (received < bytes) {
      const auto count = ::recv(socket, in.data(),
                                std::min<std::uint64_t>(in.size(), bytes - received), MSG_DONTWAIT);
      if (count == 0 || (count < 0 && !would_block(count)))
        return system_error("raw receive", count == 0 ? ECONNRESET : errno);
      if (count > 0) {
        if (received == 0) word = in[0];
        received += static_cast<std::uint64_t>(count);
        moved = true;
      }
    }
    if (moved) continue;
    pollfd entry{socket,
                 static_cast<short>((received < bytes ? POLLIN : 0) | (sent < bytes ? POLLOUT : 0)),
                 0};
    if (::poll(&entry, 1, kPatienceMs) == 0)
      return Error(ErrorCode::kTimeout, "the other process of the raw exchange is silent");
  }
  return {};
}

}  // namespace

Result<Figures> raw_exchange(int socket, bool first, std::uint64_t bytes, double seconds_wanted) {
  const SteadyClock clock;
  std::vector<char> out(kPieceBytes);
  std::vector<char> in(kPieceBytes);
  std::vector<double> times;
  char word = 0;
  for (int i = 0; i < 2; ++i) HOLMES_TRY(exchange(socket, out, in, bytes, word));
  const auto begin = clock.now();
  const auto cpu = cpu_seconds();
  for (bool stop = false; !stop;) {
    const auto start = clock.now();
    // The first process says with its first byte whether this is the last repetition.
    out[0] = first && seconds(start - begin) > seconds_wanted ? 1 : 0;
    HOLMES_TRY(exchange(socket, out, in, bytes, word));
    times.push_back(seconds(clock.now() - start));
    stop = first ? out[0] == 1 : word == 1;
  }
  return figures_of(std::move(times), cpu_seconds() - cpu);
}

}  // namespace holmes::launcher

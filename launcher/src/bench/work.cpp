#include "bench/work.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <optional>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "bench/raw.hpp"
#include "holmes/transport/collectives.hpp"
#include "holmes/transport/tcp.hpp"

namespace holmes::launcher {
namespace {

using namespace transport;

constexpr Duration kPatience = std::chrono::seconds(60);
constexpr int kWarmUps = 3;
constexpr std::uint64_t kRepetitionsMax = 1'000'000;

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// This rank's loop, on the process's only thread, and its connections to all others.
class RankMesh {
 public:
  RankMesh(const BenchCommand& command, std::uint32_t rank)
      : loop(command.busy_poll), rank_(rank), links(command.ranks) {
    options_.local_address = "127.0.0.1";
    options_.bulk_sockets = static_cast<std::uint8_t>(command.bulk_sockets);
  }

  /// Higher ranks dial lower ones.
  Status connect(const BenchCommand& command, RankLine& line) {
    if (command.tls) {
      HOLMES_TRY_ASSIGN(options_.tls, Tls::make(command.credentials.at(rank_)));
      for (std::uint32_t rank = 0; rank < command.ranks; ++rank)
        options_.host_names.push_back(rank_name(rank));
    }
    context_ = make_tcp_context(loop, options_);
    const auto accepted = [this](std::shared_ptr<Connection> link) {
      links.at(link->peer().host.index()) = std::move(link);
    };
    const auto refused = [this](const Error& error) { *error_ = error; };
    HOLMES_TRY_ASSIGN(listener_, context_->listen({"127.0.0.1:0"}, identity(), accepted, refused));
    HOLMES_TRY_ASSIGN(const auto addresses, line.all_gather(listener_->endpoint().address));
    for (std::uint32_t peer = 0; peer < rank_; ++peer)
      context_->connect({addresses.at(peer)}, identity(), kPatience,
                        [this, peer](Result<std::shared_ptr<Connection>> result) {
                          if (result)
                            links[peer] = *result;
                          else
                            *error_ = result.error();
                        });
    HOLMES_TRY(run_until([this] {
      return std::count(links.begin(), links.end(), nullptr) == 1;  // the own place
    }));
    for (const auto& link : links)
      if (link != nullptr)
        link->on_closed([problem = error_](const Error& error) { *problem = error; });
    return {};
  }

  Status run_until(const std::function<bool()>& done) {
    const bool reached = loop.run_until([&] { return error_->has_value() || done(); }, kPatience);
    if (*error_) return **error_;
    if (reached) return {};
    return Error(ErrorCode::kTimeout, "rank " + std::to_string(rank_) + ": nothing happens");
  }
  void fail(const Error& error) { *error_ = error; }

  EventLoop loop;

 private:
  const std::uint32_t rank_;
  /// Shared, since links may outlive what else there is.
  const std::shared_ptr<std::optional<Error>> error_ = std::make_shared<std::optional<Error>>();

 public:
  std::vector<std::shared_ptr<Connection>> links;
  BufferPool pool{16 * kGiB};

 private:
  Identity identity() const { return {kBenchJob, HostId(rank_), NicId(0), Epoch(0)}; }

  TcpOptions options_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Listener> listener_;
};

/// Repeats `begin`, which calls its argument when it is done, and takes the time of each.
class Repeater {
 public:
  using Done = std::function<void()>;
  Repeater(RankMesh& mesh, std::function<void(Done)> begin)
      : mesh_(mesh), begin_(std::move(begin)) {}

  Result<Figures> run(const BenchCommand& command, RankLine& line) {
    HOLMES_TRY(repeat(kWarmUps));
    // All ranks do as many as rank 0 finds enough.
    const auto each_s = *std::min_element(times_.begin(), times_.end());
    const auto wanted = static_cast<std::uint64_t>(std::ceil(command.seconds / each_s));
    HOLMES_TRY_ASSIGN(const auto counts, line.all_gather(std::to_string(wanted)));
    const auto cpu = cpu_seconds();
    HOLMES_TRY(repeat(std::clamp<std::uint64_t>(std::stoull(counts.front()), 3, kRepetitionsMax)));
    const auto spent = cpu_seconds() - cpu;
    // Nobody leaves while another still waits for it.
    HOLMES_TRY(line.all_gather(""));
    return figures_of(std::move(times_), spent);
  }

 private:
  Status repeat(std::uint64_t count) {
    times_.clear();
    times_.reserve(count);
    count_ = count;
    next();
    return mesh_.run_until([this] { return times_.size() == count_; });
  }
  void next() {
    start_ = mesh_.loop.clock().now();
    begin_([this] {
      times_.push_back(seconds(mesh_.loop.clock().now() - start_));
      if (times_.size() < count_) next();
    });
  }

  RankMesh& mesh_;
  const std::function<void(Done)> begin_;
  std::vector<double> times_;
  std::uint64_t count_ = 0;
  TimePoint start_;
};

BulkTag numbered(std::uint64_t number) {
  BulkTag tag;
  tag.step = Step(number);
  return tag;
}

/// A socket to the other rank: rank 0 listens.
Result<Descriptor> raw_socket(std::uint32_t rank, RankLine& line) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (rank == 0 && (::bind(socket.get(), at, size) != 0 || ::listen(socket.get(), 1) != 0 ||
                    ::getsockname(socket.get(), at, &size) != 0))
    return system_error("bench: raw listen", errno);
  HOLMES_TRY_ASSIGN(const auto ports, line.all_gather(std::to_string(address.sin_port)));
  if (rank == 0) socket = Descriptor(::accept(socket.get(), nullptr, nullptr));
  address.sin_port = static_cast<in_port_t>(std::stoul(ports.front()));
  if (rank != 0 && ::connect(socket.get(), at, size) != 0)
    return system_error("bench: raw connect", errno);
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

}  // namespace

Result<Figures> raw_work(const BenchCommand& command, std::uint32_t rank, RankLine& line) {
  HOLMES_TRY_ASSIGN(const auto socket, raw_socket(rank, line));
  HOLMES_TRY(line.all_gather(""));
  const auto figures = raw_exchange(socket.get(), rank == 0, command.bytes, command.seconds);
  HOLMES_TRY(line.all_gather(""));
  return figures;
}

Result<Figures> exchange_work(const BenchCommand& command, std::uint32_t rank, RankLine& line) {
  RankMesh mesh(command, rank);
  HOLMES_TRY(mesh.connect(command, line));
  HOLMES_TRY_ASSIGN(const BufferView out, mesh.pool.acquire(command.bytes));
  HOLMES_TRY_ASSIGN(auto in, mesh.pool.acquire(command.bytes));
  auto& link = *mesh.links.at(1 - rank);
  std::uint64_t number = 0;
  Repeater repeater(mesh, [&](const Repeater::Done& done) {
    const auto left = std::make_shared<int>(2);
    const auto one_done = [left, done] {
      if (--*left == 0) done();
    };
    link.receive_bulk(numbered(number), {}, std::exchange(in, {}),
                      [&, one_done](Result<Buffer> got) {
                        if (!got) return mesh.fail(got.error());
                        in = std::move(*got);
                        one_done();
                      });
    link.send_bulk(numbered(number++), {}, out, [&, one_done](const Status& sent) {
      if (!sent) return mesh.fail(sent.error());
      one_done();
    });
  });
  return repeater.run(command, line);
}

Result<Figures> round_trip_work(const BenchCommand& command, std::uint32_t rank, RankLine& line) {
  RankMesh mesh(command, rank);
  HOLMES_TRY(mesh.connect(command, line));
  auto& link = *mesh.links.at(1 - rank);
  const BufferView message = Buffer::allocate(64);
  Repeater::Done answered;
  link.on_control([&](Buffer came) {
    if (rank == 0) return answered();
    // Done only once the answer has left: this process may end right after the last one.
    link.send_control(std::move(came), [&](const Status& sent) {
      if (!sent) return mesh.fail(sent.error());
      answered();
    });
  });
  Repeater repeater(mesh, [&](Repeater::Done done) {
    answered = std::move(done);
    if (rank == 0) link.send_control(message, [](const Status&) {});
  });
  return repeater.run(command, line);
}

Result<Figures> collective_work(const BenchCommand& command, std::uint32_t rank, RankLine& line) {
  RankMesh mesh(command, rank);
  HOLMES_TRY(mesh.connect(command, line));
  const auto group = make_group(mesh.loop, mesh.pool, rank, mesh.links, {});
  auto algorithm = Algorithm::kAuto;
  for (const auto each : {Algorithm::kRing, Algorithm::kDirect, Algorithm::kDoubling})
    if (to_string(each) == command.algorithm) algorithm = each;
  HOLMES_TRY_ASSIGN(auto buffer, mesh.pool.acquire(command.bytes));
  for (auto& value : buffer.mutable_as<float>()) value = 0;
  Repeater repeater(mesh, [&](const Repeater::Done& done) {
    const auto finished = [&, done](Result<Buffer> result) {
      if (!result) return mesh.fail(result.error());
      buffer = std::move(*result);
      done();
    };
    if (command.what == "allreduce")
      return group->all_reduce({{}, std::move(buffer)}, algorithm, finished);
    group->reduce_scatter({{}, std::move(buffer)}, algorithm, finished);
  });
  return repeater.run(command, line);
}

}  // namespace holmes::launcher

#pragma once

// One end of a simulated link: what it sends arrives at the other end's Link after its time.

#include "sim/network_state.hpp"

namespace holmes::transport::sim {

class SimPipe final : public Pipe, public std::enable_shared_from_this<SimPipe> {
 public:
  SimPipe(std::shared_ptr<NetworkState> network, std::shared_ptr<Executor> executor,
          std::size_t from, std::size_t to);

  /// The two ends of a new link, registered with the network. The first is at `from`.
  static std::pair<std::shared_ptr<SimPipe>, std::shared_ptr<SimPipe>> make_pair(
      const std::shared_ptr<NetworkState>& network, const std::shared_ptr<Executor>& executor_from,
      const std::shared_ptr<Executor>& executor_to, std::size_t from, std::size_t to);

  void attach(const std::shared_ptr<Link>& link) { link_ = link; }
  std::size_t bulk_lanes() const override { return 1; }
  void send_control(BufferView message) override;
  void send_credit(const wire::Credit& credit) override;
  void send_chunk(std::size_t lane, const wire::Chunk& chunk, BufferView payload) override;
  void close(const std::optional<wire::Refusal>& farewell) override;

  /// Runs `arrive` at the other end, after everything that was sent in the control lane before.
  void deliver_control(std::size_t bytes, Task arrive);
  /// The connection was reset: this end's link ends with `error`.
  void reset(const Error& error);
  /// This end's process is dead: nothing completes here any more. The other end hears of it,
  /// unless `silent`.
  void kill(bool silent);
  /// The path is open again: sends what waited, delivers what was held.
  void release();

  /// Closed, and nothing of it is under way.
  bool finished() const;
  std::size_t from() const { return from_; }
  std::size_t to() const { return to_; }

 private:
  /// One lane, from this end to the other.
  struct Lane {
    TimePoint last_arrival{};
    std::size_t in_flight = 0;
    std::deque<Task> held;  // arrived while the path was cut
  };

  void send_bulk(const wire::Chunk& chunk, const BufferView& payload);
  void send_eof();
  void arrive_in(Lane& lane, TimePoint at, Task arrive);
  void flush(Lane& lane);
  bool cut() const { return network_->is_cut(from_, to_); }
  TimePoint now() const { return network_->loop.now(); }

  std::shared_ptr<NetworkState> network_;
  std::shared_ptr<Executor> executor_;
  const std::size_t from_;
  const std::size_t to_;
  std::weak_ptr<SimPipe> peer_;
  std::shared_ptr<Executor> peer_executor_;
  std::weak_ptr<Link> link_;
  Lane control_;
  Lane bulk_;
  std::deque<Task> blocked_;  // bulk sends that wait for the path
  bool closed_ = false;
};

}  // namespace holmes::transport::sim

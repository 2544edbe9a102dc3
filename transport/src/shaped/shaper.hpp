#pragma once

// The token bucket of one NIC: when the next byte may leave, when the last one has come in.

#include <deque>

#include "holmes/transport/shaped.hpp"

namespace holmes::transport {

class Shaper final : public std::enable_shared_from_this<Shaper> {
 public:
  Shaper(Executor& executor, const ShapeOptions& options)
      : executor_(executor), options_(options) {}

  Executor& executor() { return executor_; }
  void set(const ShapeOptions& options) { options_ = options; }

  /// A control message leaves at once; bulk makes room for it.
  void charge_control(std::size_t bytes);
  /// Runs `send` when `bytes` of bulk have had their time, in the order of the calls. May run it
  /// inside the call.
  void pace(std::size_t bytes, Task send);
  /// When a control message that came in now is to be handed on.
  TimePoint control_due(std::size_t bytes) const;
  /// When bulk that came in now, into a buffer reserved at `reserved`, is to be handed on.
  TimePoint bulk_due(std::size_t bytes, TimePoint reserved);

 private:
  struct Bulk {
    std::size_t bytes;
    Task send;
  };

  Duration cost(std::size_t bytes) const;
  void run();

  Executor& executor_;
  ShapeOptions options_;
  TimePoint egress_free_{};
  TimePoint ingress_free_{};
  std::deque<Bulk> queue_;  // bounded by the operations that connections accept
  bool front_paid_ = false;
  bool waiting_ = false;
};

}  // namespace holmes::transport

#include "shaped/shaper.hpp"

#include <algorithm>

namespace holmes::transport {

Duration Shaper::cost(std::size_t bytes) const {
  return options_.gbit_s > 0 ? transfer_time(bytes, options_.gbit_s) : Duration::zero();
}

void Shaper::charge_control(std::size_t bytes) {
  egress_free_ = std::max(egress_free_, executor_.clock().now()) + cost(bytes);
}

void Shaper::pace(std::size_t bytes, Task send) {
  queue_.push_back({bytes, std::move(send)});
  if (!waiting_) run();
}

/// Sends what has had its time; waits for the rest.
void Shaper::run() {
  const auto self = shared_from_this();  // a send may drop the last connection
  while (!queue_.empty()) {
    const auto now = executor_.clock().now();
    if (!front_paid_) {
      egress_free_ = std::max(egress_free_, now) + cost(queue_.front().bytes);
      front_paid_ = true;
    }
    if (egress_free_ > now) {
      waiting_ = true;
      executor_.post_after(egress_free_ - now, [weak = weak_from_this()] {
        const auto shaper = weak.lock();
        if (shaper == nullptr) return;
        shaper->waiting_ = false;
        shaper->run();
      });
      return;
    }
    const auto send = std::move(queue_.front().send);
    queue_.pop_front();
    front_paid_ = false;
    send();
  }
}

TimePoint Shaper::control_due(std::size_t bytes) const {
  return executor_.clock().now() + cost(bytes) + options_.latency;
}

TimePoint Shaper::bulk_due(std::size_t bytes, TimePoint reserved) {
  const auto now = executor_.clock().now();
  ingress_free_ = std::max(now, std::max(ingress_free_, reserved) + cost(bytes));
  return ingress_free_ + options_.latency;
}

}  // namespace holmes::transport

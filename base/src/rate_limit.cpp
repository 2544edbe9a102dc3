#include "holmes/base/rate_limit.hpp"

#include <utility>

namespace holmes {

std::optional<std::uint64_t> RateLimit::admit(TimePoint now) {
  if (!begin_ || now - *begin_ >= window_) {
    begin_ = now;
    count_ = 0;
  }
  if (count_ == count_max_) {
    ++held_back_;
    return std::nullopt;
  }
  ++count_;
  return std::exchange(held_back_, 0);
}

}  // namespace holmes

// Dissemination: in round i each rank tells the one 2^i further on, after it was told itself. After
// log2(p) rounds each has heard, by way of others, of all.
#include <bit>

#include "collectives/operation.hpp"

namespace holmes::transport::collectives {

namespace {

class Barrier final : public Operation {
 public:
  Barrier(GroupCore& group, Task task)
      : Operation(group, std::move(task)),
        rounds_(static_cast<std::uint32_t>(std::bit_width(ranks() - 1))),
        heard_(rounds_) {}

 private:
  void begin() override {
    for (std::uint32_t round = 0; round < rounds_; ++round)
      receive_buffer((rank() + ranks() - distance(round)) % ranks(), {round, 0}, {},
                     Buffer::allocate(0));
    tell();
  }

  std::size_t distance(std::uint32_t round) const { return std::size_t{1} << round; }

  void tell() {
    if (round_ == rounds_) return all_begun();
    send((rank() + distance(round_)) % ranks(), {round_, 0}, {});
    go_on();
  }

  void go_on() {
    if (round_ == rounds_ || !heard_[round_]) return;
    ++round_;
    tell();
  }

  void received(std::size_t, Slot slot) override {
    heard_[slot.round] = true;
    if (slot.round == round_) go_on();
  }

  const std::uint32_t rounds_;
  std::vector<bool> heard_;
  std::uint32_t round_ = 0;
};

}  // namespace

OperationPtr make_barrier(GroupCore& group, Operation::Task task) {
  return std::make_shared<Barrier>(group, std::move(task));
}

}  // namespace holmes::transport::collectives

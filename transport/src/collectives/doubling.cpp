// Recursive doubling: in each of log2(p) rounds two ranks exchange all they have and both add it
// up. Both add the same two numbers, so all ranks end with the same bits. Ranks beyond the largest
// power of two hand their operands to a partner first and get the result last. For short messages.
#include <bit>

#include "collectives/operation.hpp"

namespace holmes::transport::collectives {

namespace {

class Doubling final : public Operation {
 public:
  Doubling(GroupCore& group, Task task)
      : Operation(group, std::move(task)),
        core_(std::bit_floor(ranks())),
        rounds_(static_cast<std::uint32_t>(std::bit_width(core_) - 1)) {}

 private:
  static constexpr std::uint32_t kFoldRound = 100;
  static constexpr std::uint32_t kResultRound = 101;

  Segment all() const { return {0, count()}; }
  bool has_extra() const { return rank() + core_ < ranks(); }
  std::size_t partner(std::uint32_t round) const { return rank() ^ (std::size_t{1} << round); }

  void begin() override {
    if (count() == 0) return all_begun();
    copy_input(all());
    if (rank() >= core_) {
      receive_place(rank() - core_, {kResultRound, 0}, all());
      send(rank() - core_, {kFoldRound, 0}, source_view(all()));
      return all_begun();
    }
    auto memory = pool().acquire(count() * sizeof(float) * std::max(rounds_, 1U));
    if (!memory) return fail_group(memory.error());
    memory_ = std::move(*memory);
    const auto bytes = memory_.mutable_bytes();
    for (std::uint32_t round = 0; round < rounds_; ++round)
      receive_buffer(partner(round), {round, 0},
                     bytes.subspan(round * count() * sizeof(float), count() * sizeof(float)),
                     memory_);
    arrived_.resize(rounds_);
    if (has_extra()) return receive_sum(rank() + core_, {kFoldRound, 0}, all(), true);
    exchange();
  }

  /// Sends what this rank has, as a copy: the sum goes on below while that is on its way.
  void exchange() {
    if (round_ == rounds_) return result();
    auto copy = pool().acquire(count() * sizeof(float));
    if (!copy) return fail_group(copy.error());
    const auto sum = copy->mutable_as<float>();
    std::copy_n(output(0), count(), sum.begin());
    send(partner(round_), {round_, 0}, std::move(*copy));
    add_arrived();
  }

  void add_arrived() {
    if (round_ == rounds_ || !arrived_[round_]) return;
    const auto* theirs = reinterpret_cast<const float*>(memory_.data()) + round_ * count();
    // The lower rank's number first: the same at both, whatever the hardware does with NaNs.
    if (partner(round_) > rank())
      add(output(0), output(0), theirs, count());
    else
      add(output(0), theirs, output(0), count());
    ++round_;
    exchange();
  }

  void result() {
    if (has_extra()) send(rank() + core_, {kResultRound, 0}, output_view(all()));
    all_begun();
  }

  void received(std::size_t, Slot slot) override {
    if (slot.round == kResultRound) return;
    if (slot.round == kFoldRound) {
      folded_ = true;
      return exchange();
    }
    arrived_[slot.round] = true;
    if (slot.round == round_ && (folded_ || !has_extra())) add_arrived();
  }

  const std::size_t core_;  // ranks that exchange
  const std::uint32_t rounds_;
  std::uint32_t round_ = 0;
  bool folded_ = false;
  Buffer memory_;
  std::vector<bool> arrived_;
};

}  // namespace

OperationPtr make_doubling(GroupCore& group, Operation::Task task) {
  return std::make_shared<Doubling>(group, std::move(task));
}

}  // namespace holmes::transport::collectives

// Ring: each rank passes pieces on to the next one; a piece is passed on as soon as it is summed.
// Rounds 0 to p-2 sum up, so that rank r ends with segment r; the following p-1 spread the sums.
#include "collectives/operation.hpp"

namespace holmes::transport::collectives {

namespace {

class Ring final : public Operation {
 public:
  Ring(GroupCore& group, Task task)
      : Operation(group, std::move(task)),
        pieces_(segment_of(count(), ranks(), ranks() - 1).size() + kLine) {
    const auto half = static_cast<std::uint32_t>(ranks() - 1);
    first_ = collective() == Collective::kAllGather ? half : 0;
    last_ = collective() == Collective::kReduceScatter ? half : 2 * half;
    next_ = {first_, 0};
  }

 private:
  static constexpr std::size_t kLine = 16;

  void begin() override {
    if (collective() == Collective::kAllGather) copy_input(segment_of(count(), ranks(), rank()));
    for (std::size_t i = 0; i < kReceivesAhead; ++i) post_receive();
    for (std::uint32_t piece = 0; piece < pieces_.count(); ++piece) pass_on({first_, piece});
    if (next_.round == last_) all_begun();
  }

  bool sums(std::uint32_t round) const { return round + 1 < ranks(); }
  /// The segment that this rank receives in a round; it sends the one that the rank before it does.
  Segment incoming(std::uint32_t round) const {
    // In the summing rounds r-2-round; in the others, counted from p-1 on, it goes on likewise.
    const std::size_t back = round + 2;
    return segment_of(count(), ranks(), (rank() + 2 * ranks() - back % ranks()) % ranks());
  }
  Segment outgoing(std::uint32_t round) const {
    const std::size_t back = round + 1;
    return segment_of(count(), ranks(), (rank() + 2 * ranks() - back % ranks()) % ranks());
  }

  void pass_on(Slot slot) {
    const auto part = pieces_.of(outgoing(slot.round), slot.piece);
    if (part.size() == 0) return;
    const bool untouched = slot.round == 0 && collective() != Collective::kAllGather;
    send((rank() + 1) % ranks(), slot, untouched ? source_view(part) : output_view(part));
  }

  /// Reserves for the next piece that is not empty.
  void post_receive() {
    while (next_.round < last_) {
      const auto slot = next_;
      if (++next_.piece == pieces_.count()) next_ = {next_.round + 1, 0};
      const auto part = pieces_.of(incoming(slot.round), slot.piece);
      if (part.size() == 0) continue;
      const auto from = (rank() + ranks() - 1) % ranks();
      if (sums(slot.round)) return receive_sum(from, slot, part, false);
      return receive_place(from, slot, part);
    }
  }

  void received(std::size_t, Slot slot) override {
    if (slot.round + 1 < last_) pass_on({slot.round + 1, slot.piece});
    post_receive();
    if (next_.round == last_) all_begun();
  }

  const Pieces pieces_;
  std::uint32_t first_ = 0;
  std::uint32_t last_ = 0;  // one past the last round
  Slot next_;               // to be reserved
};

}  // namespace

OperationPtr make_ring(GroupCore& group, Operation::Task task) {
  return std::make_shared<Ring>(group, std::move(task));
}

}  // namespace holmes::transport::collectives

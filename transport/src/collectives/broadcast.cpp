// Broadcast along a tree from the root, piece by piece: each rank passes a piece on as soon as it
// has it. The tree is a chain (kRing), a star (kDirect) or a binomial tree (kDoubling).
#include <bit>

#include "collectives/operation.hpp"

namespace holmes::transport::collectives {

namespace {

class Broadcast final : public Operation {
 public:
  Broadcast(GroupCore& group, Task task, std::size_t root, Algorithm algorithm)
      : Operation(group, std::move(task)), root_(root), pieces_(count()) {
    const auto place = (rank() + ranks() - root) % ranks();  // counted from the root
    if (algorithm == Algorithm::kRing) {
      if (place + 1 < ranks()) add_child(place + 1);
      parent_ = place - 1;
    } else if (algorithm == Algorithm::kDirect) {
      for (std::size_t child = 1; place == 0 && child < ranks(); ++child) add_child(child);
      parent_ = 0;
    } else {
      // The lowest set bit says how deep below this rank the tree is.
      const auto below = place == 0 ? std::bit_ceil(ranks()) : place & (~place + 1);
      for (auto step = below / 2; step > 0; step /= 2)
        if (place + step < ranks()) add_child(place + step);
      parent_ = place - below;
    }
    is_root_ = place == 0;
    if (!is_root_) parent_ = rank_of(parent_);
  }

 private:
  Segment piece(std::uint32_t index) const { return pieces_.of({0, count()}, index); }
  std::size_t rank_of(std::size_t place) const { return (place + root_) % ranks(); }
  void add_child(std::size_t place) { children_.push_back(rank_of(place)); }

  void begin() override {
    if (is_root_) {
      for (std::uint32_t index = 0; index < pieces_.count(); ++index) pass_on(index);
      return all_begun();
    }
    for (std::size_t i = 0; i < kReceivesAhead; ++i) post_receive();
    if (next_ == pieces_.count()) all_begun();
  }

  void post_receive() {
    if (next_ == pieces_.count()) return;
    const auto index = next_++;
    receive_place(parent_, {0, index}, piece(index));
  }

  void pass_on(std::uint32_t index) {
    for (const auto child : children_) send(child, {0, index}, output_view(piece(index)));
  }

  void received(std::size_t, Slot slot) override {
    pass_on(slot.piece);
    post_receive();
    if (next_ == pieces_.count()) all_begun();
  }

  const std::size_t root_;
  const Pieces pieces_;
  bool is_root_ = false;
  std::size_t parent_ = 0;
  std::vector<std::size_t> children_;
  std::uint32_t next_ = 0;
};

}  // namespace

OperationPtr make_broadcast(GroupCore& group, Operation::Task task, std::size_t root,
                            Algorithm algorithm) {
  return std::make_shared<Broadcast>(group, std::move(task), root, algorithm);
}

}  // namespace holmes::transport::collectives

// Direct: every rank sends each segment to its owner, which adds up all ranks' parts in a fixed
// binary tree over the ranks (rank r is leaf r; missing leaves are left out) and sends the sum to
// all. The tree makes the bits independent of who arrives first, of the size of pieces, and of how
// segments are cut.
#include <algorithm>
#include <bit>

#include "collectives/operation.hpp"

namespace holmes::transport::collectives {

namespace {

constexpr std::size_t kBlockElements = 4 * kKiB;
constexpr std::size_t kOwnPiecesAhead = 3;
constexpr std::uint32_t kPartsRound = 0;
constexpr std::uint32_t kSumsRound = 1;

class Direct final : public Operation {
 public:
  Direct(GroupCore& group, Task task)
      : Operation(group, std::move(task)),
        own_(segment_of(count(), ranks(), rank())),
        pieces_(segment_of(count(), ranks(), ranks() - 1).size() + 16),
        sums_(collective() != Collective::kAllGather),
        spreads_(collective() != Collective::kReduceScatter) {}

 private:
  /// One piece of the own segment, while the others' parts come in.
  struct Parts {
    Buffer memory;  // a place for each rank
    std::size_t missing = 0;
  };

  Segment piece(std::size_t owner, std::uint32_t index) const {
    return pieces_.of(segment_of(count(), ranks(), owner), index);
  }
  std::size_t other(std::size_t distance) const { return (rank() + distance) % ranks(); }

  void begin() override {
    parts_.resize(pieces_.count());
    if (!sums_) copy_input(own_);
    if (const auto ready = take_scratch(); !ready) return fail_group(ready.error());
    for (std::size_t i = 0; i < kOwnPiecesAhead && sums_; ++i) post_parts();
    for (std::size_t i = 0; i < kReceivesAhead && spreads_; ++i) post_sum();
    for (std::uint32_t index = 0; index < pieces_.count(); ++index) begin_piece(index);
    end_if_all_begun();
  }

  /// For the inner sums of the tree, from the pool, so that a steady state allocates nothing.
  Status take_scratch() {
    if (!sums_ || ranks() <= 2) return {};
    const auto levels = static_cast<std::size_t>(std::bit_width(ranks()));
    HOLMES_TRY_ASSIGN(scratch_, pool().acquire(levels * 2 * kBlockElements * sizeof(float)));
    return {};
  }

  void begin_piece(std::uint32_t index) {
    if (!sums_) return spread(index);
    for (std::size_t distance = 1; distance < ranks(); ++distance) {
      const auto part = piece(other(distance), index);
      if (part.size() > 0) send(other(distance), {kPartsRound, index}, source_view(part));
    }
  }

  /// Reserves for all ranks' parts of the next piece of the own segment.
  void post_parts() {
    if (next_parts_ == pieces_.count()) return;
    const auto index = next_parts_++;
    const auto part = piece(rank(), index);
    if (part.size() == 0) return;
    auto& parts = parts_[index];
    parts.missing = ranks() - 1;
    if (ranks() == 2) return receive_sum(1 - rank(), {kPartsRound, index}, part, false);
    const auto bytes = part.size() * sizeof(float);
    auto memory = pool().acquire(bytes * ranks());
    if (!memory) return fail_group(memory.error());
    parts.memory = std::move(*memory);
    const auto all = parts.memory.mutable_bytes();
    for (std::size_t distance = 1; distance < ranks(); ++distance)
      receive_buffer(other(distance), {kPartsRound, index},
                     all.subspan(other(distance) * bytes, bytes), parts.memory);
  }

  /// Reserves for the next sum of another rank.
  void post_sum() {
    while (next_sum_ < pieces_.count() * (ranks() - 1)) {
      const auto owner = other(1 + next_sum_ % (ranks() - 1));
      const auto index = static_cast<std::uint32_t>(next_sum_ / (ranks() - 1));
      ++next_sum_;
      const auto part = piece(owner, index);
      if (part.size() > 0) return receive_place(owner, {kSumsRound, index}, part);
    }
  }

  void spread(std::uint32_t index) {
    const auto part = piece(rank(), index);
    for (std::size_t distance = 1; spreads_ && part.size() > 0 && distance < ranks(); ++distance)
      send(other(distance), {kSumsRound, index}, output_view(part));
  }

  void received(std::size_t, Slot slot) override {
    if (slot.round == kSumsRound) {
      post_sum();
      return end_if_all_begun();
    }
    auto& parts = parts_[slot.piece];
    if (--parts.missing > 0) return;
    if (ranks() > 2) add_up(piece(rank(), slot.piece), parts);
    parts.memory = {};
    spread(slot.piece);
    post_parts();
    end_if_all_begun();
  }

  void end_if_all_begun() {
    if (sums_ && next_parts_ < pieces_.count()) return;
    if (spreads_ && next_sum_ < pieces_.count() * (ranks() - 1)) return;
    all_begun();
  }

  /// Block by block, so that the inner sums stay in the nearest cache.
  void add_up(const Segment& part, const Parts& parts) {
    leaves_.resize(ranks());
    const auto* memory = reinterpret_cast<const float*>(parts.memory.data());
    for (std::size_t at = 0; at < part.size(); at += kBlockElements) {
      for (std::size_t leaf = 0; leaf < ranks(); ++leaf)
        leaves_[leaf] = leaf == rank() ? source(part.begin + at) : memory + leaf * part.size() + at;
      const auto size = std::min(kBlockElements, part.size() - at);
      tree(0, std::bit_ceil(ranks()), 0, output(part.begin + at), size);
    }
  }

  /// Sum of the leaves [first, first + width): where it lies. `out` is where it may be put.
  const float* tree(std::size_t first, std::size_t width, std::size_t level, float* out,
                    std::size_t size) {
    if (width == 1) return leaves_[first];
    const auto half = width / 2;
    if (first + half >= ranks()) return tree(first, half, level + 1, out, size);
    float* scratch = scratch_.mutable_as<float>().data() + level * 2 * kBlockElements;
    const auto* left = tree(first, half, level + 1, scratch, size);
    const auto* right = tree(first + half, half, level + 1, scratch + kBlockElements, size);
    add(out, left, right, size);
    return out;
  }

  const Segment own_;
  const Pieces pieces_;
  const bool sums_;
  const bool spreads_;
  std::vector<Parts> parts_;
  std::uint32_t next_parts_ = 0;
  std::size_t next_sum_ = 0;
  std::vector<const float*> leaves_;
  Buffer scratch_;  // two blocks for each level of the tree
};

}  // namespace

OperationPtr make_direct(GroupCore& group, Operation::Task task) {
  return std::make_shared<Direct>(group, std::move(task));
}

}  // namespace holmes::transport::collectives

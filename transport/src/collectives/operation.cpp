#include "collectives/operation.hpp"

#include <algorithm>
#include <cstring>

#include "holmes/base/limits.hpp"

namespace holmes::transport::collectives {

namespace {

constexpr std::size_t kPieceElementsMin = 16 * kKiB;   // 64 KiB
constexpr std::size_t kPieceElementsMax = 256 * kKiB;  // 1 MiB
constexpr std::size_t kPiecesWanted = 8;
constexpr std::size_t kPiecesMax = 512;
constexpr std::size_t kFloatBytes = sizeof(float);

BufferView part_of(const BufferView& whole, const Segment& segment) {
  return whole.part(segment.begin * kFloatBytes, segment.size() * kFloatBytes);
}

}  // namespace

/// Sums pieces of a payload onto a segment while they arrive.
class Operation::SumSink final : public PayloadSink {
 public:
  SumSink(std::shared_ptr<Operation> operation, float* out, const float* in)
      : operation_(std::move(operation)), out_(out), in_(in) {}

  Status piece(std::size_t offset, std::span<const std::byte> bytes) override {
    if (operation_->ended_) return {};
    if (offset % kFloatBytes != 0 || bytes.size() % kFloatBytes != 0)
      return Error(ErrorCode::kCorrupt, operation_->name() + ": a piece ends inside a number");
    const auto at = offset / kFloatBytes;
    operation_->progress();
    operation_->sum_(out_ + at, in_ + at, reinterpret_cast<const float*>(bytes.data()),
                     bytes.size() / kFloatBytes);
    return {};
  }

 private:
  const std::shared_ptr<Operation> operation_;
  float* const out_;
  const float* const in_;
};

Pieces::Pieces(std::size_t count) {
  const auto wanted = std::max(count / kPiecesWanted, count / kPiecesMax + 1);
  elements_ =
      std::clamp(wanted, kPieceElementsMin, std::max(kPieceElementsMax, count / kPiecesMax));
  elements_ = (elements_ + 15) / 16 * 16;
  count_ = static_cast<std::uint32_t>((count + elements_ - 1) / elements_);
}

Segment Pieces::of(const Segment& segment, std::uint32_t index) const {
  const auto at = [&](std::size_t piece) {
    return std::min(segment.end, segment.begin + piece * elements_);
  };
  return {at(index), at(index + std::size_t{1})};
}

Operation::Operation(GroupCore& group, Task task)
    : group_(group),
      task_(std::move(task)),
      sum_(best_sum()),
      last_progress_(group.executor().clock().now()),
      awaited_(group.rank_count()) {
  auto& operands = task_.operands;
  if (!operands.output) return;
  const auto output = operands.output.mutable_as<float>();
  count_ = output.size();
  output_ = output.data();
  // From here on parts of the output are sent while others are written: which is which is what an
  // algorithm takes care of.
  if (operands.input.size() == 0) operands.input = BufferView(operands.output);
  source_ = reinterpret_cast<const float*>(operands.input.bytes().data());
}

void Operation::start() {
  last_progress_ = group_.executor().clock().now();
  begin();
}

std::string Operation::name() const {
  return std::string(to_string(task_.collective)) + " " + std::to_string(task_.number) +
         " of group " + std::to_string(group_.options().id) + " (generation " +
         std::to_string(group_.options().generation.value()) + ", rank " + std::to_string(rank()) +
         " of " + std::to_string(ranks()) + ")";
}

BulkTag Operation::tag(std::size_t from, std::size_t to, Slot slot) const {
  BulkTag tag;
  tag.generation = group_.options().generation;
  tag.step = Step(task_.number);
  tag.kind = BulkKind::kCollective;
  tag.stage = StageIndex(group_.options().id);
  tag.micro_batch = MicroBatch(slot.round);
  tag.layer = LayerIndex(slot.piece);
  tag.source = DeviceId(static_cast<std::uint32_t>(from));
  tag.destination = DeviceId(static_cast<std::uint32_t>(to));
  return tag;
}

BufferView Operation::source_view(const Segment& segment) const {
  return part_of(task_.operands.input, segment);
}

BufferView Operation::output_view(const Segment& segment) const {
  return part_of(BufferView(task_.operands.output), segment);
}

void Operation::copy_input(const Segment& segment) {
  if (source_ != output_ && segment.size() > 0)
    std::memcpy(output(segment.begin), source(segment.begin), segment.size() * kFloatBytes);
}

void Operation::send(std::size_t to, Slot slot, BufferView payload) {
  if (ended_) return;
  ++pending_;
  group_.connection(to).send_bulk(tag(rank(), to, slot), {}, std::move(payload),
                                  [self = shared_from_this()](const Status& sent) {
                                    if (self->ended_) return;
                                    if (!sent)
                                      return self->group_.failed(sent.error().in(self->name()));
                                    --self->pending_;
                                    self->finish_if_done();
                                  });
}

void Operation::receive(std::size_t from, Slot slot, Landing landing) {
  if (ended_) return;
  ++pending_;
  ++awaited_[from];
  group_.connection(from).receive_bulk(
      tag(from, rank(), slot), {}, std::move(landing),
      [self = shared_from_this(), from, slot](const Status& status) {
        if (self->ended_) return;
        if (!status) return self->group_.failed(status.error().in(self->name()));
        self->progress();
        --self->pending_;
        --self->awaited_[from];
        self->received(from, slot);
        self->finish_if_done();
      });
}

void Operation::receive_place(std::size_t from, Slot slot, const Segment& segment) {
  const auto bytes = segment.size() * kFloatBytes;
  receive(from, slot,
          {bytes,
           {reinterpret_cast<std::byte*>(output(segment.begin)), bytes},
           task_.operands.output,
           nullptr});
}

void Operation::receive_sum(std::size_t from, Slot slot, const Segment& segment, bool onto_output) {
  const float* operand = onto_output ? output(segment.begin) : source(segment.begin);
  auto sink = std::make_shared<SumSink>(shared_from_this(), output(segment.begin), operand);
  receive(from, slot, {segment.size() * kFloatBytes, {}, task_.operands.output, std::move(sink)});
}

void Operation::receive_buffer(std::size_t from, Slot slot, std::span<std::byte> memory,
                               Buffer owner) {
  receive(from, slot, {memory.size(), memory, std::move(owner), nullptr});
}

void Operation::progress() {
  last_progress_ = group_.executor().clock().now();
}

Status Operation::check_progress(Duration deadline) const {
  if (group_.executor().clock().now() - last_progress_ < deadline) return {};
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(deadline).count();
  std::string from;
  for (std::size_t peer = 0; peer < awaited_.size(); ++peer) {
    if (awaited_[peer] == 0) continue;
    const auto& identity = group_.connection(peer).peer();
    from += (from.empty() ? "" : " and ") + ("rank " + std::to_string(peer)) + " (host " +
            std::to_string(identity.host.value()) + ", NIC " +
            std::to_string(identity.nic.value()) + ")";
  }
  return Error(ErrorCode::kTimeout,
               name() + ": nothing came for " + std::to_string(waited) + " ms" +
                   (from.empty() ? ", and what is sent is not taken" : " from " + from));
}

void Operation::all_begun() {
  all_begun_ = true;
  finish_if_done();
}

void Operation::finish_if_done() {
  if (ended_ || !all_begun_ || pending_ > 0) return;
  ended_ = true;
  const auto self = shared_from_this();
  group_.finished(task_.number);
  task_.operands.input = {};
  const auto done = std::move(task_.done);
  done(std::move(task_.operands.output));
}

void Operation::fail(const Error& error) {
  if (ended_) return;
  ended_ = true;
  task_.operands = {};
  group_.executor().post([done = std::move(task_.done), error] { done(error); });
}

}  // namespace holmes::transport::collectives

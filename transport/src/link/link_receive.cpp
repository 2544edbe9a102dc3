// The receiving half of Link: what the pipe's reader calls.
#include <algorithm>

#include "holmes/base/limits.hpp"
#include "link/link.hpp"

namespace holmes::transport {

namespace {

/// A piece goes through the nearest cache on its way to a sink; checksums need a chunk as a whole.
constexpr std::size_t kPieceBytes = 64 * kKiB;
static_assert(kPieceBytes % 64 == 0 && kPieceBytes <= limits::kChunkBytesMax);

std::size_t scratch_bytes(const Incoming& incoming) {
  return incoming.chunk.checksum && incoming.reservation != nullptr ? limits::kChunkBytesMax
                                                                    : kPieceBytes;
}

/// A peer holds at most kConnectionOperationsMax buffers at a time; those of generations that this
/// end has not yet left come on top.
constexpr std::size_t kCreditsMax = 4 * limits::kConnectionOperationsMax;
constexpr Duration kFarewellPatience = std::chrono::seconds(1);

std::string shape_text(const TensorShape& shape, std::uint64_t bytes) {
  std::string text = "dtype " + std::to_string(static_cast<int>(shape.dtype)) + " [";
  for (const auto dimension : shape.dimensions)
    text += (text.back() == '[' ? "" : " ") + std::to_string(dimension);
  return text + "], " + std::to_string(bytes) + " bytes";
}

/// Codes that a peer may make this end report; it decides nothing else here.
ErrorCode trusted_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kCorrupt:
    case ErrorCode::kRefused:
    case ErrorCode::kOutOfResources:
      return code;
    default:
      return ErrorCode::kClosed;
  }
}

}  // namespace

void Link::control_arrived(Buffer message) {
  if (!open()) return;
  if (control_handler_ != nullptr && early_controls_.empty()) {
    const auto keep = control_handler_;  // closing from inside the handler must not destroy it
    return (*keep)(std::move(message));
  }
  if (early_controls_.size() == limits::kConnectionOperationsMax)
    return fail(Error(ErrorCode::kOutOfResources,
                      where_ + ": control messages arrive and nobody takes them"));
  early_controls_.push_back(std::move(message));
}

void Link::credit_arrived(const wire::Credit& credit) {
  if (!open()) return;
  if (credit.taken > 0) {
    if (!early_window_.give_back(credit.taken, credit.bytes))
      return fail(Error(ErrorCode::kCorrupt, where_ + ": takes more than was sent early"));
    return send_early();
  }
  if (credit.tag.generation < generation_) return;
  if (goes_early(credit.tag, credit.bytes))
    return fail(Error(ErrorCode::kCorrupt, where_ + ": a buffer was reserved for " +
                                               to_string(credit.tag) + ", which needs none"));
  if (const auto send = send_by_tag_.find(credit.tag); send != send_by_tag_.end()) {
    if (sends_.at(send->second).credited)
      return fail(Error(ErrorCode::kCorrupt,
                        where_ + ": two buffers were reserved for " + to_string(credit.tag)));
    return match(send->second, credit.bytes);
  }
  if (credits_.size() == kCreditsMax)
    return fail(Error(ErrorCode::kOutOfResources, where_ + ": the peer reserves without end"));
  if (!credits_.emplace(credit.tag, credit.bytes).second)
    fail(Error(ErrorCode::kCorrupt,
               where_ + ": two buffers were reserved for " + to_string(credit.tag)));
}

void Link::chunk_begins(std::size_t lane, const wire::Chunk& chunk, std::size_t bytes) {
  if (!open()) return;
  HOLMES_ASSERT(!lanes_[lane].incoming, "a chunk begins inside another");
  Incoming incoming{chunk, bytes, 0, 0, nullptr, {}};
  if (chunk.tag.generation >= generation_)
    if (const auto begun = find_place(incoming); !begun) return fail(begun.error().in(where_));
  lanes_[lane].incoming = std::move(incoming);
  if (bytes == 0) chunk_complete(lane);
}

/// Where the chunk's bytes go: what was reserved for it, or memory for what comes early.
Status Link::find_place(Incoming& incoming) {
  const auto& chunk = incoming.chunk;
  const auto found = reservations_.find(chunk.tag);
  if (found != reservations_.end()) {
    incoming.reservation = &found->second;
    HOLMES_TRY(check_chunk(chunk, found->second, incoming.bytes));
    if (lanes_.size() > 1) found->second.begun.add(chunk.offset / limits::kChunkBytesMax);
    return {};
  }
  if (!goes_early(chunk.tag, chunk.total) || incoming.bytes != chunk.total ||
      early_inbox_.contains(chunk.tag))
    return Error(ErrorCode::kCorrupt, "sends " + to_string(chunk.tag) + ", which nobody reserved");
  HOLMES_TRY_ASSIGN(incoming.early, early_inbox_.memory(incoming.bytes));
  return {};
}

Status Link::check_chunk(const wire::Chunk& chunk, const Reservation& wanted,
                         std::size_t bytes) const {
  const auto total = wanted.landing.bytes;
  if (chunk.total != total || chunk.shape != wanted.shape)
    return Error(ErrorCode::kCorrupt, to_string(chunk.tag) + " comes as " +
                                          shape_text(chunk.shape, chunk.total) + ", expected was " +
                                          shape_text(wanted.shape, total));
  // One lane keeps the order. With more, chunks lie on a grid and each comes once.
  const bool in_order = chunk.offset == wanted.received;
  const bool on_grid =
      chunk.offset % limits::kChunkBytesMax == 0 &&
      bytes == std::min<std::uint64_t>(limits::kChunkBytesMax, total - chunk.offset) &&
      !wanted.begun.contains(chunk.offset / limits::kChunkBytesMax);
  if (lanes_.size() == 1 ? in_order : on_grid) return {};
  return Error(ErrorCode::kCorrupt, "a chunk of " + to_string(chunk.tag) + " is out of order");
}

std::span<std::byte> Link::payload_space(std::size_t lane_index) {
  auto& lane = lanes_[lane_index];
  HOLMES_ASSERT(lane.incoming && lane.incoming->filled < lane.incoming->bytes,
                "no chunk is being read");
  const auto& incoming = *lane.incoming;
  const auto missing = incoming.bytes - incoming.filled;
  if (incoming.early) return lane.incoming->early.mutable_bytes().subspan(incoming.filled, missing);
  if (!incoming.through_scratch())
    return incoming.reservation->landing.memory.subspan(incoming.chunk.offset + incoming.filled,
                                                        missing);
  const auto size = scratch_bytes(incoming);
  if (lane.scratch.size() < size) lane.scratch.resize(size);
  const auto used = incoming.filled - incoming.handed_on;
  return std::span(lane.scratch).subspan(used, std::min(missing, size - used));
}

void Link::payload_filled(std::size_t lane, std::size_t bytes) {
  auto& incoming = lanes_[lane].incoming;
  HOLMES_ASSERT(incoming && bytes <= incoming->bytes - incoming->filled,
                "more bytes than the chunk has");
  incoming->filled += bytes;
  if (incoming->filled == incoming->bytes) return chunk_complete(lane);
  if (!incoming->through_scratch()) return;
  if (incoming->filled - incoming->handed_on == scratch_bytes(*incoming)) piece_complete(lane);
}

/// Hands on what the lane has read and its sink has not had.
void Link::piece_complete(std::size_t lane_index) {
  auto& lane = lanes_[lane_index];
  auto& incoming = *lane.incoming;
  const auto bytes = incoming.filled - incoming.handed_on;
  const auto offset = incoming.chunk.offset + incoming.handed_on;
  incoming.handed_on = incoming.filled;
  if (incoming.reservation == nullptr && !incoming.early) return;
  const auto memory =
      incoming.early ? std::span<std::byte>() : incoming.reservation->landing.memory;
  const std::span<const std::byte> piece = incoming.early   ? incoming.early.bytes()
                                           : memory.empty() ? std::span(lane.scratch).first(bytes)
                                                            : memory.subspan(offset, bytes);
  if (incoming.chunk.checksum && *incoming.chunk.checksum != wire::checksum(piece))
    return fail(
        Error(ErrorCode::kCorrupt,
              where_ + ": a chunk of " + to_string(incoming.chunk.tag) + " has a wrong checksum"));
  if (incoming.early || incoming.reservation->landing.sink == nullptr || bytes == 0) return;
  // It may end the link, or supersede what it belongs to.
  const auto keep = incoming.reservation->landing.sink;
  if (const auto taken = keep->piece(offset, piece); !taken) fail(taken.error().in(where_));
}

void Link::chunk_complete(std::size_t lane) {
  const auto self = shared_from_this();  // a handler may drop the last other reference
  piece_complete(lane);
  if (!open()) return;
  auto incoming = std::move(*std::exchange(lanes_[lane].incoming, std::nullopt));
  if (incoming.early) return early_complete(std::move(incoming));
  if (goes_early(incoming.chunk.tag, incoming.chunk.total)) early_taken(incoming.bytes);
  if (incoming.reservation == nullptr) {
    ++stats_.stale_dropped;
    return;
  }
  auto& reservation = *incoming.reservation;
  reservation.received += incoming.bytes;
  if (reservation.received < reservation.landing.bytes) return;
  auto finished = std::move(reservation);
  reservations_.erase(incoming.chunk.tag);
  ++stats_.bulk_received;
  finished.complete();
}

/// A payload came before it was reserved for; it may have been meanwhile.
void Link::early_complete(Incoming incoming) {
  const auto tag = incoming.chunk.tag;
  early_inbox_.keep(tag, {std::move(incoming.chunk.shape), std::move(incoming.early)});
  if (reservations_.contains(tag)) deliver_early(tag);
}

void Link::deliver_early(const BulkTag& tag) {
  const auto found = reservations_.find(tag);
  if (!open() || found == reservations_.end()) return;
  const auto kept = early_inbox_.take(tag);
  if (!kept) return;
  const auto bytes = kept->payload.bytes();
  auto& landing = found->second.landing;
  if (landing.bytes != bytes.size() || found->second.shape != kept->shape)
    return fail(Error(ErrorCode::kCorrupt, where_ + ": " + to_string(tag) + " comes as " +
                                               shape_text(kept->shape, bytes.size()) +
                                               ", expected was " +
                                               shape_text(found->second.shape, landing.bytes)));
  early_taken(bytes.size());
  if (!landing.memory.empty()) std::copy(bytes.begin(), bytes.end(), landing.memory.begin());
  if (const auto sink = landing.sink; sink != nullptr && !bytes.empty())
    if (const auto taken = sink->piece(0, bytes); !taken) return fail(taken.error().in(where_));
  const auto again = reservations_.find(tag);  // the sink may have superseded it
  if (!open() || again == reservations_.end()) return;
  auto finished = std::move(again->second);
  reservations_.erase(again);
  ++stats_.bulk_received;
  finished.complete();
}

void Link::early_taken(std::size_t bytes) {
  early_inbox_.taken(bytes);
  if (const auto credit = early_inbox_.due()) pipe_->send_credit(*credit);
}

void Link::farewell_arrived(const wire::Refusal& farewell) {
  if (!open() || farewell_) return;
  farewell_ = Error(trusted_code(farewell.code),
                    where_ + ": the peer ended the connection: " + farewell.reason);
  executor_->post_after(kFarewellPatience, [weak = weak_from_this()] {
    if (const auto self = weak.lock(); self != nullptr && self->open())
      self->lost(*self->farewell_);
  });
}

}  // namespace holmes::transport

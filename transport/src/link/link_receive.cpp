// The receiving half of Link: what the pipe's reader calls.
#include <algorithm>

#include "holmes/base/limits.hpp"
#include "link/link.hpp"

namespace holmes::transport {

namespace {

constexpr std::size_t kScratchBytes = 64 * kKiB;
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
  if (!open() || credit.tag.generation < generation_) return;
  if (const auto send = send_by_tag_.find(credit.tag); send != send_by_tag_.end()) {
    if (ready_.contains(send->second))
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

void Link::chunk_begins(const wire::Chunk& chunk, std::size_t bytes) {
  if (!open()) return;
  HOLMES_ASSERT(!incoming_, "a chunk begins inside another");
  incoming_ = Incoming{chunk, bytes, 0, chunk.tag.generation < generation_};
  if (!incoming_->drop) {
    const auto found = reservations_.find(chunk.tag);
    if (found == reservations_.end())
      return fail(Error(ErrorCode::kCorrupt,
                        where_ + ": sends " + to_string(chunk.tag) + ", which nobody reserved"));
    const auto& wanted = found->second;
    if (chunk.total != wanted.buffer.size() || chunk.shape != wanted.shape)
      return fail(Error(ErrorCode::kCorrupt, where_ + ": " + to_string(chunk.tag) + " comes as " +
                                                 shape_text(chunk.shape, chunk.total) +
                                                 ", expected was " +
                                                 shape_text(wanted.shape, wanted.buffer.size())));
    if (chunk.offset != wanted.received)
      return fail(Error(ErrorCode::kCorrupt,
                        where_ + ": a chunk of " + to_string(chunk.tag) + " is out of order"));
  }
  if (bytes == 0) chunk_complete();
}

std::span<std::byte> Link::payload_space() {
  HOLMES_ASSERT(incoming_ && incoming_->filled < incoming_->bytes, "no chunk is being read");
  const auto missing = incoming_->bytes - incoming_->filled;
  if (incoming_->drop) {
    scratch_.resize(kScratchBytes);
    return std::span(scratch_).first(std::min(missing, scratch_.size()));
  }
  auto& buffer = reservations_.at(incoming_->chunk.tag).buffer;
  return buffer.mutable_bytes().subspan(incoming_->chunk.offset + incoming_->filled, missing);
}

void Link::payload_filled(std::size_t bytes) {
  HOLMES_ASSERT(incoming_ && bytes <= incoming_->bytes - incoming_->filled,
                "more bytes than the chunk has");
  incoming_->filled += bytes;
  if (incoming_->filled == incoming_->bytes) chunk_complete();
}

void Link::chunk_complete() {
  const auto incoming = std::move(*incoming_);
  incoming_.reset();
  if (incoming.drop) {
    ++stats_.stale_dropped;
    return;
  }
  const auto found = reservations_.find(incoming.chunk.tag);
  auto& reservation = found->second;
  const auto bytes = reservation.buffer.bytes().subspan(incoming.chunk.offset, incoming.bytes);
  if (incoming.chunk.checksum && *incoming.chunk.checksum != wire::checksum(bytes))
    return fail(
        Error(ErrorCode::kCorrupt,
              where_ + ": a chunk of " + to_string(incoming.chunk.tag) + " has a wrong checksum"));
  reservation.received += incoming.bytes;
  if (reservation.received < reservation.buffer.size()) return;
  auto finished = std::move(reservation);
  reservations_.erase(found);
  ++stats_.bulk_received;
  finished.done(std::move(finished.buffer));
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

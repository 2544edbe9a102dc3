#include "link/link.hpp"

#include <algorithm>

#include "holmes/base/limits.hpp"

namespace holmes::transport {

namespace {

std::string bytes_text(std::uint64_t bytes) {
  return std::to_string(bytes) + " bytes";
}

Error superseded(const BulkTag& tag, Generation generation) {
  return Error(ErrorCode::kSuperseded,
               to_string(tag) + ": superseded by generation " + std::to_string(generation.value()));
}

/// Chunks that wait in one bulk lane: one is written, the next is at hand.
constexpr std::size_t kChunksInLane = 2;

/// Completes the reservation; its memory is let go before.
Task fail_later(Reservation reservation, const Error& error) {
  return [done = std::move(reservation.done), landed = std::move(reservation.landed), error] {
    if (done) return done(error);
    landed(error);
  };
}

}  // namespace

Link::Link(std::shared_ptr<Executor> executor, Identity peer, std::string where)
    : executor_(std::move(executor)), peer_(std::move(peer)), where_(std::move(where)) {}

Link::~Link() {
  if (open())
    end(Error(ErrorCode::kClosed, where_ + ": the connection was dropped by its owner"),
        wire::Refusal{ErrorCode::kClosed, "closed by its owner"});
}

void Link::attach(std::shared_ptr<Pipe> pipe) {
  HOLMES_ASSERT(pipe_ == nullptr && pipe != nullptr, "a link has one pipe");
  pipe_ = std::move(pipe);
  lanes_.resize(pipe_->bulk_lanes());
}

/// Why no further operation is accepted, if so.
std::optional<Error> Link::refusal_of_operation() const {
  if (error_) return error_;
  const auto pending = controls_.size() + sends_.size() + reservations_.size();
  if (pending < limits::kConnectionOperationsMax) return {};
  return Error(ErrorCode::kOutOfResources,
               where_ + ": " + std::to_string(pending) +
                   " operations are pending, as many as one connection takes");
}

std::optional<Error> Link::refusal_of_bulk(const BulkTag& tag, const TensorShape& shape,
                                           std::size_t bytes) const {
  if (auto refusal = refusal_of_operation()) return refusal;
  if (tag.generation < generation_) return superseded(tag, generation_);
  if (bytes > limits::kPayloadBytesMax || shape.dimensions.size() > wire::kDimensionsMax)
    return Error(ErrorCode::kInvalidArgument,
                 to_string(tag) + ": a payload has at most " +
                     bytes_text(limits::kPayloadBytesMax) + " and " +
                     std::to_string(wire::kDimensionsMax) + " dimensions, not " +
                     bytes_text(bytes) + " and " + std::to_string(shape.dimensions.size()));
  return {};
}

void Link::complete_later(SendHandler done, Status status) {
  executor_->post([done = std::move(done), status = std::move(status)] { done(status); });
}

void Link::send_control(BufferView message, SendHandler done) {
  if (auto refusal = refusal_of_operation()) return complete_later(std::move(done), *refusal);
  if (message.size() > limits::kControlBytesMax)
    return complete_later(std::move(done), Error(ErrorCode::kInvalidArgument,
                                                 where_ + ": a control message has at most " +
                                                     bytes_text(limits::kControlBytesMax) +
                                                     ", not " + bytes_text(message.size())));
  controls_.emplace_back(next_sequence_++, std::move(done));
  pipe_->send_control(std::move(message));
}

void Link::control_sent() {
  if (!open()) return;
  HOLMES_ASSERT(!controls_.empty(), "a control message completed twice");
  const auto done = std::move(controls_.front().second);
  controls_.pop_front();
  done({});
}

void Link::send_bulk(const BulkTag& tag, const TensorShape& shape, BufferView payload,
                     SendHandler done) {
  auto refusal = refusal_of_bulk(tag, shape, payload.size());
  if (!refusal && send_by_tag_.contains(tag))
    refusal = Error(ErrorCode::kInvalidArgument, to_string(tag) + ": is already being sent");
  if (refusal) return complete_later(std::move(done), *refusal);
  const auto sequence = next_sequence_++;
  sends_.emplace(sequence, BulkSend{tag, shape, std::move(payload), std::move(done)});
  send_by_tag_.emplace(tag, sequence);
  if (goes_early(tag, sends_.at(sequence).payload.size())) {
    early_waiting_.push_back(sequence);
    return send_early();
  }
  const auto credit = credits_.find(tag);
  if (credit == credits_.end()) return;
  const auto bytes = credit->second;
  credits_.erase(credit);
  match(sequence, bytes);
}

/// Sends of short payloads go as long as the window has room.
void Link::send_early() {
  for (; !early_waiting_.empty(); early_waiting_.pop_front()) {
    const auto sequence = early_waiting_.front();
    auto& send = sends_.at(sequence);
    if (!early_window_.take(send.payload.size())) break;
    send.credited = true;
    ready_.insert(sequence);
  }
  pump();
}

/// A send that is dropped before its payload was given to a lane.
void Link::forget_early(Sequence sequence, const BulkSend& send) {
  if (!goes_early(send.tag, send.payload.size())) return;
  if (send.credited)
    early_window_.give_back(1, send.payload.size());
  else
    std::erase(early_waiting_, sequence);
}

/// The receiver's buffer for a pending send is known.
void Link::match(Sequence sequence, std::uint64_t credit_bytes) {
  auto& send = sends_.at(sequence);
  if (credit_bytes != send.payload.size())
    return fail(Error(ErrorCode::kCorrupt,
                      where_ + ": " + to_string(send.tag) + ": " + bytes_text(send.payload.size()) +
                          " are sent, the receiver reserved " + bytes_text(credit_bytes)));
  send.credited = true;
  ready_.insert(sequence);
  pump();
}

/// Gives chunks to the bulk lanes that have room.
void Link::pump() {
  for (std::size_t round = 0; round < kChunksInLane; ++round)
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
      if (!ready_.empty() && lanes_[lane].chunks.size() <= round) give_chunk(lane);
}

void Link::give_chunk(std::size_t lane) {
  const auto sequence = *ready_.begin();
  auto& send = sends_.at(sequence);
  const auto offset = send.offset;
  const auto bytes = std::min(limits::kChunkBytesMax, send.payload.size() - offset);
  lanes_[lane].chunks.push_back(sequence);
  ++send.in_flight;
  send.offset += bytes;
  send.all_given = send.offset == send.payload.size();
  if (send.all_given) ready_.erase(ready_.begin());
  pipe_->send_chunk(lane, {send.tag, send.shape, offset, send.payload.size(), {}},
                    send.payload.part(offset, bytes));
}

void Link::chunk_sent(std::size_t lane) {
  if (!open()) return;
  auto& chunks = lanes_[lane].chunks;
  HOLMES_ASSERT(!chunks.empty(), "a chunk completed that was not sent");
  const auto found = sends_.find(chunks.front());
  chunks.pop_front();
  auto& send = found->second;
  --send.in_flight;
  if (send.in_flight > 0 || !(send.all_given || send.superseded)) return pump();
  auto finished = std::move(send);
  finished.payload = {};  // the handler may want its memory back
  send_by_tag_.erase(finished.tag);
  sends_.erase(found);
  const auto self = shared_from_this();  // the handler may drop the last other reference
  pump();
  if (finished.superseded) return finished.done(superseded(finished.tag, generation_));
  ++stats_.bulk_sent;
  finished.done({});
}

void Link::receive_bulk(const BulkTag& tag, const TensorShape& shape, Buffer buffer,
                        ReceiveHandler done) {
  auto refusal = refusal_of_bulk(tag, shape, buffer.size());
  if (!refusal && (!buffer.unique() || reservations_.contains(tag)))
    refusal = Error(ErrorCode::kInvalidArgument,
                    to_string(tag) + (buffer.unique() ? ": already has a buffer"
                                                      : ": its buffer is empty or shared"));
  if (refusal) {
    executor_->post([done = std::move(done), error = *refusal] { done(error); });
    return;
  }
  const auto memory = buffer.mutable_bytes();
  reserve(tag, {next_sequence_++,
                shape,
                {memory.size(), memory, std::move(buffer), nullptr},
                std::move(done),
                nullptr,
                0,
                {}});
}

void Link::receive_bulk(const BulkTag& tag, const TensorShape& shape, Landing landing,
                        SendHandler done) {
  auto refusal = refusal_of_bulk(tag, shape, landing.bytes);
  if (!refusal && reservations_.contains(tag))
    refusal = Error(ErrorCode::kInvalidArgument, to_string(tag) + ": already has a buffer");
  if (refusal) return complete_later(std::move(done), *refusal);
  HOLMES_ASSERT(landing.memory.size() == landing.bytes || (landing.memory.empty() && landing.sink),
                "a payload has all its memory, or a sink");
  reserve(tag, {next_sequence_++, shape, std::move(landing), nullptr, std::move(done), 0, {}});
}

void Link::reserve(const BulkTag& tag, Reservation reservation) {
  const auto bytes = reservation.landing.bytes;
  reservations_.emplace(tag, std::move(reservation));
  if (!goes_early(tag, bytes)) return pipe_->send_credit({tag, bytes, 0});
  if (!early_inbox_.contains(tag)) return;
  executor_->post([weak = weak_from_this(), tag] {
    if (const auto self = weak.lock()) self->deliver_early(tag);
  });
}

void Link::on_control(std::function<void(Buffer)> handler) {
  HOLMES_ASSERT(control_handler_ == nullptr, "on_control is set once");
  if (!open()) return;
  control_handler_ = std::make_shared<std::function<void(Buffer)>>(std::move(handler));
  if (early_controls_.empty()) return;
  executor_->post([weak = weak_from_this()] {
    const auto self = weak.lock();
    while (self != nullptr && self->open() && !self->early_controls_.empty()) {
      auto message = std::move(self->early_controls_.front());
      self->early_controls_.pop_front();
      const auto keep = self->control_handler_;
      (*keep)(std::move(message));
    }
  });
}

void Link::on_closed(std::function<void(Error)> handler) {
  if (open()) {
    closed_handler_ = std::move(handler);
    return;
  }
  executor_->post([handler = std::move(handler), error = *error_] { handler(error); });
}

void Link::supersede(Generation generation) {
  if (!open() || generation <= generation_) return;
  generation_ = generation;
  std::map<Sequence, Task> stale;
  for (auto it = sends_.begin(); it != sends_.end();) {
    auto& [sequence, send] = *it;
    if (send.tag.generation >= generation) {
      ++it;
      continue;
    }
    ready_.erase(sequence);
    if (send.in_flight > 0) {  // its chunks are still being written: ends with them
      send.superseded = true;
      ++it;
      continue;
    }
    forget_early(sequence, send);
    const auto error = superseded(send.tag, generation);
    stale.emplace(sequence, [done = std::move(send.done), error] { done(error); });
    send_by_tag_.erase(send.tag);
    it = sends_.erase(it);
  }
  for (auto it = reservations_.begin(); it != reservations_.end();) {
    auto& [tag, reservation] = *it;
    if (tag.generation >= generation) break;  // tags sort by generation first
    const auto error = superseded(tag, generation);
    const auto sequence = reservation.sequence;
    stale.emplace(sequence, fail_later(std::move(reservation), error));
    it = reservations_.erase(it);
  }
  for (auto& lane : lanes_)
    if (lane.incoming && lane.incoming->chunk.tag.generation < generation) lane.incoming->drop();
  early_inbox_.drop_below(generation);
  if (const auto credit = early_inbox_.due()) pipe_->send_credit(*credit);
  std::erase_if(credits_, [&](const auto& entry) { return entry.first.generation < generation; });
  for (auto& [sequence, task] : stale) executor_->post(std::move(task));
}

void Link::close() {
  if (!open()) return;
  end(Error(ErrorCode::kClosed, where_ + ": the connection was closed at this end"),
      wire::Refusal{ErrorCode::kClosed, "closed by the other end"});
}

void Link::lost(const Error& error) {
  if (open()) end(farewell_.value_or(error), {});
}

void Link::fail(const Error& error) {
  if (open()) end(error, wire::Refusal{error.code(), error.message()});
}

void Link::end(const Error& error, const std::optional<wire::Refusal>& farewell) {
  error_ = error;
  auto tasks = take_pending(error);
  control_handler_.reset();
  early_controls_.clear();
  credits_.clear();
  early_waiting_.clear();
  early_inbox_.clear();
  ready_.clear();
  send_by_tag_.clear();
  for (auto& lane : lanes_) {
    lane.chunks.clear();
    lane.incoming.reset();
  }
  if (pipe_ != nullptr) pipe_->close(farewell);
  if (closed_handler_)
    tasks.push_back([handler = std::move(closed_handler_), error] { handler(error); });
  closed_handler_ = nullptr;
  for (auto& task : tasks) executor_->post(std::move(task));
}

/// Completions of all pending operations in the order of their submission.
std::vector<Task> Link::take_pending(const Error& error) {
  std::map<Sequence, Task> by_sequence;
  for (auto& [sequence, done] : controls_)
    by_sequence.emplace(sequence, [done = std::move(done), error] { done(error); });
  for (auto& [sequence, send] : sends_)
    by_sequence.emplace(sequence, [done = std::move(send.done), error] { done(error); });
  for (auto& [tag, reservation] : reservations_) {
    const auto sequence = reservation.sequence;
    by_sequence.emplace(sequence, fail_later(std::move(reservation), error));
  }
  controls_.clear();
  sends_.clear();
  reservations_.clear();
  std::vector<Task> tasks;
  for (auto& [sequence, task] : by_sequence) tasks.push_back(std::move(task));
  return tasks;
}

}  // namespace holmes::transport

#include "shaped/connection.hpp"

#include "holmes/base/limits.hpp"

namespace holmes::transport {

ShapedConnection::ShapedConnection(std::shared_ptr<Connection> inner,
                                   std::shared_ptr<Shaper> shaper)
    : inner_(std::move(inner)), shaper_(std::move(shaper)) {}

ShapedConnection::~ShapedConnection() {
  const Error error(ErrorCode::kClosed, "the connection was dropped by its owner");
  drop_pending(error, [](const BulkTag&) { return true; });
  inner_.reset();  // completes what is pending there, if this was the last reference
  if (closed_handler_)
    executor().post([handler = std::move(closed_handler_), error] { handler(error); });
}

void ShapedConnection::start() {
  inner_->on_control([weak = weak_from_this()](Buffer message) {
    if (const auto self = weak.lock()) self->control_arrived(std::move(message));
  });
  inner_->on_closed([weak = weak_from_this()](const Error& error) {
    if (const auto self = weak.lock()) self->inner_closed(error);
  });
}

void ShapedConnection::send_control(BufferView message, SendHandler done) {
  shaper_->charge_control(message.size());
  inner_->send_control(std::move(message), std::move(done));
}

void ShapedConnection::send_bulk(const BulkTag& tag, const TensorShape& shape, BufferView payload,
                                 SendHandler done) {
  if (closed_ || closing_)  // the inner connection has the sticky error
    return inner_->send_bulk(tag, shape, std::move(payload), std::move(done));
  if (paced_.size() >= limits::kConnectionOperationsMax) {
    const Error error(ErrorCode::kOutOfResources, "too many payloads wait for their turn");
    executor().post([done = std::move(done), error] { done(error); });
    return;
  }
  const auto number = next_number_++;
  const auto bytes = payload.size();
  paced_.emplace(number, Paced{tag, shape, std::move(payload), std::move(done)});
  shaper_->pace(bytes, [weak = weak_from_this(), number] {
    if (const auto self = weak.lock()) self->send_paced(number);
  });
}

void ShapedConnection::send_paced(std::uint64_t number) {
  auto node = paced_.extract(number);
  if (node.empty()) return;
  auto& paced = node.mapped();
  inner_->send_bulk(paced.tag, paced.shape, std::move(paced.payload), std::move(paced.done));
}

void ShapedConnection::receive_bulk(const BulkTag& tag, const TensorShape& shape, Buffer buffer,
                                    ReceiveHandler done) {
  const auto arrived = [weak = weak_from_this(), tag, done = std::move(done),
                        reserved = executor().clock().now()](Result<Buffer> result) {
    const auto self = weak.lock();
    if (!result || self == nullptr) return done(std::move(result));
    const auto bytes = result->size();
    self->hold_payload(tag, bytes, reserved, std::move(*result), done);
  };
  inner_->receive_bulk(tag, shape, std::move(buffer), arrived);
}

/// Pieces reach their sink as they come; only the completion is held.
void ShapedConnection::receive_bulk(const BulkTag& tag, const TensorShape& shape, Landing landing,
                                    SendHandler done) {
  const auto landed = [weak = weak_from_this(), tag, bytes = landing.bytes, done = std::move(done),
                       reserved = executor().clock().now()](const Status& status) {
    const auto self = weak.lock();
    if (!status || self == nullptr) return done(status);
    self->hold_payload(tag, bytes, reserved, {}, [done](const Result<Buffer>& result) {
      if (result) return done({});
      done(result.error());
    });
  };
  inner_->receive_bulk(tag, shape, std::move(landing), landed);
}

void ShapedConnection::hold_payload(const BulkTag& tag, std::size_t bytes, TimePoint reserved,
                                    Buffer buffer, ReceiveHandler done) {
  if (closing_) return done(Error(ErrorCode::kClosed, "the connection was closed"));
  const auto due = shaper_->bulk_due(bytes, reserved);
  hold(held_payloads_, Held{due, tag, std::move(buffer), std::move(done)});
}

void ShapedConnection::control_arrived(Buffer message) {
  if (closing_) return;
  const auto due = shaper_->control_due(message.size());
  hold(held_controls_, Held{due, {}, std::move(message), {}});
}

/// Queues are in the order of arrival; a later one is never handed on before an earlier one.
void ShapedConnection::hold(std::deque<Held>& queue, Held held) {
  queue.push_back(std::move(held));
  if (queue.size() == 1) await_front(queue);
}

void ShapedConnection::await_front(std::deque<Held>& queue) {
  const auto wait = queue.front().due - executor().clock().now();
  executor().post_after(std::max(wait, Duration::zero()), [weak = weak_from_this(), &queue] {
    if (const auto self = weak.lock()) self->hand_on_due(queue);
  });
}

void ShapedConnection::hand_on_due(std::deque<Held>& queue) {
  while (!queue.empty() && queue.front().due <= executor().clock().now()) hand_on_front(queue);
  if (!queue.empty()) await_front(queue);
}

void ShapedConnection::hand_on_front(std::deque<Held>& queue) {
  auto held = std::move(queue.front());
  queue.pop_front();
  if (held.tag) return held.done(std::move(held.buffer));
  if (control_handler_ == nullptr || !early_controls_.empty()) {
    if (early_controls_.size() == limits::kConnectionOperationsMax) return close();
    early_controls_.push_back(std::move(held.buffer));
    return;
  }
  const auto keep = control_handler_;
  (*keep)(std::move(held.buffer));
}

void ShapedConnection::on_control(std::function<void(Buffer)> handler) {
  if (closed_ || closing_) return;
  control_handler_ = std::make_shared<std::function<void(Buffer)>>(std::move(handler));
  executor().post([weak = weak_from_this()] {
    const auto self = weak.lock();
    while (self != nullptr && self->control_handler_ && !self->early_controls_.empty()) {
      auto message = std::move(self->early_controls_.front());
      self->early_controls_.pop_front();
      const auto keep = self->control_handler_;
      (*keep)(std::move(message));
    }
  });
}

void ShapedConnection::on_closed(std::function<void(Error)> handler) {
  if (!closed_) {
    closed_handler_ = std::move(handler);
    return;
  }
  executor().post([handler = std::move(handler), error = *closed_] { handler(error); });
}

/// Completes what this decorator still has of the payloads that `which` names.
void ShapedConnection::drop_pending(const Error& error,
                                    const std::function<bool(const BulkTag&)>& which) {
  std::erase_if(paced_, [&](auto& entry) {
    if (!which(entry.second.tag)) return false;
    executor().post([done = std::move(entry.second.done), error] { done(error); });
    return true;
  });
  std::erase_if(held_payloads_, [&](auto& held) {
    if (!which(*held.tag)) return false;
    executor().post([done = std::move(held.done), error] { done(error); });
    return true;
  });
}

void ShapedConnection::supersede(Generation generation) {
  const Error error(ErrorCode::kSuperseded,
                    "superseded by generation " + std::to_string(generation.value()));
  drop_pending(error, [&](const BulkTag& tag) { return tag.generation < generation; });
  inner_->supersede(generation);
}

void ShapedConnection::close() {
  if (closed_ || closing_) return;
  closing_ = true;
  drop_pending(Error(ErrorCode::kClosed, "the connection was closed at this end"),
               [](const BulkTag&) { return true; });
  held_controls_.clear();
  early_controls_.clear();
  control_handler_.reset();
  inner_->close();
}

/// What has arrived is handed on at once: nothing follows that could show it came early.
void ShapedConnection::inner_closed(const Error& error) {
  while (!held_payloads_.empty()) hand_on_front(held_payloads_);
  while (!held_controls_.empty()) hand_on_front(held_controls_);
  if (control_handler_) early_controls_.clear();
  drop_pending(error, [](const BulkTag&) { return true; });
  closed_ = error;
  control_handler_.reset();
  if (closed_handler_)
    executor().post([handler = std::exchange(closed_handler_, nullptr), error] { handler(error); });
}

}  // namespace holmes::transport

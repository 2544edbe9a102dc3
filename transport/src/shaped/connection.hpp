#pragma once

// A connection whose sends are paced and whose arrivals are held; everything else is the inner
// connection's.

#include <map>
#include <optional>

#include "shaped/shaper.hpp"

namespace holmes::transport {

class ShapedConnection final : public Connection,
                               public std::enable_shared_from_this<ShapedConnection> {
 public:
  ShapedConnection(std::shared_ptr<Connection> inner, std::shared_ptr<Shaper> shaper);
  ~ShapedConnection() override;
  /// Takes over the inner connection's handlers; once, directly after construction.
  void start();

  const Identity& peer() const override { return inner_->peer(); }
  void send_control(BufferView message, SendHandler done) override;
  void send_bulk(const BulkTag& tag, const TensorShape& shape, BufferView payload,
                 SendHandler done) override;
  void receive_bulk(const BulkTag& tag, const TensorShape& shape, Buffer buffer,
                    ReceiveHandler done) override;
  void receive_bulk(const BulkTag& tag, const TensorShape& shape, Landing landing,
                    SendHandler done) override;
  void on_control(std::function<void(Buffer)> handler) override;
  void on_closed(std::function<void(Error)> handler) override;
  void supersede(Generation generation) override;
  void close() override;
  ConnectionStats stats() const override { return inner_->stats(); }

 private:
  struct Paced {  // a send that has not had its time
    BulkTag tag;
    TensorShape shape;
    BufferView payload;
    SendHandler done;
  };
  struct Held {  // what arrived and is not yet handed on
    TimePoint due;
    std::optional<BulkTag> tag;  // of a payload; none: a control message
    Buffer buffer;               // none where the payload went into a landing
    ReceiveHandler done;
  };

  Executor& executor() { return shaper_->executor(); }
  void send_paced(std::uint64_t number);
  /// Completes `done` when a payload that is whole now has had its time.
  void hold_payload(const BulkTag& tag, std::size_t bytes, TimePoint reserved, Buffer buffer,
                    ReceiveHandler done);
  void hold(std::deque<Held>& queue, Held held);
  void await_front(std::deque<Held>& queue);
  void hand_on_front(std::deque<Held>& queue);
  void hand_on_due(std::deque<Held>& queue);
  void control_arrived(Buffer message);
  void inner_closed(const Error& error);
  void drop_pending(const Error& error, const std::function<bool(const BulkTag&)>& which);

  std::shared_ptr<Connection> inner_;
  std::shared_ptr<Shaper> shaper_;
  std::map<std::uint64_t, Paced> paced_;
  std::uint64_t next_number_ = 0;
  std::deque<Held> held_controls_;
  std::deque<Held> held_payloads_;
  std::deque<Buffer> early_controls_;
  std::shared_ptr<std::function<void(Buffer)>> control_handler_;
  std::function<void(Error)> closed_handler_;
  std::optional<Error> closed_;
  bool closing_ = false;  // close() was called: nothing more is handed on
};

}  // namespace holmes::transport

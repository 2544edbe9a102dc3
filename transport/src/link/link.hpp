#pragma once

// Link is the Connection of every backend that moves frames: rendezvous by credits, order of bulk
// sends, chunking, striping, generations, sticky errors and exactly-once completion are here, once.
// A Pipe below it moves the frames; the pipe's reader calls the second half of the public methods.
//
// Threads: one executor. The pipe's calls come from its tasks, never from inside Pipe::send_*.

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "holmes/transport/connection.hpp"
#include "link/early.hpp"
#include "link/incoming.hpp"
#include "link/pipe.hpp"

namespace holmes::transport {

class Link final : public Connection, public std::enable_shared_from_this<Link> {
 public:
  /// `where` names the peer in errors: "host 1, NIC 0 at 127.1.1.1:4000".
  Link(std::shared_ptr<Executor> executor, Identity peer, std::string where);
  ~Link() override;
  void attach(std::shared_ptr<Pipe> pipe);

  const Identity& peer() const override { return peer_; }
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
  ConnectionStats stats() const override { return stats_; }

  // For the pipe. After each of these the link may have failed: ask open().
  bool open() const { return !error_; }
  void control_sent();
  void chunk_sent(std::size_t lane);
  void control_arrived(Buffer message);
  void credit_arrived(const wire::Credit& credit);
  /// A chunk begins; its `bytes` then go into payload_space(), piece by piece.
  void chunk_begins(std::size_t lane, const wire::Chunk& chunk, std::size_t bytes);
  /// Where the next bytes of the chunk go; ask anew for every piece. Never empty within a chunk.
  std::span<std::byte> payload_space(std::size_t lane);
  void payload_filled(std::size_t lane, std::size_t bytes);
  /// The peer said goodbye in the control lane; chunks sent before may still be on their way.
  void farewell_arrived(const wire::Refusal& farewell);
  /// A lane ended: everything pending completes with the farewell, if there was one, else `error`.
  void lost(const Error& error);
  /// The peer broke the protocol, or this end cannot go on: tells the peer and fails.
  void fail(const Error& error);
  void count_sent(std::size_t bytes) { stats_.bytes_sent += bytes; }
  void count_received(std::size_t bytes) { stats_.bytes_received += bytes; }
  const std::string& where() const { return where_; }

 private:
  using Sequence = std::uint64_t;  // order of submission

  struct BulkSend {
    BulkTag tag;
    TensorShape shape;
    BufferView payload;
    SendHandler done;
    std::size_t offset = 0;     // bytes given to lanes
    std::size_t in_flight = 0;  // chunks that lanes have not yet written
    bool credited = false;      // the receiver has a buffer
    bool all_given = false;     // the last chunk is in a lane
    bool superseded = false;
  };
  struct BulkLane {
    std::deque<Sequence> chunks;  // given and not written, by the send they belong to
    std::optional<Incoming> incoming;
    std::vector<std::byte> scratch;
  };

  std::optional<Error> refusal_of_operation() const;
  std::optional<Error> refusal_of_bulk(const BulkTag& tag, const TensorShape& shape,
                                       std::size_t bytes) const;
  void complete_later(SendHandler done, Status status);
  void reserve(const BulkTag& tag, Reservation reservation);
  void pump();
  void send_early();
  void deliver_early(const BulkTag& tag);
  void early_complete(Incoming incoming);
  void early_taken(std::size_t bytes);
  void forget_early(Sequence sequence, const BulkSend& send);
  void give_chunk(std::size_t lane);
  void match(Sequence sequence, std::uint64_t credit_bytes);
  Status find_place(Incoming& incoming);
  Status check_chunk(const wire::Chunk& chunk, const Reservation& wanted, std::size_t bytes) const;
  void piece_complete(std::size_t lane);
  void chunk_complete(std::size_t lane);
  void end(const Error& error, const std::optional<wire::Refusal>& farewell);
  std::vector<Task> take_pending(const Error& error);

  std::shared_ptr<Executor> executor_;
  const Identity peer_;
  const std::string where_;
  std::shared_ptr<Pipe> pipe_;
  std::optional<Error> error_;
  std::optional<Error> farewell_;
  ConnectionStats stats_;
  Generation generation_;  // operations below are stale
  Sequence next_sequence_ = 0;

  std::deque<std::pair<Sequence, SendHandler>> controls_;  // sent, not completed
  std::map<Sequence, BulkSend> sends_;
  std::map<BulkTag, Sequence> send_by_tag_;
  std::set<Sequence> ready_;  // sends whose receiver has a buffer, with chunks to give
  std::map<BulkTag, std::uint64_t> credits_;  // of the peer, not yet matched by a send
  std::map<BulkTag, Reservation> reservations_;
  EarlyWindow early_window_;
  std::deque<Sequence> early_waiting_;  // sends that the window has no room for
  EarlyInbox early_inbox_;
  std::vector<BulkLane> lanes_;

  std::shared_ptr<std::function<void(Buffer)>> control_handler_;
  std::deque<Buffer> early_controls_;  // came before there was a handler
  std::function<void(Error)> closed_handler_;
};

}  // namespace holmes::transport

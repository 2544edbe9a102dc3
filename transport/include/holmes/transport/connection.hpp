#pragma once

// The transport interface: a Context is one NIC of this process; it listens and connects; a
// Connection is one link to one NIC of another process. Backends implement these three classes and
// pass tests/conformance. Algorithms and actors know nothing else of a backend.
//
// Threads: every object belongs to its context's executor. All methods are called from a task of
// that executor and all handlers run there. No handler runs inside the call that it answers.
//
// Completion: each accepted operation completes exactly once, with success or an error. Control
// messages complete and arrive in the order in which they were sent. A bulk send waits until its
// receiver has reserved a buffer under the same tag (but a short one of a collective does not);
// those that need not wait go in the order in which they were submitted. Errors are sticky: after
// the first the connection is closed, and everything pending and later completes with that error.

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "holmes/base/buffer.hpp"
#include "holmes/base/executor.hpp"
#include "holmes/base/result.hpp"
#include "holmes/transport/message.hpp"

namespace holmes::transport {

/// Who is at one end of a connection; exchanged in the hello and checked by both ends.
struct Identity {
  std::string job;  ///< A connection between different jobs is refused.
  HostId host;
  NicId nic;
  Epoch epoch;                 ///< Of the coordinator that the process follows.
  std::string host_name = {};  ///< At most 64 bytes; of whoever does not know its number yet.
};

/// Where a context listens: "127.1.2.1:4000" for tcp, "host-1/ib0" for sim.
struct Endpoint {
  std::string address;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

using SendHandler = std::function<void(Status)>;
using ReceiveHandler = std::function<void(Result<Buffer>)>;

/// Is told of a payload piece by piece while it arrives: to sum it up, or to pass it on.
class PayloadSink {
 public:
  virtual ~PayloadSink() = default;
  /// `bytes`, from `offset` of the payload, have arrived and are what was sent, if the link has
  /// checksums. Pieces come once each, in any order; all but the last of a chunk have a size that
  /// is a multiple of 64. An error ends the connection.
  virtual Status piece(std::size_t offset, std::span<const std::byte> bytes) = 0;
};

/// Where a payload goes when it is not a whole buffer of its own.
struct Landing {
  std::size_t bytes = 0;
  /// All of the payload's place, which nobody touches until completion; empty: the link's own
  /// memory, where a piece is only until `sink` has had it.
  std::span<std::byte> memory;
  Buffer owner;                       ///< Of `memory`: held until completion.
  std::shared_ptr<PayloadSink> sink;  ///< May be null if there is memory.
};

struct ConnectionStats {
  std::uint64_t bytes_sent = 0;  ///< Control and bulk, headers included.
  std::uint64_t bytes_received = 0;
  std::uint64_t bulk_sent = 0;  ///< Completed bulk sends.
  std::uint64_t bulk_received = 0;
  std::uint64_t stale_dropped = 0;  ///< Chunks of an old generation, read and dropped.
};

class Connection {
 public:
  virtual ~Connection() = default;

  /// The other end, as its hello said.
  virtual const Identity& peer() const = 0;

  /// Sends one control message of at most limits::kControlBytesMax. `done`: the local end is done
  /// with the buffer; not that the peer has it.
  virtual void send_control(BufferView message, SendHandler done) = 0;

  /// Sends `payload` into the buffer that the peer reserves under `tag`.
  virtual void send_bulk(const BulkTag& tag, const TensorShape& shape, BufferView payload,
                         SendHandler done) = 0;

  /// Reserves `buffer` (unique; the connection holds it until completion) for the payload `tag`.
  /// The payload must have exactly its size and `shape`.
  virtual void receive_bulk(const BulkTag& tag, const TensorShape& shape, Buffer buffer,
                            ReceiveHandler done) = 0;
  /// The same for a payload that goes where `landing` says.
  virtual void receive_bulk(const BulkTag& tag, const TensorShape& shape, Landing landing,
                            SendHandler done) = 0;

  /// Set once, directly after the connection is made; messages that came earlier are kept for it.
  virtual void on_control(std::function<void(Buffer)> handler) = 0;
  /// Runs once, when the connection ends for whatever reason, after all pending operations.
  virtual void on_closed(std::function<void(Error)> handler) = 0;

  /// Completes every pending bulk operation of a generation below `generation` with kSuperseded;
  /// what the peer still sends for them is read and dropped. New operations of such a generation
  /// complete with kSuperseded.
  virtual void supersede(Generation generation) = 0;

  /// Asynchronous and idempotent: pending operations complete with kClosed, then on_closed runs.
  virtual void close() = 0;

  virtual ConnectionStats stats() const = 0;
};

/// A listening address. Destroying it stops listening; connections made stay.
class Listener {
 public:
  virtual ~Listener() = default;
  /// The address to dial, with the real port where port 0 was asked for.
  virtual Endpoint endpoint() const = 0;
};

using ConnectHandler = std::function<void(Result<std::shared_ptr<Connection>>)>;
using AcceptHandler = std::function<void(std::shared_ptr<Connection>)>;
/// A peer that was refused, or went before its hello was complete: for logs and counters.
using RefuseHandler = std::function<void(Error)>;

class Context {
 public:
  virtual ~Context() = default;

  virtual Executor& executor() = 0;

  /// Accepts peers whose hello fits `self` (same protocol version and job).
  virtual Result<std::unique_ptr<Listener>> listen(const Endpoint& at, const Identity& self,
                                                   AcceptHandler accepted,
                                                   RefuseHandler refused) = 0;

  /// Dials `remote` from this NIC's own address. Fails with kRefused and the peer's reason, or
  /// kTimeout after `deadline`, or kUnavailable when nobody listens there.
  virtual void connect(const Endpoint& remote, const Identity& self, Duration deadline,
                       ConnectHandler done) = 0;
};

}  // namespace holmes::transport

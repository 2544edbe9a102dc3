#pragma once

// A Pipe is what a backend adds below a Link: it moves frames to the peer's Link in one control
// lane and one or more bulk lanes, each in order, control never behind bulk. It knows nothing of
// rendezvous or generations.

#include <optional>

#include "holmes/base/buffer.hpp"
#include "holmes/base/executor.hpp"
#include "wire/codec.hpp"

namespace holmes::transport {

class Pipe {
 public:
  virtual ~Pipe() = default;
  virtual std::size_t bulk_lanes() const = 0;

  // None of these calls the link back inside the call, none is called after close(). For each
  // message the pipe calls Link::control_sent, for each chunk Link::chunk_sent, in the order of
  // each lane, once the payload is no longer needed.
  virtual void send_control(BufferView message) = 0;
  virtual void send_credit(const wire::Credit& credit) = 0;
  virtual void send_chunk(std::size_t lane, const wire::Chunk& chunk, BufferView payload) = 0;

  /// Ends the link without waiting; tells the peer why if there is something to tell. Idempotent.
  virtual void close(const std::optional<wire::Refusal>& farewell) = 0;
};

}  // namespace holmes::transport

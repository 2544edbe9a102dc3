#pragma once

// A Pipe is what a backend adds below a Link: it moves frames to the peer's Link in two lanes,
// each in order, control never behind bulk. It knows nothing of rendezvous or generations.

#include <optional>
#include <variant>

#include "holmes/base/buffer.hpp"
#include "holmes/base/executor.hpp"
#include "wire/codec.hpp"

namespace holmes::transport {

/// A control message, the payload of its frame.
struct ControlFrame {};

/// Chunks travel in the bulk lane, everything else in the control lane.
struct OutFrame {
  std::variant<ControlFrame, wire::Credit, wire::Chunk> head;
  BufferView payload;
};

class Pipe {
 public:
  virtual ~Pipe() = default;
  /// `sent` runs in a later task, once the payload is no longer needed. Never after close().
  virtual void send(OutFrame frame, Task sent) = 0;
  /// Ends the link without waiting; tells the peer why if there is something to tell. Idempotent.
  virtual void close(const std::optional<wire::Refusal>& farewell) = 0;
};

}  // namespace holmes::transport

#pragma once

// The receiving side's values: a reserved place for a payload, and the chunk that a lane reads.

#include <vector>

#include "holmes/transport/connection.hpp"
#include "wire/codec.hpp"

namespace holmes::transport {

/// The chunks of a payload that have begun, when they may come in any order.
class ChunkSet {
 public:
  void add(std::size_t index);
  bool contains(std::size_t index) const;

 private:
  std::uint64_t first_ = 0;  // chunks 0 to 63
  std::vector<std::uint64_t> more_;
};

struct Reservation {
  std::uint64_t sequence = 0;  // order of submission
  TensorShape shape;
  Landing landing;
  ReceiveHandler done;  // one of the two is set: by which call it was made
  SendHandler landed;
  std::size_t received = 0;  // bytes, of whole chunks
  ChunkSet begun;

  /// All bytes are there: lets the memory go, then tells.
  void complete();
};

/// The chunk that a lane is reading.
struct Incoming {
  wire::Chunk chunk;
  std::size_t bytes = 0;
  std::size_t filled = 0;
  std::size_t handed_on = 0;           // bytes that the sink has had
  Reservation* reservation = nullptr;  // none: read and dropped, or early
  Buffer early = {};                   // of a payload that nobody has reserved for yet

  /// Its pieces go through the lane's scratch memory.
  bool through_scratch() const {
    if (early) return false;
    return reservation == nullptr || reservation->landing.memory.empty();
  }
  /// Nobody wants the rest.
  void drop() {
    reservation = nullptr;
    early = {};
    handed_on = filled;
  }
};

}  // namespace holmes::transport

#pragma once

// One stream of a link: writes frames in order, gathering them, and reads bytes into wherever a
// FrameReader wants them. All reads and writes are non-blocking and happen in this thread, so a
// buffer is never touched behind the owner's back and may be exchanged between two reads.
//
// write() only queues; the socket is written to in a later task, so that what one task writes
// leaves together and no event comes from inside write().

#include <deque>
#include <functional>
#include <optional>

#include "holmes/base/buffer.hpp"
#include "tcp/loop_state.hpp"
#include "tcp/stream.hpp"
#include "wire/codec.hpp"
#include "wire/frame_reader.hpp"

namespace holmes::transport::tcp {

/// What a lane tells its pipe; each may close the lane.
struct LaneEvents {
  std::function<void(std::size_t)> sent;
  std::function<void()> frame_written;  ///< One for which it was asked, in their order.
  std::function<void(std::size_t)> received;
  std::function<void(Error)> lost;      ///< The peer or the network is gone.
  std::function<void(Error)> violated;  ///< The peer sent what it must not.
};

class Lane {
 public:
  Lane(LoopState& loop, std::unique_ptr<Stream> stream, wire::FrameSink& sink,
       std::size_t read_ahead);

  /// `keep` keeps the lane alive while an operation waits. Begins to read and write.
  void start(std::weak_ptr<void> keep, LaneEvents events);
  /// Memory for the next head: that of an earlier frame.
  wire::EncodedHead take_spare();
  /// `report`: LaneEvents::frame_written once the frame has left.
  void write(wire::EncodedHead head, BufferView payload, bool report);
  /// Tries once, without waiting, and only between frames: for a farewell.
  void write_last(const wire::EncodedHead& head);
  void close();

 private:
  struct Out {
    wire::EncodedHead head;
    BufferView payload;
    bool report = false;
  };

  void schedule_flush();
  void flush();
  bool take_written(std::size_t bytes);
  void await_writable();
  void read();
  void read_head();
  bool take_read(std::size_t bytes);
  void await_readable();
  void lost(const std::error_code& error);

  LoopState& loop_;
  std::unique_ptr<Stream> stream_;  // null: closed
  wire::FrameReader reader_;
  std::weak_ptr<void> keep_;
  LaneEvents events_;
  bool started_ = false;
  std::deque<Out> queue_;
  std::vector<wire::EncodedHead> spares_;
  std::size_t front_written_ = 0;  // bytes of the queue's front that have left
  bool writing_ = false;           // a flush will come: when the socket takes more, or next
};

}  // namespace holmes::transport::tcp

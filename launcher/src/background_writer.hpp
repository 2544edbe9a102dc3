#pragma once

// Writes to one terminal, pipe or file on a thread of its own, so that a reader who does not read
// holds up nobody else. It does not decide what may be lost: the caller says so for each text.
//
// Threads: all methods from any thread. The descriptor belongs to the caller; a thread that is
// stuck in a write is left behind when the object goes, and ends with the process.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace holmes::launcher {

class BackgroundWriter {
 public:
  /// Bytes that wait at most: of what may be dropped, and of everything.
  struct Bounds {
    std::size_t droppable_bytes = std::size_t{1} << 20;
    std::size_t bytes = std::size_t{64} << 20;
  };
  BackgroundWriter() : BackgroundWriter(Bounds{}) {}
  explicit BackgroundWriter(Bounds bounds);
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  /// Never waits. A text that finds no room is counted instead.
  void write(int descriptor, std::string text, bool droppable);
  /// Waits until all is written; false when that takes longer.
  bool flush(std::chrono::milliseconds deadline);
  std::uint64_t dropped() const;

 private:
  struct State;
  static void run(State& state);

  const Bounds bounds_;
  const std::shared_ptr<State> state_;
};

}  // namespace holmes::launcher

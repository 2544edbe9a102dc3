#pragma once

// The one writer to the terminal: lines of results on stdout, log lines on stderr, and, where
// stdout is a terminal, a live block below them that is redrawn in place. It does not decide what
// is shown.
//
// Threads: all methods from any thread. Descriptors belong to the caller and must outlive it.

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "background_writer.hpp"

namespace holmes::launcher {

class Console {
 public:
  struct Descriptors {
    int out = 1;
    int error = 2;
  };
  explicit Console(Descriptors descriptors) : descriptors_(descriptors) {}
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// From now on no method waits for a reader; finish() waits for what is still to be written.
  void write_in_background(BackgroundWriter::Bounds bounds = {});
  /// Waits for readers, at most `deadline`; what was not written, and why, is said on stderr.
  void finish(std::chrono::milliseconds deadline);

  /// One or more whole lines of results; the last newline is added.
  void print(std::string_view text);
  /// The same for lines that may be left out when nobody reads.
  void print_progress(std::string_view text);
  /// The same for logs.
  void log(std::string_view text);
  /// Results piece by piece, as they come. Not while a live block is shown.
  void stream(std::string_view text);
  /// Replaces the live block. Lines must be narrower than the terminal.
  void show(std::vector<std::string> block);
  /// Leaves the block as it stands; what follows goes below it.
  void leave();

  /// errno of the first write to stdout that failed, else 0; unknown of what is written in the
  /// background, where a reader who is gone must not stop a run.
  int output_error() const;

  /// Columns of the terminal that is stdout; 0 where it is none.
  int columns() const;

 private:
  void write_above(int descriptor, std::string_view text, bool droppable = false);
  void put(int descriptor, std::string text, bool droppable);
  std::string erase() const;
  std::string block_text() const;

  const Descriptors descriptors_;
  mutable std::mutex mutex_;
  int output_error_ = 0;
  std::vector<std::string> block_;
  // Two, so that a full stdout does not silence stderr.
  std::unique_ptr<BackgroundWriter> out_;
  std::unique_ptr<BackgroundWriter> error_;
};

/// Writes all of `text`, waiting for room; returns errno where that fails, else 0.
int write_all(int descriptor, std::string_view text);

}  // namespace holmes::launcher

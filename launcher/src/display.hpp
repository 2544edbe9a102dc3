#pragma once

// Shows a session's events on a Console: a live block on a terminal, plain lines elsewhere, or JSON
// lines. Which one is the caller's choice. Threads: one at a time.

#include <filesystem>
#include <functional>
#include <string>

#include "console.hpp"
#include "holmes/base/clock.hpp"
#include "progress.hpp"

namespace holmes::launcher {

enum class DisplayMode : std::uint8_t { kLive, kPlain, kJson };

struct DisplayOptions {
  DisplayMode mode = DisplayMode::kPlain;
  bool color = false;
  bool unicode = true;
  std::uint64_t steps_total = 0;
  partition::Cluster cluster;
  /// Where what a host wrote lies, for whoever wants to know why it was lost; empty: not here.
  /// Optional.
  std::function<std::filesystem::path(const std::string& host)> log_file;
  Duration line_every = std::chrono::seconds(10);          ///< Plain lines, at most so often.
  Duration redraw_every = std::chrono::milliseconds(100);  ///< The live block, at most so often.
};

class Display {
 public:
  /// Console and clock must outlive the display.
  Display(Console& console, const Clock& clock, DisplayOptions options);
  void on_event(const actors::Event& event);
  /// Draws the last state once more and ends the live block.
  void end();

 private:
  std::string log_of(const std::string& host) const;
  void announce(const actors::Event& event);
  void advance(const actors::Event& event);
  void draw();
  bool due(Duration every);

  Console& console_;
  const Clock& clock_;
  const DisplayOptions options_;
  ProgressTracker tracker_;
  TimePoint shown_at_{};
  bool shown_ = false;
};

}  // namespace holmes::launcher

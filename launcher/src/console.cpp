#include "console.hpp"

#include <cerrno>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace holmes::launcher {

int write_all(int descriptor, std::string_view text) {
  constexpr int kTickMs = 1'000;
  while (!text.empty()) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      // Whoever shares the terminal or pipe may have made it non-blocking.
      pollfd watched{descriptor, POLLOUT, 0};
      ::poll(&watched, 1, kTickMs);
      continue;
    }
    if (written <= 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void Console::write_in_background(BackgroundWriter::Bounds bounds) {
  const std::lock_guard lock(mutex_);
  out_ = std::make_unique<BackgroundWriter>(bounds);
  error_ = std::make_unique<BackgroundWriter>(bounds);
}

void Console::finish(std::chrono::milliseconds deadline) {
  if (!out_) return;
  const bool whole = out_->flush(deadline);
  const auto dropped = out_->dropped();
  if (!whole) log("holmes: nobody reads stdout; the end of the output is lost");
  if (dropped != 0)
    log("holmes: stdout was not read in time; " + std::to_string(dropped) + " lines were left out");
  error_->flush(deadline);
}

void Console::put(int descriptor, std::string text, bool droppable) {
  if (!out_) {
    const int error = write_all(descriptor, text);
    if (descriptor == descriptors_.out && output_error_ == 0) output_error_ = error;
    return;
  }
  // Beside a live block lines must keep their order, whichever stream they are for.
  const bool ordered = descriptor == descriptors_.out || !block_.empty();
  (ordered ? out_ : error_)->write(descriptor, std::move(text), droppable);
}

void Console::print_progress(std::string_view text) {
  write_above(descriptors_.out, text, true);
}

void Console::print(std::string_view text) {
  write_above(descriptors_.out, text);
}

void Console::log(std::string_view text) {
  write_above(descriptors_.error, text);
}

void Console::stream(std::string_view text) {
  const std::lock_guard lock(mutex_);
  put(descriptors_.out, std::string(text), false);
}

void Console::show(std::vector<std::string> block) {
  const std::lock_guard lock(mutex_);
  const std::string old = erase();
  block_ = std::move(block);
  put(descriptors_.out, old + block_text(), false);
}

void Console::leave() {
  const std::lock_guard lock(mutex_);
  block_.clear();
}

int Console::output_error() const {
  const std::lock_guard lock(mutex_);
  return output_error_;
}

int Console::columns() const {
  winsize size{};
  if (::isatty(descriptors_.out) == 0) return 0;
  if (::ioctl(descriptors_.out, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void Console::write_above(int descriptor, std::string_view text, bool droppable) {
  std::string line(text);
  if (line.empty() || line.back() != '\n') line += '\n';
  const std::lock_guard lock(mutex_);
  if (!block_.empty()) put(descriptors_.out, erase(), false);
  put(descriptor, std::move(line), droppable);
  if (!block_.empty()) put(descriptors_.out, block_text(), false);
}

std::string Console::erase() const {
  if (block_.empty()) return {};
  return "\x1b[" + std::to_string(block_.size()) + "A\x1b[J";
}

std::string Console::block_text() const {
  std::string text;
  for (const auto& line : block_) text += line + '\n';
  return text;
}

}  // namespace holmes::launcher

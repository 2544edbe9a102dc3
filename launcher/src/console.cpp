#include "console.hpp"

#include <cerrno>

#include <sys/ioctl.h>
#include <unistd.h>

namespace holmes::launcher {

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Console::print(std::string_view text) {
  write_above(descriptors_.out, text);
}

void Console::log(std::string_view text) {
  write_above(descriptors_.error, text);
}

void Console::stream(std::string_view text) {
  const std::lock_guard lock(mutex_);
  write_all(descriptors_.out, text);
}

void Console::show(std::vector<std::string> block) {
  const std::lock_guard lock(mutex_);
  const std::string old = erase();
  block_ = std::move(block);
  write_all(descriptors_.out, old + block_text());
}

void Console::leave() {
  const std::lock_guard lock(mutex_);
  block_.clear();
}

int Console::columns() const {
  winsize size{};
  if (::isatty(descriptors_.out) == 0) return 0;
  if (::ioctl(descriptors_.out, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void Console::write_above(int descriptor, std::string_view text) {
  std::string line(text);
  if (line.empty() || line.back() != '\n') line += '\n';
  const std::lock_guard lock(mutex_);
  if (!block_.empty()) write_all(descriptors_.out, erase());
  write_all(descriptor, line);
  if (!block_.empty()) write_all(descriptors_.out, block_text());
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

// The live display of progress.hpp.
#include <algorithm>

#include <fmt/format.h>

#include "progress.hpp"

namespace holmes::launcher {
namespace {

/// One line of text with colours, cut to a number of columns. A column is one UTF-8 character:
/// nothing wider is ever put in.
class Line {
 public:
  Line(const RenderOptions& options)
      : color_(options.color), columns_left_(std::max(options.columns - 1, 1)) {}

  Line& text(std::string_view text, std::string_view style = {}) {
    const std::string_view part = cut(text);
    const bool styled = color_ && !style.empty() && !part.empty();
    if (styled) line_ += fmt::format("\x1b[{}m", style);
    line_ += part;
    if (styled) line_ += "\x1b[0m";
    return *this;
  }
  int columns_left() const { return columns_left_; }
  std::string take() { return std::move(line_); }

 private:
  std::string_view cut(std::string_view text) {
    std::size_t end = 0;
    while (end < text.size()) {
      const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
      if (begins && columns_left_ == 0) break;
      if (begins) --columns_left_;
      ++end;
    }
    return text.substr(0, end);
  }

  const bool color_;
  int columns_left_;
  std::string line_;
};

constexpr std::string_view kBold = "1";
constexpr std::string_view kDim = "2";
constexpr std::string_view kGreen = "32";
constexpr std::string_view kCyan = "36";

std::string bar(double share, int width, bool unicode) {
  const auto full = static_cast<int>(share * width);
  std::string text;
  for (int i = 0; i < width; ++i) text += i < full ? (unicode ? "█" : "#") : (unicode ? "░" : "-");
  return text;
}

std::string step_line(const Progress& progress, const RenderOptions& options) {
  constexpr int kBarColumnsMax = 40;
  const double share = progress.steps_total == 0 ? 0.0
                                                 : static_cast<double>(progress.steps_done) /
                                                       static_cast<double>(progress.steps_total);
  const std::string left = progress.any_step ? human_duration(progress.left_s()) : "?";
  const std::string after = fmt::format(" {:.0f} %  left {}", 100 * share, left);
  Line line(options);
  line.text("step ").text(fmt::format("{}/{} ", progress.steps_done, progress.steps_total), kBold);
  const int width = std::min(kBarColumnsMax, line.columns_left() - static_cast<int>(after.size()));
  if (width >= 8) line.text(bar(share, width, options.unicode), kGreen);
  return line.text(after).take();
}

std::string loss_line(const Progress& progress, const RenderOptions& options) {
  Line line(options);
  line.text("loss ").text(fmt::format("{:.4f} ", progress.loss), kBold);
  const auto width = static_cast<std::size_t>(std::clamp(line.columns_left() - 24, 0, 48));
  line.text(sparkline(progress.curve.points(), width, options.unicode), kCyan);
  if (progress.any_validation)
    line.text(fmt::format("  validation {:.4f}", progress.validation_loss));
  return line.take();
}

std::string rate_line(const Progress& progress, const RenderOptions& options) {
  return Line(options)
      .text(fmt::format("{:.0f} tokens/s  {:.3f} s/step", progress.tokens_per_s, progress.step_s))
      .text(
          fmt::format("  norm {:.3f}  rate {:.2e}", progress.gradient_norm, progress.learning_rate),
          kDim)
      .take();
}

/// NICs side by side, as many in a row as fit.
void add_nic_lines(const Progress& progress, const RenderOptions& options,
                   std::vector<std::string>& block) {
  std::size_t name_width = 0;
  for (const auto& nic : progress.nics) name_width = std::max(name_width, nic.name.size());
  const int cell = static_cast<int>(name_width) + 28;
  const int in_row = std::max(1, (options.columns - 1) / cell);
  const char* const sent = options.unicode ? "↑" : "out";
  const char* const received = options.unicode ? "↓" : "in";
  for (std::size_t first = 0; first < progress.nics.size();
       first += static_cast<std::size_t>(in_row)) {
    Line line(options);
    const auto end = std::min(progress.nics.size(), first + static_cast<std::size_t>(in_row));
    for (std::size_t i = first; i < end; ++i) {
      const auto& nic = progress.nics[i];
      line.text(fmt::format("{:<{}}", nic.name, name_width), kDim)
          .text(fmt::format(" {}{:>7}/s {}{:>7}/s  ", sent, human_bytes(nic.sent_per_s), received,
                            human_bytes(nic.received_per_s)));
    }
    block.push_back(line.take());
  }
}

}  // namespace

std::vector<std::string> render_live(const Progress& progress, const RenderOptions& options) {
  std::vector<std::string> block{step_line(progress, options)};
  if (!progress.any_step) return block;
  block.push_back(loss_line(progress, options));
  block.push_back(rate_line(progress, options));
  add_nic_lines(progress, options, block);
  return block;
}

}  // namespace holmes::launcher

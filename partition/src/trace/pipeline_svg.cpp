// The picture of a pipeline: a row for each replica, time to the right.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "holmes/partition/reach.hpp"
#include "holmes/partition/trace.hpp"

namespace holmes::partition {
namespace {

using Kind = SimulatedEvent::Kind;

constexpr double kLeft = 210;  // of the rows
constexpr double kWidth = 1180;
constexpr double kRight = 30;
constexpr double kTop = 86;
constexpr double kRow = 26;
constexpr double kRowGap = 5;
constexpr double kExchange = 7;  // a stage's line of collectives
constexpr double kStageGap = 12;
constexpr double kAxis = 46;
constexpr const char* kFont = "font-family=\"Inter,Helvetica,Arial,sans-serif\"";

struct Style {
  const char* fill;
  const char* text;
  const char* label;
};

Style style_of(Kind kind) {
  switch (kind) {
    case Kind::kForward:
      return {"#4e79a7", "#ffffff", "forward"};
    case Kind::kBackward:
      return {"#f28e2b", "#3b2000", "backward"};
    case Kind::kBackwardInput:
      return {"#e15759", "#ffffff", "backward, input"};
    case Kind::kBackwardWeight:
      return {"#f1ce63", "#4a3b00", "backward, weights"};
    case Kind::kUpdate:
      return {"#b07aa1", "#ffffff", "optimizer"};
    case Kind::kReduceScatter:
      return {"#59a14f", "#ffffff", "reduce-scatter"};
    case Kind::kAllGather:
      return {"#8cd17d", "#16350f", "all-gather"};
    case Kind::kTied:
      return {"#9c755f", "#ffffff", "tied embedding"};
    case Kind::kVote:
      return {"#bab0ac", "#222222", "vote"};
    case Kind::kActivation:
    case Kind::kGradient:
      break;
  }
  return {"#86bcb6", "#222222", "transfer"};
}

bool is_exchange(Kind kind) {
  return kind == Kind::kReduceScatter || kind == Kind::kAllGather || kind == Kind::kTied ||
         kind == Kind::kVote;
}
bool is_transfer(Kind kind) {
  return kind == Kind::kActivation || kind == Kind::kGradient;
}

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
  std::array<char, 640> result{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(result.data(), result.size(), format, arguments);
  va_end(arguments);
  return result.data();
}

std::string escaped(const std::string& raw) {
  std::string result;
  for (const char letter : raw) {
    if (letter == '<')
      result += "&lt;";
    else if (letter == '>')
      result += "&gt;";
    else if (letter == '&')
      result += "&amp;";
    else
      result += letter;
  }
  return result;
}

std::string time_text(double seconds) {
  if (seconds == 0) return "0";
  if (seconds < 1e-3) return text("%.4g µs", seconds * 1e6);
  return seconds < 1 ? text("%.4g ms", seconds * 1e3) : text("%.4g s", seconds);
}

/// 1, 2 or 5 times a power of ten: about ten ticks.
double tick_of(double span_s) {
  const double rough = span_s / 9;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power >= rough) return step * power;
  }
  return 10 * power;
}

class Picture {
 public:
  Picture(const Segment& segment, const PictureOptions& options)
      : plan_(segment.planned.plan),
        cluster_(segment.cluster),
        simulation_(segment.simulated),
        options_(options) {
    choose_window();
    place_rows();
  }

  std::string draw() {
    background();
    stages();
    for (const SimulatedEvent& event : simulation_.events) {
      if (is_transfer(event.kind)) transfer(event);
    }
    for (const SimulatedEvent& event : simulation_.events) {
      if (!is_transfer(event.kind)) box(event);
    }
    commits();
    legend();
    return out_ + "</svg>\n";
  }

 private:
  /// The last two steps at most, and what follows the last commit.
  void choose_window() {
    const auto& commits = simulation_.commits_s;
    if (commits.size() > 2) from_s_ = commits[commits.size() - 3];
    for (const SimulatedEvent& event : simulation_.events) to_s_ = std::max(to_s_, event.end_s);
    if (!(to_s_ > from_s_)) to_s_ = from_s_ + 1e-9;
  }

  void place_rows() {
    std::size_t replicas = 0;
    for (const StagePlan& stage : plan_.stages) replicas += stage.shares.size();
    all_ = replicas <= options_.rows_max;
    double y = kTop;
    for (const StagePlan& stage : plan_.stages) {
      auto& rows = rows_.emplace_back();
      const std::size_t shown = all_ ? stage.shares.size() : 1;
      for (std::size_t r = 0; r < shown; ++r, y += kRow + kRowGap) rows.push_back(y);
      exchanges_.push_back(y - kRowGap + 3);
      y += kExchange + kStageGap;
    }
    bottom_ = y - kStageGap + 4;
  }

  double x(double at_s) const {
    const double share = std::clamp((at_s - from_s_) / (to_s_ - from_s_), 0.0, 1.0);
    return kLeft + share * (kWidth - kLeft - kRight);
  }

  void background() {
    const double height = bottom_ + kAxis;
    out_ += text(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
        "width=\"%.0f\" height=\"%.0f\" %s>\n",
        kWidth, height, kWidth, height, kFont);
    out_ += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    out_ += text(
                "<text x=\"24\" y=\"32\" font-size=\"17\" font-weight=\"600\" "
                "fill=\"#1d2733\">") +
            escaped(options_.title) + "</text>\n";
    const double tick = tick_of(to_s_ - from_s_);
    for (double at = std::ceil(from_s_ / tick) * tick; at <= to_s_; at += tick) {
      out_ += text("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e6e9ed\"/>\n",
                   x(at), x(at), kTop - 8, bottom_ + 6);
      out_ += text(
          "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" fill=\"#5b6773\" "
          "text-anchor=\"middle\">%s</text>\n",
          x(at), bottom_ + 22, time_text(std::abs(at) < tick / 2 ? 0 : at).c_str());
    }
  }

  void stages() {
    const auto hosts = hosts_by_device(cluster_);
    for (std::size_t s = 0; s < rows_.size(); ++s) {
      const StagePlan& stage = plan_.stages[s];
      const double top = rows_[s].front();
      out_ += text(
          "<text x=\"24\" y=\"%.1f\" font-size=\"13\" font-weight=\"600\" "
          "fill=\"#1d2733\">stage %zu</text>\n",
          top + 12, s);
      out_ += text(
          "<text x=\"24\" y=\"%.1f\" font-size=\"10.5\" fill=\"#5b6773\">blocks %u–%u"
          "</text>\n",
          top + 25, stage.first_block, stage.last_block);
      for (std::size_t r = 0; r < rows_[s].size(); ++r) {
        const Share& share = stage.shares[r];
        std::string who = cluster_.hosts[hosts[share.device.index()].index()].name + " · " +
                          std::to_string(share.device.value());
        if (!all_ && stage.shares.size() > 1) {
          who += text(" (1 of %zu)", stage.shares.size());
        }
        out_ += text(
                    "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" fill=\"#3c4854\" "
                    "text-anchor=\"end\">",
                    kLeft - 10, rows_[s][r] + kRow / 2 + 4) +
                escaped(who) + "</text>\n";
        out_ += text(
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"3\" "
            "fill=\"#f4f6f8\"/>\n",
            kLeft, rows_[s][r], kWidth - kLeft - kRight, kRow);
      }
    }
  }

  bool visible(const SimulatedEvent& event) const {
    return event.end_s > from_s_ && event.replica < rows_[event.stage.index()].size();
  }

  void box(const SimulatedEvent& event) {
    if (!visible(event) || event.end_s <= event.start_s) return;
    const Style style = style_of(event.kind);
    const bool exchange = is_exchange(event.kind);
    const std::size_t stage = event.stage.index();
    const double y = exchange ? exchanges_[stage] : rows_[stage][event.replica];
    const double height = exchange ? kExchange : kRow;
    const double left = x(event.start_s);
    const double width = std::max(0.6, x(event.end_s) - left);
    used_[static_cast<std::size_t>(event.kind)] = true;
    out_ += text(
        "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" rx=\"%.1f\" "
        "fill=\"%s\"%s><title>%s %u, step %u: %s to %s</title></rect>\n",
        left, y, width, height, width > 5 && !exchange ? 2.5 : 0.0, style.fill,
        exchange ? " fill-opacity=\"0.75\"" : " stroke=\"#ffffff\" stroke-width=\"0.6\"",
        style.label, event.item, event.step, time_text(event.start_s).c_str(),
        time_text(event.end_s).c_str());
    if (exchange || event.kind == Kind::kUpdate || width < 13) return;
    out_ += text(
        "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10.5\" fill=\"%s\" "
        "text-anchor=\"middle\">%u</text>\n",
        left + width / 2, y + kRow / 2 + 4, style.text, event.item);
  }

  /// A thin line from the end of a pass to where its payload arrives.
  void transfer(const SimulatedEvent& event) {
    constexpr std::size_t kLinesMax = 1500;
    if (!visible(event) || simulation_.events.size() > 4 * kLinesMax) return;
    const auto stages = static_cast<std::uint32_t>(plan_.stages.size());
    const bool forward = event.kind == Kind::kActivation;
    const std::uint32_t next = (event.stage.value() + (forward ? 1 : stages - 1)) % stages;
    const auto& shares = plan_.stages[next].shares;
    const DeviceId owner = plan_.owner(StageIndex(next), MicroBatch(event.item));
    std::size_t replica = 0;
    while (shares[replica].device != owner) ++replica;
    if (replica >= rows_[next].size()) return;
    const bool down = next > event.stage.value();
    used_[static_cast<std::size_t>(Kind::kActivation)] = true;
    out_ += text(
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#499894\" "
        "stroke-width=\"1\" stroke-opacity=\"0.55\"/>\n",
        x(event.start_s), rows_[event.stage.index()][event.replica] + (down ? kRow : 0),
        x(event.end_s), rows_[next][replica] + (down ? 0 : kRow));
  }

  void commits() {
    for (std::size_t i = 0; i < simulation_.commits_s.size(); ++i) {
      const double at_s = simulation_.commits_s[i];
      if (at_s < from_s_) continue;
      out_ += text(
          "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#1d2733\" "
          "stroke-width=\"1.2\" stroke-dasharray=\"4 3\"/>\n",
          x(at_s), x(at_s), kTop - 12, bottom_ + 6);
      out_ += text(
          "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" fill=\"#1d2733\" "
          "text-anchor=\"end\">step %zu committed</text>\n",
          x(at_s) - 4, kTop - 12, i);
    }
  }

  void legend() {
    double at = 24;
    for (std::size_t kind = 0; kind < used_.size(); ++kind) {
      if (!used_[kind]) continue;
      const Style style = style_of(static_cast<Kind>(kind));
      out_ += text(
          "<rect x=\"%.1f\" y=\"44\" width=\"13\" height=\"13\" rx=\"2.5\" fill=\"%s\"/>"
          "<text x=\"%.1f\" y=\"55\" font-size=\"12\" fill=\"#3c4854\">%s</text>\n",
          at, style.fill, at + 19, style.label);
      constexpr double kLetter = 6.6;
      at += 19 + kLetter * static_cast<double>(std::string_view(style.label).size()) + 22;
    }
    out_ += text(
        "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" fill=\"#5b6773\" "
        "text-anchor=\"end\">time</text>\n",
        kLeft - 10, bottom_ + 22);
  }

  const Plan& plan_;
  const Cluster& cluster_;
  const Simulation& simulation_;
  const PictureOptions& options_;
  double from_s_ = 0;
  double to_s_ = 0;
  bool all_ = true;
  std::vector<std::vector<double>> rows_;  ///< Top of each replica's row, by stage.
  std::vector<double> exchanges_;
  double bottom_ = 0;
  std::array<bool, 11> used_{};
  std::string out_;
};

}  // namespace

std::string to_svg(const Timeline& timeline, const PictureOptions& options) {
  return Picture(timeline.segments.back(), options).draw();
}

}  // namespace holmes::partition

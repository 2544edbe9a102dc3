#pragma once

// Pictures of a simulation for people: a timeline that Perfetto (ui.perfetto.dev) and Chrome's
// about:tracing read, and an SVG of the pipeline. Texts out of values; nothing is written anywhere.

#include <string>

#include "holmes/partition/timeline.hpp"

namespace holmes::partition {

/// Chrome's trace events as JSON: a process for each host; in it a thread for each device, one for
/// each stage's exchange of gradients, and a track for each direction of its NICs on a fabric;
/// trunks and links are a process of their own. Flows join the pass that sends an activation or a
/// gradient with the pass that waits for it. `timeline` was recorded.
std::string to_chrome_trace(const Timeline& timeline);

struct PictureOptions {
  std::string title = {};
  std::size_t rows_max = 24;  ///< With more replicas one of each stage is shown.
};
/// The pipeline's last step (of two steps both): a row for each replica, its passes in colours,
/// gradient exchanges below each stage, a legend and an axis of time. Of the last segment.
std::string to_svg(const Timeline& timeline, const PictureOptions& options);

}  // namespace holmes::partition

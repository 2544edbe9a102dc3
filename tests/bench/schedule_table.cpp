// Prints the tables of docs/planning.md: what generated orders gain over the published schedules
// between two clusters, by delay and speed, and what staggered replicas gain on a shared link.
#include <cstdio>

#include "support/slow_link.hpp"

namespace {

using namespace holmes;
using namespace holmes::partition;
using holmes::partition::testing::SlowLink;

Plan generated(const SlowLink& link, std::uint32_t held, bool whole, LinkSharing sharing) {
  Plan plan = testing::slow_link_plan(link);
  CostOptions cost;
  cost.sharing = sharing;
  const auto ordered =
      order_passes(testing::slow_link_cluster(link), testing::slow_link_model(link), cost,
                   {held, !whole, whole ? 1U : 2U}, plan);
  HOLMES_ASSERT(ordered, ordered.error().message().c_str());
  return plan;
}

double seconds(const SlowLink& link, const Plan& plan, LinkSharing sharing) {
  SimulateOptions options;
  options.cost.sharing = sharing;
  return simulate(plan, testing::slow_link_cluster(link), testing::slow_link_model(link), options)
      ->step_s;
}

void delays(std::uint32_t held, bool whole) {
  std::printf("\n4 stages, 16 micro-batches, at most %u in flight, %s:\n\n", held,
              whole ? "whole backward passes (what training runs)" : "any schedule");
  std::printf("| latency | Gb/s | 1f1b | best published | generated | below 1f1b | below best |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  for (const double latency_ms : {1.0, 10.0, 50.0}) {
    for (const double gbit_s : {1.0, 2.5, 5.0, 10.0, 25.0}) {
      const SlowLink link{latency_ms, gbit_s, 4, 16};
      double usual_s = 0;
      double best_s = 0;
      std::string name;
      for (const auto& other : testing::published(link, held, whole)) {
        const double step_s = testing::step_s(link, other.plan);
        if (other.name == "1f1b+0") usual_s = step_s;
        if (best_s == 0 || step_s < best_s) {
          best_s = step_s;
          name = other.name;
        }
      }
      const double own_s =
          testing::step_s(link, generated(link, held, whole, LinkSharing::kInTurn));
      std::printf("| %g ms | %g | %.3f s | %.3f s (%s) | %.3f s | %.1f %% | %.1f %% |\n",
                  latency_ms, gbit_s, usual_s, best_s, name.c_str(), own_s,
                  100 * (1 - own_s / usual_s), 100 * (1 - own_s / best_s));
    }
  }
}

void replicas() {
  std::printf("\nReplicas of 4 stages that share one trunk of so many Gb/s, 10 ms:\n\n");
  std::printf("| replicas | Gb/s | evenly | evenly, staggered | in turn | staggering gains |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const std::uint32_t count : {2U, 4U, 8U}) {
    for (const double gbit_s : {5.0, 10.0, 25.0}) {
      const SlowLink link{10, gbit_s, 4, 8, count, gbit_s};
      Plan staggered = generated(link, 4, true, LinkSharing::kEvenly);
      Plan together = staggered;
      for (Share& share : together.stages.front().shares) share.offset_us = 0;
      const Plan turns = generated(link, 4, true, LinkSharing::kInTurn);
      const double together_s = std::min(seconds(link, together, LinkSharing::kEvenly),
                                         seconds(link, turns, LinkSharing::kEvenly));
      const double staggered_s = seconds(link, staggered, LinkSharing::kEvenly);
      std::printf("| %u | %g | %.3f s | %.3f s | %.3f s | %.1f %% |\n", count, gbit_s, together_s,
                  staggered_s, seconds(link, turns, LinkSharing::kInTurn),
                  100 * (1 - staggered_s / together_s));
    }
  }
}

}  // namespace

int main() {
  for (const std::uint32_t held : {4U, 8U}) {
    for (const bool whole : {true, false}) delays(held, whole);
  }
  replicas();
}

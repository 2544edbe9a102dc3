// Goal: every generated order is valid, whatever the shares, memory, delays and options: each pass
// once, gradients in ascending micro-batch order, nothing beyond what may be held, executable to
// the end by dependencies alone. Method: rapidcheck draws pipelines and shrinks what fails.
#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "clusters.hpp"
#include "holmes/partition/order.hpp"
#include "holmes/partition/schedule.hpp"

namespace holmes::partition {
namespace {

/// Whether all devices come to their end when a pass waits only for what it needs.
bool executable(const Plan& plan) {
  const auto stages = static_cast<std::uint32_t>(plan.stages.size());
  std::vector<std::tuple<std::uint32_t, std::vector<ScheduledPass>, std::size_t>> devices;
  for (std::uint32_t s = 0; s < stages; ++s) {
    for (const Share& share : plan.stages[s].shares) {
      devices.emplace_back(s, schedule(plan, StageIndex(s), share.device), 0);
    }
  }
  // By pass, micro-batch and place in the pipeline of all chunks; halves of a backward apart.
  std::map<std::tuple<Pass, MicroBatch, std::uint32_t>, bool> done;
  bool moved = true;
  while (moved) {
    moved = false;
    for (auto& [stage, passes, next] : devices) {
      while (next < passes.size()) {
        const auto& [pass, k, chunk] = passes[next];
        const std::uint32_t place = chunk * stages + stage;
        bool ready = true;
        if (pass == Pass::kForward) {
          ready = place == 0 || done.contains({Pass::kForward, k, place - 1});
        } else if (pass == Pass::kBackwardWeight) {
          ready = done.contains({Pass::kBackwardInput, k, place});
        } else {
          ready = done.contains({Pass::kForward, k, place}) &&
                  (place + 1 == stages * plan.chunks ||
                   done.contains({Pass::kBackward, k, place + 1}) ||
                   done.contains({Pass::kBackwardInput, k, place + 1}));
        }
        if (!ready) break;
        RC_ASSERT(done.emplace(std::tuple(pass, k, place), true).second);
        ++next;
        moved = true;
      }
    }
  }
  return std::all_of(devices.begin(), devices.end(), [](const auto& device) {
    return std::get<2>(device) == std::get<1>(device).size();
  });
}

RC_GTEST_PROP(OrderProperty, HoldsForRandomPlans, ()) {
  Random random(*rc::gen::arbitrary<std::uint32_t>());
  Cluster cluster = random_cluster(random);
  cluster.fabrics.back().latency_us = *rc::gen::element(1.0, 1000.0, 50000.0);
  ModelCost model = small_model(*rc::gen::inRange<std::uint32_t>(2, 13));
  model.block_flops = 1e9;
  model.edge_bytes = *rc::gen::inRange<std::uint64_t>(1, 10'000'000);
  const auto leaves = *rc::gen::element(2U, 4U, 8U);
  const JobShape job{leaves * *rc::gen::inRange<std::uint32_t>(1, 4), 1, leaves};
  PlanOptions options;
  options.strategy = *rc::gen::element(Strategy::kHolmes, Strategy::kMegatron);
  options.pipeline = *rc::gen::inRange<std::uint32_t>(0, 5);
  options.data = options.pipeline > 0 ? *rc::gen::element(0U, 1U) : 0U;
  options.schedule = ScheduleKind::kNetworkAware;
  options.order.in_flight_max = *rc::gen::inRange<std::uint32_t>(0, 6);
  options.order.split_backward = *rc::gen::arbitrary<bool>();
  options.order.chunks = *rc::gen::element(1U, 2U);
  const auto made = plan(cluster, model, job, options);
  if (!made) RC_DISCARD("no such plan");
  RC_ASSERT(bool(validate(*made, cluster, model.blocks)));
  RC_ASSERT(executable(*made));
  for (std::uint32_t s = 0; s < made->stages.size(); ++s) {
    for (const Share& share : made->stages[s].shares) {
      const auto mine = made->micro_batches(StageIndex(s), share.device);
      std::vector<std::vector<MicroBatch>> added(made->chunks);
      for (const ScheduledPass& pass : schedule(*made, StageIndex(s), share.device)) {
        const bool adds = pass.pass == Pass::kBackward || pass.pass == Pass::kBackwardWeight;
        if (adds) added.at(pass.chunk).push_back(pass.micro_batch);
      }
      for (const auto& of_chunk : added) RC_ASSERT(of_chunk == mine);
      if (options.order.in_flight_max > 0) {
        RC_ASSERT(in_flight_max(*made, StageIndex(s), share.device) <=
                  options.order.in_flight_max * made->chunks);
      }
    }
  }
  RC_ASSERT(options.order.split_backward || options.order.chunks > 1 || executed_by_runtime(*made));
  // The same input, the same orders.
  RC_ASSERT(*plan(cluster, model, job, options) == *made);
}

/// A word that is changed is refused, or still every pass once and executable.
RC_GTEST_PROP(OrderProperty, WrongOrdersAreRefused, ()) {
  Plan plan;
  plan.job = {4, 1, 4};
  plan.schedule = ScheduleKind::kNetworkAware;
  plan.stages = {{0, 0, {{DeviceId(0), {0, 3}}}}, {1, 1, {{DeviceId(1), {0, 3}}}}};
  Random random(*rc::gen::arbitrary<std::uint32_t>());
  for (StagePlan& stage : plan.stages) {
    std::string& word = stage.shares[0].order;
    int forwards = 0;
    for (int i = 0; i < 8; ++i) {
      const bool forward = 2 * forwards == i || (forwards < 4 && random.chance(0.5));
      word += forward ? 'F' : 'B';
      forwards += forward ? 1 : 0;
    }
    if (random.chance(0.2)) word[random.below(8)] = random.chance(0.5) ? 'F' : 'B';
  }
  bool counted = true;
  bool ordered = true;
  for (const StagePlan& stage : plan.stages) {
    int ahead = 0;
    for (const char letter : stage.shares[0].order) {
      ahead += letter == 'F' ? 1 : -1;
      ordered = ordered && ahead >= 0;
    }
    counted = counted && ahead == 0;
  }
  const bool accepted = bool(check_schedule(plan));
  if (accepted) RC_ASSERT(counted && ordered && executable(plan));
  if (counted && ordered && !accepted) RC_ASSERT(!executable(plan));
}

}  // namespace
}  // namespace holmes::partition

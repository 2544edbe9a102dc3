// Goal: the schedules of a plan's devices never deadlock, whatever the data degrees, hold no more
// activations than they say, and add each leaf's weight gradients in ascending order. Method: exact
// small schedules; thousands of random share layouts, executed by dependencies alone.
#include "holmes/partition/schedule.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "holmes/base/random.hpp"

namespace holmes::partition {
namespace {

/// A plan with shares only: what schedules depend on. `degrees` gives the replicas of each stage.
Plan plan_of(Random& random, std::uint32_t leaves, std::uint32_t micro_batches_of_leaf,
             const std::vector<std::uint32_t>& degrees) {
  Plan plan;
  plan.job = {leaves * micro_batches_of_leaf, 1, leaves};
  std::uint32_t device = 0;
  for (const std::uint32_t degree : degrees) {
    StagePlan stage;
    std::set<std::uint32_t> cuts;  // last leaves of all replicas but the final one
    while (cuts.size() + 1 < degree) {
      cuts.insert(static_cast<std::uint32_t>(random.below(leaves - 1)));
    }
    cuts.insert(leaves - 1);
    std::uint32_t first = 0;
    for (const std::uint32_t last : cuts) {
      stage.shares.push_back({DeviceId(device++), {first, last}});
      first = last + 1;
    }
    plan.stages.push_back(stage);
  }
  return plan;
}

/// Runs all devices' schedules: a pass runs when the passes that it needs have run.
class Execution {
 public:
  explicit Execution(const Plan& plan) : stages_(plan.stages.size()), chunks_(plan.chunks) {
    for (std::uint32_t s = 0; s < stages_; ++s) {
      for (const Share& share : plan.stages[s].shares) {
        devices_.push_back({s, schedule(plan, StageIndex(s), share.device), 0});
      }
    }
  }

  /// True when every device came to its end.
  bool run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (Device& device : devices_) {
        while (device.next < device.passes.size() && ready(device)) {
          const ScheduledPass& pass = device.passes[device.next++];
          done_.insert({pass.pass, pass.micro_batch, pass.chunk * stages_ + device.stage});
          moved = true;
        }
      }
    }
    return std::all_of(devices_.begin(), devices_.end(),
                       [](const Device& d) { return d.next == d.passes.size(); });
  }
  std::size_t passes_run() const { return done_.size(); }

 private:
  struct Device {
    std::uint32_t stage;
    std::vector<ScheduledPass> passes;
    std::size_t next;
  };

  bool has_run(Pass pass, MicroBatch k, std::uint32_t place) const {
    return done_.contains({pass, k, place});
  }
  bool ready(const Device& device) const {
    const auto& [pass, k, chunk] = device.passes[device.next];
    const std::uint32_t place = chunk * stages_ + device.stage;  // in the pipeline of all chunks
    if (pass == Pass::kForward) return place == 0 || has_run(pass, k, place - 1);
    if (pass == Pass::kBackwardWeight) return has_run(Pass::kBackwardInput, k, place);
    if (!has_run(Pass::kForward, k, place)) return false;
    return place + 1 == stages_ * chunks_ || has_run(pass, k, place + 1);
  }

  std::uint32_t stages_;
  std::uint32_t chunks_;
  std::vector<Device> devices_;
  std::set<std::tuple<Pass, MicroBatch, std::uint32_t>> done_;
};

std::string text(const std::vector<ScheduledPass>& passes) {
  std::string result;
  for (const ScheduledPass& pass : passes) {
    result += "FBBW"[static_cast<int>(pass.pass)] + std::to_string(pass.micro_batch.value());
    if (pass.chunk > 0) result += "'";
  }
  return result;
}

/// Passes that add weight gradients, of each chunk, are those of the device's micro-batches in
/// ascending order.
void expect_ascending_gradients(const Plan& plan) {
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    for (const Share& share : plan.stages[s].shares) {
      std::vector<std::vector<MicroBatch>> added(plan.chunks);
      for (const ScheduledPass& pass : schedule(plan, StageIndex(s), share.device)) {
        const bool adds = pass.pass == Pass::kBackward || pass.pass == Pass::kBackwardWeight;
        if (adds) added.at(pass.chunk).push_back(pass.micro_batch);
      }
      for (const auto& of_chunk : added) {
        EXPECT_EQ(of_chunk, plan.micro_batches(StageIndex(s), share.device));
      }
    }
  }
}

TEST(Schedule, OneForwardOneBackward) {
  Random random(1);
  const Plan plan = plan_of(random, 4, 1, {1, 1, 1});
  EXPECT_EQ(text(schedule(plan, StageIndex(0), DeviceId(0))), "F0F1F2B0F3B1B2B3");
  EXPECT_EQ(text(schedule(plan, StageIndex(1), DeviceId(1))), "F0F1B0F2B1F3B2B3");
  EXPECT_EQ(text(schedule(plan, StageIndex(2), DeviceId(2))), "F0B0F1B1F2B2F3B3");
  EXPECT_EQ(in_flight_max(plan, StageIndex(0), DeviceId(0)), 3U);
  EXPECT_EQ(in_flight_max(plan, StageIndex(1), DeviceId(1)), 2U);
  EXPECT_EQ(in_flight_max(plan, StageIndex(2), DeviceId(2)), 1U);
}

TEST(Schedule, FewerMicroBatchesThanStages) {
  Random random(1);
  const Plan plan = plan_of(random, 1, 2, {1, 1, 1, 1});
  EXPECT_EQ(text(schedule(plan, StageIndex(0), DeviceId(0))), "F0F1B0B1");
  EXPECT_EQ(text(schedule(plan, StageIndex(3), DeviceId(3))), "F0B0F1B1");
  EXPECT_EQ(in_flight_max(plan, StageIndex(0), DeviceId(0)), 2U);
}

TEST(Schedule, ReplicasRunTheirOwnLeaves) {
  Plan plan;
  plan.job = {8, 1, 4};
  plan.stages = {{0, 0, {{DeviceId(0), {0, 1}}, {DeviceId(1), {2, 3}}}},
                 {1, 1, {{DeviceId(2), {0, 3}}}}};
  EXPECT_EQ(text(schedule(plan, StageIndex(0), DeviceId(1))), "F4F5B4F6B5F7B6B7");
  EXPECT_EQ(text(schedule(plan, StageIndex(1), DeviceId(2))), "F0B0F1B1F2B2F3B3F4B4F5B5F6B6F7B7");
  EXPECT_TRUE(schedule(plan, StageIndex(0), DeviceId(2)).empty());
}

TEST(Schedule, GPipe) {
  Random random(1);
  Plan plan = plan_of(random, 2, 1, {1, 1});
  plan.schedule = ScheduleKind::kGPipe;
  EXPECT_EQ(text(schedule(plan, StageIndex(0), DeviceId(0))), "F0F1B0B1");
  EXPECT_EQ(text(schedule(plan, StageIndex(1), DeviceId(1))), "F0F1B0B1");
  EXPECT_EQ(in_flight_max(plan, StageIndex(1), DeviceId(1)), 2U);
}

TEST(Schedule, ZeroBubbleHoldsAsMuchAsTheFirstStageOf1F1B) {
  Random random(1);
  Plan plan = plan_of(random, 4, 1, {1, 1, 1});
  plan.schedule = ScheduleKind::kZeroBubble;
  EXPECT_EQ(text(schedule(plan, StageIndex(0), DeviceId(0))), "F0F1F2B0W0F3B1W1B2W2B3W3");
  EXPECT_EQ(text(schedule(plan, StageIndex(1), DeviceId(1))), "F0F1B0F2B1W0F3B2W1B3W2W3");
  EXPECT_EQ(text(schedule(plan, StageIndex(2), DeviceId(2))), "F0B0F1B1F2B2W0F3B3W1W2W3");
  for (std::uint32_t s = 0; s < 3; ++s) {
    EXPECT_EQ(in_flight_max(plan, StageIndex(s), DeviceId(s)), 3U);
  }
}

TEST(Schedule, Interleaved) {
  Random random(1);
  Plan plan = plan_of(random, 4, 1, {1, 1});
  plan.schedule = ScheduleKind::kInterleaved;
  plan.chunks = 2;
  for (std::uint32_t s = 0; s < 2; ++s) {
    plan.stages[s].first_block = 2 * s;
    plan.stages[s].last_block = 2 * s + 1;
  }
  ASSERT_TRUE(check_schedule(plan));
  EXPECT_EQ(text(schedule(plan, StageIndex(0), DeviceId(0))),
            "F0F1F0'F1'F2B0'F3B1'F2'B0F3'B1B2'B3'B2B3");
  EXPECT_EQ(text(schedule(plan, StageIndex(1), DeviceId(1))),
            "F0F1F0'B0'F1'B1'F2B0F3B1F2'B2'F3'B3'B2B3");
  EXPECT_TRUE(Execution(plan).run());
}

TEST(Schedule, InterleavedSaysWhatItNeeds) {
  Random random(1);
  Plan plan = plan_of(random, 4, 1, {1, 1});
  plan.stages[0].last_block = 1;
  plan.stages[1] = {2, 3, plan.stages[1].shares};
  plan.schedule = ScheduleKind::kInterleaved;
  EXPECT_FALSE(check_schedule(plan));  // one chunk
  plan.chunks = 2;
  EXPECT_TRUE(check_schedule(plan));
  Plan short_stage = plan;
  short_stage.stages[1].last_block = 2;
  EXPECT_FALSE(check_schedule(short_stage));
  Plan unequal = plan;
  unequal.stages[0].shares = {{DeviceId(0), {0, 1}}, {DeviceId(2), {2, 3}}};
  EXPECT_FALSE(check_schedule(unequal));
  plan.job = {3, 1, 1};  // 3 micro-batches on 2 stages
  plan.stages[0].shares = {{DeviceId(0), {0, 0}}};
  plan.stages[1].shares = {{DeviceId(1), {0, 0}}};
  EXPECT_FALSE(check_schedule(plan));
  plan.schedule = ScheduleKind::k1F1B;
  EXPECT_FALSE(check_schedule(plan));  // chunks without the schedule that has them
}

TEST(Schedule, InterleavedNeverDeadlocks) {
  Random random(8);
  for (int round = 0; round < 1000; ++round) {
    const auto stages = static_cast<std::uint32_t>(1 + random.below(6));
    const std::uint32_t leaves = 1U << random.below(3);
    const auto rounds = static_cast<std::uint32_t>(1 + random.below(3));
    Plan plan = plan_of(random, leaves, stages * rounds, {1});
    plan.schedule = ScheduleKind::kInterleaved;
    plan.chunks = static_cast<std::uint32_t>(2 + random.below(3));
    const auto replicas = 1U << random.below(std::bit_width(leaves));
    plan.stages.clear();
    for (std::uint32_t s = 0; s < stages; ++s) {
      StagePlan stage{s * plan.chunks, (s + 1) * plan.chunks - 1, {}};
      for (std::uint32_t r = 0; r < replicas; ++r) {
        const std::uint32_t each = leaves / replicas;
        stage.shares.push_back({DeviceId(s * replicas + r), {r * each, (r + 1) * each - 1}});
      }
      plan.stages.push_back(stage);
    }
    ASSERT_TRUE(check_schedule(plan));
    Execution execution(plan);
    ASSERT_TRUE(execution.run()) << "round " << round;
    EXPECT_EQ(execution.passes_run(),
              std::size_t{2} * plan.chunks * stages * plan.job.micro_batch_count());
    expect_ascending_gradients(plan);
  }
}

TEST(Schedule, NeverDeadlocksWhateverTheShares) {
  Random random(2);
  constexpr ScheduleKind kKinds[] = {ScheduleKind::k1F1B, ScheduleKind::kGPipe,
                                     ScheduleKind::kZeroBubble};
  for (int round = 0; round < 3000; ++round) {
    const std::uint32_t leaves = 1U << random.below(5);
    const auto per_leaf = static_cast<std::uint32_t>(1 + random.below(3));
    std::vector<std::uint32_t> degrees(1 + random.below(7));
    for (auto& degree : degrees) degree = static_cast<std::uint32_t>(1 + random.below(leaves));
    Plan plan = plan_of(random, leaves, per_leaf, degrees);
    plan.schedule = kKinds[round % 3];
    Execution execution(plan);
    ASSERT_TRUE(execution.run()) << "round " << round;
    const std::size_t passes = plan.schedule == ScheduleKind::kZeroBubble ? 3 : 2;
    EXPECT_EQ(execution.passes_run(), passes * leaves * per_leaf * degrees.size());
    expect_ascending_gradients(plan);
  }
}

TEST(Schedule, BackwardsAscendAndActivationsStayBounded) {
  Random random(4);
  for (int round = 0; round < 500; ++round) {
    const std::uint32_t leaves = 1U << random.below(5);
    std::vector<std::uint32_t> degrees(1 + random.below(5));
    for (auto& degree : degrees) degree = static_cast<std::uint32_t>(1 + random.below(leaves));
    const Plan plan = plan_of(random, leaves, 2, degrees);
    for (std::uint32_t s = 0; s < degrees.size(); ++s) {
      for (const Share& share : plan.stages[s].shares) {
        std::vector<MicroBatch> backwards;
        for (const ScheduledPass& pass : schedule(plan, StageIndex(s), share.device)) {
          if (pass.pass == Pass::kBackward) backwards.push_back(pass.micro_batch);
        }
        EXPECT_EQ(backwards, plan.micro_batches(StageIndex(s), share.device));
        EXPECT_EQ(in_flight_max(plan, StageIndex(s), share.device),
                  std::min<std::size_t>(degrees.size() - s, backwards.size()));
      }
    }
  }
}

TEST(Execution, NoticesADeadlock) {
  // The test's own referee: a device that wants its backward before any forward never ends.
  Random random(1);
  Plan plan = plan_of(random, 2, 1, {1, 1});
  plan.stages[1].shares[0].leaves = {1, 1};  // micro-batch 0 is computed by nobody at stage 1
  EXPECT_FALSE(Execution(plan).run());
}

}  // namespace
}  // namespace holmes::partition

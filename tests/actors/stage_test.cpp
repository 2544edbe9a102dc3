// Goal: a lone Stage actor is a state machine fed by messages: whatever their order, it gives the
// gradients that its layers give when called directly, bit for bit, lends nothing out of turn, and
// copies no payload. Method: probes for everybody else, forged messages in every order.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "actors/stage_bench.hpp"

namespace holmes::actors::testing {
namespace {

void send_in_order(const std::vector<StageBench::Message>& messages,
                   const std::vector<std::size_t>& order) {
  for (const auto i : order) messages[i].send(StageBench::kGeneration);
}

std::vector<std::size_t> identity(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void shuffle(std::vector<std::size_t>& order, Random& random) {
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
}

/// Sends all of one step in a random order; some orders let the stage work in between.
void run_step(StageBench& bench, std::uint32_t stage, Step step, Random& random) {
  const auto messages = bench.messages(stage, step);
  auto order = identity(messages.size());
  shuffle(order, random);
  for (const auto i : order) {
    messages[i].send(StageBench::kGeneration);
    if (random.chance(0.5)) bench.drain();
  }
  bench.drain();
}

TEST(StageActor, EveryOrderOfASmallStepGivesTheSameBits) {
  const BenchShape shape{3, 1, 2, 1, 1};
  auto order = identity(StageBench(shape, {1}, 1).messages(1, Step(0)).size());
  ASSERT_EQ(order.size(), 7U);
  std::size_t orders = 0;
  do {
    StageBench bench(shape, {1}, 1);
    const auto messages = bench.messages(1, Step(0));
    for (const auto i : order) {
      messages[i].send(StageBench::kGeneration);
      bench.drain();
    }
    bench.expect_step(1, Step(0));
    ASSERT_FALSE(::testing::Test::HasFailure()) << "order number " << orders;
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 5040U);
}

TEST(StageActor, RandomOrdersOfTwoStepsGiveTheSameBitsAtEveryPlaceOfThePipeline) {
  const BenchShape shape{3, 2, 4, 2, 2};
  for (std::uint32_t stage = 0; stage < 3; ++stage)
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      StageBench bench(shape, {stage}, seed);
      Random random(seed);
      for (std::uint64_t step = 0; step < shape.steps; ++step) {
        run_step(bench, stage, Step(step), random);
        bench.expect_step(stage, Step(step));
      }
      EXPECT_TRUE(bench.agent().failures.empty());
      ASSERT_FALSE(::testing::Test::HasFailure()) << "stage " << stage << " seed " << seed;
    }
}

TEST(StageActor, GivesALeafBackBeforeTheNextOneBegins) {
  const BenchShape shape{1, 1, 4, 4, 1};
  StageBench bench(shape, {0}, 1);
  const auto messages = bench.messages(0, Step(0));
  send_in_order(messages, identity(messages.size()));
  bench.drain();
  bench.expect_step(0, Step(0));
  std::vector<std::uint32_t> leaves;
  for (const auto& ready : bench.replica(0).gradients) leaves.push_back(ready.leaf);
  EXPECT_TRUE(std::is_sorted(leaves.begin(), leaves.end()));
}

TEST(StageActor, WaitsWhenAnyOneMessageIsMissing) {
  const BenchShape shape{3, 1, 2, 2, 1};
  const auto count = StageBench(shape, {1}, 1).messages(1, Step(0)).size();
  for (std::size_t missing = 0; missing < count; ++missing) {
    StageBench bench(shape, {1}, 1);
    const auto messages = bench.messages(1, Step(0));
    for (std::size_t i = 0; i < count; ++i)
      if (i != missing) messages[i].send(StageBench::kGeneration);
    bench.drain();
    EXPECT_LT(bench.replica(1).gradients.size(), 2U * shape.blocks_per_stage) << missing;
    messages[missing].send(StageBench::kGeneration);
    bench.drain();
    bench.expect_step(1, Step(0));
  }
}

TEST(StageActor, DropsMessagesOfAnotherGeneration) {
  const BenchShape shape{3, 1, 2, 1, 1};
  for (const auto other : {Generation(6), Generation(8)}) {
    StageBench bench(shape, {1}, 1);
    const auto messages = bench.messages(1, Step(0));
    for (const auto& message : messages) message.send(other);
    bench.drain();
    EXPECT_TRUE(bench.calls().empty());
    EXPECT_TRUE(bench.replica(1).gradients.empty());
    send_in_order(messages, identity(messages.size()));
    bench.drain();
    bench.expect_step(1, Step(0));
  }
}

TEST(StageActor, IsQuietAfterTheRunningOperatorAndHoldsNothing) {
  const BenchShape shape{3, 1, 2, 1, 1};
  HeldQueue queue;
  StageBench bench(shape, {1}, 1, &queue);
  const auto messages = bench.messages(1, Step(0));
  send_in_order(messages, identity(messages.size()));
  bench.drain();
  ASSERT_EQ(queue.held(), 1U);
  bench.supersede(1, StageBench::kGeneration);  // not a newer one: no reason to stop
  bench.drain();
  EXPECT_TRUE(bench.agent().quiet.empty());
  bench.supersede(1, Generation(8));
  bench.drain();
  EXPECT_TRUE(bench.agent().quiet.empty()) << "an operator is still running";
  queue.run_one();
  bench.drain();
  ASSERT_EQ(bench.agent().quiet.size(), 1U);
  EXPECT_EQ(bench.agent().quiet[0].generation, Generation(8));
  EXPECT_EQ(queue.held(), 0U);
  EXPECT_EQ(bench.pool().stats().buffers_lent, 0U);
}

TEST(StageActor, IsQuietAtOnceWhenNothingRuns) {
  StageBench bench({3, 1, 2, 1, 1}, {1}, 1);
  bench.supersede(1, Generation(9));
  bench.drain();
  ASSERT_EQ(bench.agent().quiet.size(), 1U);
  for (const auto& message : bench.messages(1, Step(0))) message.send(StageBench::kGeneration);
  bench.drain();
  EXPECT_TRUE(bench.calls().empty());
}

TEST(StageActor, PayloadsBetweenStagesOfAProcessAreNotCopied) {
  StageBench bench({2, 1, 2, 1, 1}, {0, 1}, 1);
  for (const std::uint32_t stage : {0U, 1U})
    for (const auto& message : bench.messages(stage, Step(0)))
      message.send(StageBench::kGeneration);
  bench.drain();
  std::vector<const float*> written[2], read[2];  // activations, gradients
  for (const auto& call : bench.calls()) {
    const bool sends = call.backward ? call.stage == StageIndex(1) && call.slot == 0
                                     : call.stage == StageIndex(0) && call.slot == 1;
    const bool takes = call.backward ? call.stage == StageIndex(0) && call.slot == 1
                                     : call.stage == StageIndex(1) && call.slot == 0;
    if (sends) written[call.backward].push_back(call.out);
    if (takes) read[call.backward].push_back(call.in);
  }
  for (const int backward : {0, 1}) {
    EXPECT_EQ(written[backward].size(), 2U);
    EXPECT_EQ(written[backward], read[backward]);
  }
  EXPECT_EQ(bench.pool().stats().buffers_lent, 0U);
}

}  // namespace
}  // namespace holmes::actors::testing

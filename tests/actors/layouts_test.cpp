// Goal: the losses and weights of a job have the same bits whatever its layout and whatever the
// order in which messages are delivered. Method: real Stage and Replica actors of a tiny model on
// one executor, whose delivery order is drawn from a seed, beside the serial trainer.
#include <fstream>

#include <gtest/gtest.h>

#include "actors/local_job.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::actors::testing {
namespace {

holmes::testing::SerialJob tiny_job() {
  holmes::testing::SerialJob job;
  job.model = {4, 2, 8, 8, 256, 64};
  job.batch = 8;
  job.micro_batch = 1;
  job.sequence = 8;
  job.reduction_leaves = 4;
  job.seed = 11;
  job.learning_rate = {1e-2F, 1e-3F, 2, 10};
  return job;
}

class Layouts : public ::testing::Test {
 protected:
  Layouts() {
    std::ofstream text(folder_.path() / "text.txt");
    for (int i = 0; i < 400; ++i) text << "line " << i * i << " of the text\n";
    text.close();
    file_ = *model::open_byte_text(folder_.path() / "text.txt");
  }

  void expect_same_bits(const holmes::testing::SerialJob& job, const LocalPlan& plan,
                        std::uint64_t seed) {
    constexpr std::uint64_t kSteps = 3;
    const auto serial = holmes::testing::serial_train(job, *file_, *engine_, kSteps);
    LocalJob actors(job, plan, kSteps, *file_, *engine_, seed);
    actors.run();
    ASSERT_TRUE(actors.failures().empty()) << actors.failures()[0].error.message();
    ASSERT_EQ(actors.steps().size(), kSteps);
    for (std::size_t i = 0; i < kSteps; ++i) {
      EXPECT_EQ(actors.steps()[i].loss, serial.steps[i].loss) << "step " << i;
      EXPECT_EQ(actors.steps()[i].gradient_norm, serial.steps[i].gradient_norm) << "step " << i;
    }
    EXPECT_EQ(actors.weights(Step(kSteps)), serial.weights);
  }

  const holmes::testing::TemporaryFolder folder_;
  std::unique_ptr<model::TokenFile> file_;
  std::unique_ptr<model::Engine> engine_ = model::make_reference_engine();
};

TEST_F(Layouts, OneDevice) {
  expect_same_bits(tiny_job(), {{{0, 3, {{0, 3}}}}}, 1);
}

TEST_F(Layouts, TwoStages) {
  expect_same_bits(tiny_job(), {{{0, 1, {{0, 3}}}, {2, 3, {{0, 3}}}}}, 1);
}

TEST_F(Layouts, TwoReplicas) {
  expect_same_bits(tiny_job(), {{{0, 3, {{0, 1}, {2, 3}}}}}, 1);
}

TEST_F(Layouts, TwoStagesOfTwoReplicas) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed)
    expect_same_bits(tiny_job(), {{{0, 2, {{0, 1}, {2, 3}}}, {3, 3, {{0, 1}, {2, 3}}}}}, seed);
}

TEST_F(Layouts, FourStages) {
  expect_same_bits(tiny_job(),
                   {{{0, 0, {{0, 3}}}, {1, 1, {{0, 3}}}, {2, 2, {{0, 3}}}, {3, 3, {{0, 3}}}}}, 1);
}

TEST_F(Layouts, FourReplicas) {
  expect_same_bits(tiny_job(), {{{0, 3, {{0, 0}, {1, 1}, {2, 2}, {3, 3}}}}}, 1);
}

TEST_F(Layouts, GPipeHasTheBitsOfAnyOtherSchedule) {
  const auto gpipe = partition::ScheduleKind::kGPipe;
  expect_same_bits(tiny_job(), {{{0, 1, {{0, 3}}}, {2, 3, {{0, 3}}}}, gpipe}, 1);
  const LocalPlan unequal{
      {{0, 0, {{0, 0}, {1, 3}}}, {1, 2, {{0, 3}}}, {3, 3, {{0, 1}, {2, 2}, {3, 3}}}}, gpipe};
  for (std::uint64_t seed = 1; seed <= 8; ++seed) expect_same_bits(tiny_job(), unequal, seed);
}

// Depths of their own at each stage, and orders that no published schedule has.
TEST_F(Layouts, OrdersOfThePlanHaveTheBitsOfAnyOtherSchedule) {
  const auto aware = partition::ScheduleKind::kNetworkAware;
  const LocalPlan two{
      {{0, 1, {{0, 3}}}, {2, 3, {{0, 3}}}}, aware, {"FFFFFBFBFBFBBBBB", "FFBFBBFFFBFBBBFB"}};
  const LocalPlan unequal{
      {{0, 0, {{0, 0}, {1, 3}}}, {1, 2, {{0, 3}}}, {3, 3, {{0, 1}, {2, 2}, {3, 3}}}},
      aware,
      {"FFBB", "FFFFFFBBBBBB", "FFFBFBFFBFBBFBBB", "FFBFFBBB", "FBFB", "FFBB"}};
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    expect_same_bits(tiny_job(), two, seed);
    expect_same_bits(tiny_job(), unequal, seed);
  }
}

/// Two heads on one of keys and values.
holmes::testing::SerialJob llama_job(model::Head head) {
  auto job = tiny_job();
  job.model.family = model::Family::kLlama;
  job.model.kv_heads = 1;
  job.model.feed_forward = 12;
  job.model.head = head;
  return job;
}

TEST_F(Layouts, OfLlamaWithEitherHead) {
  const LocalPlan plans[] = {
      {{{0, 3, {{0, 3}}}}},
      {{{0, 3, {{0, 0}, {1, 1}, {2, 2}, {3, 3}}}}},
      {{{0, 2, {{0, 1}, {2, 3}}}, {3, 3, {{0, 1}, {2, 3}}}}},
      {{{0, 0, {{0, 3}}}, {1, 1, {{0, 3}}}, {2, 2, {{0, 3}}}, {3, 3, {{0, 3}}}}},
      {{{0, 0, {{0, 0}, {1, 3}}}, {1, 2, {{0, 3}}}, {3, 3, {{0, 1}, {2, 2}, {3, 3}}}}}};
  for (const auto head : {model::Head::kUntied, model::Head::kTied})
    for (const auto& plan : plans)
      for (std::uint64_t seed = 1; seed <= 4; ++seed) expect_same_bits(llama_job(head), plan, seed);
}

TEST_F(Layouts, UnequalSharesAndDegrees) {
  const LocalPlan plan{
      {{0, 0, {{0, 0}, {1, 3}}}, {1, 2, {{0, 3}}}, {3, 3, {{0, 1}, {2, 2}, {3, 3}}}}};
  for (std::uint64_t seed = 1; seed <= 8; ++seed) expect_same_bits(tiny_job(), plan, seed);
}

}  // namespace
}  // namespace holmes::actors::testing

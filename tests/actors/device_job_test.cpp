// Goal: stages and replicas of a GPU keep the promises that those of a CPU keep: the same bits
// whatever the layout, and one error when the device fails. Method: whole jobs of real Stage and
// Replica actors on an emulated GPU, whose buffers lie in its memory.
#include <fstream>

#include <gtest/gtest.h>

#include "actors/local_job.hpp"
#include "cuda/engine.hpp"
#include "emulated_device.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::actors::testing {
namespace {

class OnGpu : public ::testing::TestWithParam<bool> {
 protected:
  OnGpu() {
    std::ofstream text(folder_.path() / "text.txt");
    for (int i = 0; i < 400; ++i) text << "line " << i * i << " of the text\n";
    text.close();
    file_ = *model::open_byte_text(folder_.path() / "text.txt");
    job_.model = {4, 2, 8, 8, 256, 64};
    job_.batch = 8;
    job_.micro_batch = 1;
    job_.sequence = 8;
    job_.reduction_leaves = 4;
    job_.seed = 11;
    job_.learning_rate = {1e-2F, 1e-3F, 2, 10};
    emulation_.shares_memory = GetParam();
    engine_ =
        model::cuda::make_device_engine(std::make_unique<model::cuda::EmulatedDevice>(emulation_));
  }

  static constexpr std::uint64_t kSteps = 3;
  const holmes::testing::TemporaryFolder folder_;
  std::unique_ptr<model::TokenFile> file_;
  holmes::testing::SerialJob job_;
  model::cuda::Emulation emulation_;
  std::unique_ptr<model::Engine> engine_;
};

TEST_P(OnGpu, EveryLayoutGivesTheSameBits) {
  LocalJob alone(job_, {{{0, 3, {{0, 3}}}}}, kSteps, *file_, *engine_, 1);
  alone.run();
  ASSERT_TRUE(alone.failures().empty()) << alone.failures()[0].error.message();
  ASSERT_EQ(alone.steps().size(), kSteps);
  const LocalPlan plans[] = {
      {{{0, 1, {{0, 3}}}, {2, 3, {{0, 3}}}}},
      {{{0, 3, {{0, 0}, {1, 1}, {2, 2}, {3, 3}}}}},
      {{{0, 2, {{0, 1}, {2, 3}}}, {3, 3, {{0, 1}, {2, 3}}}}},
  };
  for (const auto& plan : plans) {
    LocalJob job(job_, plan, kSteps, *file_, *engine_, 3);
    const auto reserved = job.pool().stats().allocation_count;
    const auto payloads = job.payloads()->stats().allocation_count;
    job.run();
    EXPECT_EQ(job.pool().stats().allocation_count, reserved);
    EXPECT_EQ(job.payloads()->stats().allocation_count, payloads);
    ASSERT_TRUE(job.failures().empty()) << job.failures()[0].error.message();
    ASSERT_EQ(job.steps().size(), kSteps);
    for (std::size_t i = 0; i < kSteps; ++i) {
      EXPECT_EQ(job.steps()[i].loss, alone.steps()[i].loss) << "step " << i;
      EXPECT_EQ(job.steps()[i].gradient_norm, alone.steps()[i].gradient_norm) << "step " << i;
    }
    EXPECT_EQ(job.weights(Step(kSteps)), alone.weights(Step(kSteps)));
  }
}

TEST_P(OnGpu, LearnsAsTheReferenceDoes) {
  const auto reference = model::make_reference_engine();
  const auto serial = holmes::testing::serial_train(job_, *file_, *reference, kSteps);
  LocalJob job(job_, {{{0, 1, {{0, 3}}}, {2, 3, {{0, 3}}}}}, kSteps, *file_, *engine_, 1);
  job.run();
  ASSERT_EQ(job.steps().size(), kSteps);
  for (std::size_t i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(job.steps()[i].loss, serial.steps[i].loss, 1e-5) << "step " << i;
    EXPECT_NEAR(job.steps()[i].gradient_norm, serial.steps[i].gradient_norm, 1e-5) << "step " << i;
  }
}

// In a pass, a sum or an update, early or late: the member that used the device says so, with its
// name and what it did, and no step is committed after that.
TEST_P(OnGpu, AFailingDeviceFailsItsMember) {
  const LocalPlan plan = {{{0, 1, {{0, 3}}}, {2, 3, {{0, 3}}}}};
  LocalJob whole(job_, plan, kSteps, *file_, *engine_, 1);
  whole.run();
  const std::size_t calls = emulation_.calls;
  ASSERT_GT(calls, 100U);
  for (std::size_t at = 1; at <= calls; at += calls / 23) {
    model::cuda::Emulation emulation;
    emulation.shares_memory = GetParam();
    emulation.calls_until_failure = at;
    const auto engine =
        model::cuda::make_device_engine(std::make_unique<model::cuda::EmulatedDevice>(emulation));
    LocalJob job(job_, plan, kSteps, *file_, *engine, 1);
    job.run();
    ASSERT_FALSE(job.failures().empty()) << "call " << at;
    const auto& failure = job.failures().front();
    EXPECT_EQ(failure.operation, "computing");
    EXPECT_EQ(failure.error.code(), ErrorCode::kUnavailable);
    EXPECT_NE(failure.error.message().find("emulated device 0: "), std::string::npos);
    EXPECT_NE(failure.error.message().find("an emulated fault"), std::string::npos);
    EXPECT_LE(job.steps().size(), whole.steps().size());
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, OnGpu, ::testing::Bool(), [](const auto& test) {
  return std::string(test.param ? "shared" : "copied");
});

}  // namespace
}  // namespace holmes::actors::testing

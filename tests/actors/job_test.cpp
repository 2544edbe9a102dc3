// Goal: the actors of a job are not decoration (stop one's messages and no step is committed any
// more), and a step like the one before it asks the system for no memory.
// Method: a whole job of Stages and Replicas on one executor, whose order of delivery is drawn.
#include <fstream>

#include <gtest/gtest.h>

#include "actors/local_job.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::actors::testing {
namespace {

class WholeJob : public ::testing::Test {
 protected:
  WholeJob() {
    std::ofstream text(folder_.path() / "text.txt");
    for (int i = 0; i < 400; ++i) text << "line " << i * i << " of the text\n";
    text.close();
    file_ = *model::open_byte_text(folder_.path() / "text.txt");
    job_.model = {2, 2, 8, 8, 256, 64};
    job_.batch = 4;
    job_.sequence = 8;
    job_.reduction_leaves = 4;
    job_.seed = 11;
    job_.learning_rate = {1e-2F, 1e-3F, 2, 10};
  }

  std::unique_ptr<LocalJob> start(std::uint64_t steps, std::uint64_t seed) {
    return std::make_unique<LocalJob>(job_, plan_, steps, *file_, *engine_, seed);
  }

  const holmes::testing::TemporaryFolder folder_;
  std::unique_ptr<model::TokenFile> file_;
  std::unique_ptr<model::Engine> engine_ = model::make_reference_engine();
  holmes::testing::SerialJob job_;
  const LocalPlan plan_{{{0, 0, {{0, 1}, {2, 3}}}, {1, 1, {{0, 1}, {2, 3}}}}};
};

TEST_F(WholeJob, NoStepIsCommittedWithoutAnyOneActor) {
  for (std::size_t actor = 0; actor < 8; ++actor) {
    const auto job = start(3, 1);
    ASSERT_EQ(job->actor_count(), 8U);
    job->silence(actor);
    job->run();
    EXPECT_TRUE(job->steps().empty()) << "actor " << actor;
  }
}

TEST_F(WholeJob, StepsStopWhenAnyOneActorFallsSilentOnTheWay) {
  constexpr std::uint64_t kSteps = 6;
  for (std::size_t actor = 0; actor < 8; ++actor) {
    const auto job = start(kSteps, actor + 1);
    job->run([&] { return job->passes().size() >= 40; });  // of 16 a step
    const auto step = job->passes().back().step.value();
    job->silence(actor);
    job->run();
    EXPECT_GE(job->steps().size(), 1U);
    EXPECT_LE(job->steps().size(), step + 1) << "actor " << actor;
    EXPECT_LT(job->steps().size(), kSteps) << "actor " << actor;
  }
}

TEST_F(WholeJob, AllocatesNothingOnceItIsReadyInWhateverOrderMessagesCome) {
  const LocalPlan plans[]{
      plan_,
      {{{0, 1, {{0, 3}}}}},
      {{{0, 1, {{0, 0}, {1, 2}, {3, 3}}}}},
      {{{0, 0, {{0, 3}}}, {1, 1, {{0, 2}, {3, 3}}}}},
      {{{0, 0, {{0, 3}}}, {1, 1, {{0, 1}, {2, 3}}}}, partition::ScheduleKind::kGPipe},
      {{{0, 0, {{0, 3}}}, {1, 1, {{0, 3}}}},
       partition::ScheduleKind::kNetworkAware,
       {"FFFBFBBB", "FFBFBBFB"}},
  };
  for (const auto& plan : plans)
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      LocalJob job(job_, plan, 12, *file_, *engine_, seed);
      const auto ready = job.pool().stats();
      EXPECT_GT(ready.allocation_count, 0U);
      job.run();
      ASSERT_EQ(job.steps().size(), 12U);
      EXPECT_EQ(job.pool().stats().allocation_count, ready.allocation_count) << "seed " << seed;
    }
}

}  // namespace
}  // namespace holmes::actors::testing

// Goal: a model learns text through the public interfaces, in sums whose bits depend on the job
// alone, and goes on from a checkpoint as if it had never stopped.
// Method: the serial trainer, which later tests compare distributed runs with, on a tiny model.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holmes/base/random.hpp"
#include "support/serial_trainer.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::testing {
namespace {

using model::Checkpoint;

/// Text with something to learn: words from a short list in random order.
std::string words(std::size_t count) {
  const char* const list[] = {"in ", "the ", "beginning ", "was ", "word "};
  Random random(5);
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += list[random.below(5)];
  return text;
}

SerialJob tiny_job() {
  SerialJob job;
  job.model = {.layers = 2,
               .heads = 2,
               .channels = 16,
               .sequence = 16,
               .vocabulary = 128,
               .vocabulary_padding = 1};
  job.batch = 8;
  job.micro_batch = 2;
  job.sequence = 16;
  job.reduction_leaves = 4;
  job.learning_rate = {.peak = 1e-2F, .floor = 1e-3F, .warmup_steps = 5, .decay_steps = 60};
  return job;
}

class Learning : public ::testing::Test {
 protected:
  Learning()
      : file_(*model::open_byte_text(folder_.write("words.txt", words(800)))),
        engine_(model::make_reference_engine()) {}

  TemporaryFolder folder_;
  std::unique_ptr<model::TokenFile> file_;
  std::unique_ptr<model::Engine> engine_;
};

bool same_bits(std::span<const float> a, std::span<const float> b) {
  const auto x = std::as_bytes(a);
  const auto y = std::as_bytes(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

TEST_F(Learning, LossFallsOnTextItHasNotSeen) {
  SerialTrainer trainer(tiny_job(), *file_, *engine_);
  const double before = trainer.validate(8);
  EXPECT_NEAR(before, std::log(128.0), 0.1) << "an untrained model knows nothing";
  for (int i = 0; i < 60; ++i) trainer.step();
  // The letters alone have an entropy of 2.4 nats; below it the model uses what went before.
  EXPECT_LT(trainer.validate(8), 1.6);
}

TEST_F(Learning, RepeatsBitForBit) {
  const auto one = serial_train(tiny_job(), *file_, *engine_, 5);
  const auto other = serial_train(tiny_job(), *file_, *engine_, 5);
  ASSERT_EQ(one.steps.size(), other.steps.size());
  for (std::size_t i = 0; i < one.steps.size(); ++i) {
    EXPECT_EQ(one.steps[i].loss, other.steps[i].loss);
    EXPECT_EQ(one.steps[i].gradient_norm, other.steps[i].gradient_norm);
  }
  EXPECT_TRUE(same_bits(one.weights, other.weights));
}

TEST_F(Learning, TreesOfOtherShapesAgreeButForRounding) {
  auto job = tiny_job();
  const auto four = serial_train(job, *file_, *engine_, 3);
  job.reduction_leaves = 1;
  const auto one = serial_train(job, *file_, *engine_, 3);
  for (std::size_t i = 0; i < one.steps.size(); ++i) {
    EXPECT_NEAR(one.steps[i].loss, four.steps[i].loss, 1e-5);
    EXPECT_NEAR(one.steps[i].gradient_norm, four.steps[i].gradient_norm, 1e-4);
  }
  EXPECT_FALSE(same_bits(one.weights, four.weights)) << "the order of sums should show";
}

TEST_F(Learning, MicroBatchesOfAnySizeGiveTheSameGradient) {
  auto job = tiny_job();
  job.reduction_leaves = 1;
  job.micro_batch = 8;
  const auto whole = serial_train(job, *file_, *engine_, 3);
  job.micro_batch = 1;
  const auto single = serial_train(job, *file_, *engine_, 3);
  for (std::size_t i = 0; i < whole.steps.size(); ++i) {
    EXPECT_NEAR(whole.steps[i].loss, single.steps[i].loss, 1e-5);
    EXPECT_NEAR(whole.steps[i].gradient_norm, single.steps[i].gradient_norm, 1e-4);
  }
}

TEST_F(Learning, TiedMatrixStaysOne) {
  SerialTrainer trainer(tiny_job(), *file_, *engine_);
  for (int i = 0; i < 3; ++i) trainer.step();
  const auto& copy = trainer.layers().front().layer->parameters().front();
  const auto& table = trainer.layers().back().layer->parameters().back();
  ASSERT_TRUE(copy.tied_copy);
  ASSERT_EQ(copy.name, table.name);
  EXPECT_TRUE(
      same_bits(trainer.layers().front().parameters.span().subspan(copy.offset, copy.count),
                trainer.layers().back().parameters.span().subspan(table.offset, table.count)));
}

TEST_F(Learning, ResumesBitForBit) {
  const auto straight = serial_train(tiny_job(), *file_, *engine_, 10);
  SerialTrainer stopped(tiny_job(), *file_, *engine_);
  for (int i = 0; i < 4; ++i) stopped.step();
  const auto saved = stopped.save(folder_.path() / "checkpoints");
  ASSERT_TRUE(saved) << saved.error().message();

  const auto checkpoint = Checkpoint::open(*saved, {.verify_hashes = true});
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  SerialTrainer resumed(tiny_job(), *file_, *engine_);
  ASSERT_TRUE(resumed.load(*checkpoint));
  EXPECT_EQ(resumed.next_step(), Step(4));
  for (std::size_t i = 4; i < 10; ++i) {
    const auto step = resumed.step();
    EXPECT_EQ(step.loss, straight.steps[i].loss);
    EXPECT_EQ(step.gradient_norm, straight.steps[i].gradient_norm);
  }
  EXPECT_TRUE(same_bits(resumed.weights(), straight.weights));
}

TEST_F(Learning, RefusesToResumeAnotherJob) {
  SerialTrainer trainer(tiny_job(), *file_, *engine_);
  const auto saved = trainer.save(folder_.path() / "checkpoints");
  ASSERT_TRUE(saved);
  auto job = tiny_job();
  job.seed = 2;
  SerialTrainer other(job, *file_, *engine_);
  const auto loaded = other.load(*Checkpoint::open(*saved));
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message(), ::testing::HasSubstr("its seed is 1, this job's is 2"));
}

}  // namespace
}  // namespace holmes::testing

// Goal: a trained model goes on with what it learnt, the same way for the same seed, and tokens are
// drawn as their logits say.
// Method: a tiny model trained on a repeated word by the serial trainer; hand-made logits.
#include "holmes/model/generate.hpp"

#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holmes/model/tokenizer.hpp"
#include "support/serial_trainer.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::model {
namespace {

using ::holmes::testing::SerialJob;
using ::holmes::testing::SerialTrainer;
using ::holmes::testing::TemporaryFolder;
using ::testing::HasSubstr;

TEST(SampleToken, TakesTheLikeliestAtTemperatureZero) {
  Random random(1);
  const std::vector<float> logits = {0.5F, 3.0F, -1.0F, 3.0F};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(sample_token(logits, {.temperature = 0}, random), 1) << "the first of two equal ones";
  }
}

TEST(SampleToken, NeverLeavesTheTopK) {
  Random random(1);
  const std::vector<float> logits = {0.0F, 0.3F, 0.1F, 0.2F};
  std::map<std::int32_t, int> count;
  for (int i = 0; i < 1000; ++i) {
    ++count[sample_token(logits, {.temperature = 5, .top_k = 2}, random)];
  }
  EXPECT_EQ(count.size(), 2);
  EXPECT_GT(count[1], 300);
  EXPECT_GT(count[3], 300);
}

TEST(SampleToken, DrawsByProbability) {
  Random random(1);
  // With temperature 2 the odds are e^(x/2): 1 : 2 : 4.
  const std::vector<float> logits = {0.0F, 2 * std::log(2.0F), 2 * std::log(4.0F)};
  std::map<std::int32_t, int> count;
  for (int i = 0; i < 7000; ++i) {
    ++count[sample_token(logits, {.temperature = 2, .top_k = 0}, random)];
  }
  EXPECT_NEAR(count[0], 1000, 150);
  EXPECT_NEAR(count[1], 2000, 200);
  EXPECT_NEAR(count[2], 4000, 200);
}

TEST(SampleToken, RefusesBadTemperatures) {
  EXPECT_FALSE(validate(GenerateOptions{.temperature = -1}));
  EXPECT_FALSE(validate(GenerateOptions{.temperature = std::nanf("")}));
  EXPECT_TRUE(validate(GenerateOptions{.temperature = 0}));
}

/// A model that has seen nothing but "abcde" again and again. (Of "abab" a tied model this small
/// learns no more than that both letters are equally likely: a saddle that it does not leave.)
class Generate : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = std::make_unique<TemporaryFolder>();
    engine = make_reference_engine();
    std::string text;
    for (int i = 0; i < 400; ++i) text += "abcde";
    const auto file = *open_byte_text(folder->write("abcde.txt", text));
    SerialJob job;
    job.model = {.layers = 1,
                 .heads = 2,
                 .channels = 16,
                 .sequence = 39,
                 .vocabulary = 128,
                 .vocabulary_padding = 1};
    job.batch = 4;
    job.sequence = 39;  // no multiple of 5: samples begin with every letter
    job.learning_rate = {.peak = 1e-2F, .floor = 1e-3F, .warmup_steps = 10, .decay_steps = 200};
    SerialTrainer trainer(job, *file, *engine);
    for (int i = 0; i < 80; ++i) trainer.step();
    EXPECT_LT(trainer.validate(4), 0.1);
    checkpoint = std::make_unique<Checkpoint>(
        *Checkpoint::open(*trainer.save(folder->path() / "checkpoints")));
  }
  static void TearDownTestSuite() {
    checkpoint.reset();
    engine.reset();
    folder.reset();
  }

  static std::string go_on(std::string_view prompt, const GenerateOptions& options) {
    std::string text;
    const auto done = generate(*checkpoint, *engine, prompt, options, [&](std::string_view t) {
      text += t;
      return true;
    });
    return done ? text : done.error().message();
  }

  inline static std::unique_ptr<TemporaryFolder> folder;
  inline static std::unique_ptr<Engine> engine;
  inline static std::unique_ptr<Checkpoint> checkpoint;
};

TEST_F(Generate, GoesOnWithWhatItLearnt) {
  // Beyond the window of 39 tokens, and beyond each of the shorter windows before it.
  std::string expected;
  for (int i = 0; i < 14; ++i) expected += "abcde";
  EXPECT_EQ(go_on("abcde", {.max_tokens = 70, .temperature = 0}), expected);
  EXPECT_EQ(go_on("cd", {.max_tokens = 3, .temperature = 0}), "eab");
  EXPECT_EQ(go_on("deabc", {.max_tokens = 7, .temperature = 0.2F, .top_k = 3}), "deabcde");
}

TEST_F(Generate, IsTheSameForASeed) {
  const GenerateOptions hot = {.max_tokens = 40, .temperature = 5, .top_k = 0, .seed = 3};
  const auto text = go_on("ab", hot);
  EXPECT_EQ(text, go_on("ab", hot));
  auto other = hot;
  other.seed = 4;
  EXPECT_NE(text, go_on("ab", other));
}

TEST_F(Generate, StopsWhenAsked) {
  int count = 0;
  const auto done =
      generate(*checkpoint, *engine, "ab", {}, [&](std::string_view) { return ++count < 3; });
  EXPECT_TRUE(done);
  EXPECT_EQ(count, 3);
}

TEST_F(Generate, RefusesWhatItCannotGoOnFrom) {
  EXPECT_THAT(go_on("", {}), HasSubstr("prompt is empty"));
  EXPECT_THAT(go_on("\xc3\xa9", {}), HasSubstr("token 195, the model knows only 128"));
  EXPECT_THAT(go_on("a", {.temperature = -2}), HasSubstr("temperature"));
}

TEST_F(Generate, LogitsAreThoseOfTheWholeContextWhateverTheWindow) {
  auto model = LanguageModel::load(*checkpoint, *engine);
  ASSERT_TRUE(model);
  const auto ids = (*make_tokenizer("bytes"))->encode(std::string(60, 'a') + "abba");
  const auto at = [&](std::size_t count) {
    const auto logits = model->next_logits(std::span(ids).first(count));
    return std::vector<float>(logits.begin(), logits.end());
  };
  const auto early = at(10);
  const auto late = at(64);
  EXPECT_NE(early, late);
  EXPECT_EQ(at(10), early);
  // Only the last 39 tokens count.
  const auto tail = model->next_logits(std::span(ids).last(39));
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), late.begin()));
}

}  // namespace
}  // namespace holmes::model

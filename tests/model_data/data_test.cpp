// Goal: text becomes samples in an order that any process can compute, each sample once an epoch.
// Method: small files and counts against what the definitions promise, in every epoch.
#include "holmes/model/data.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_folder.hpp"

namespace holmes::model {
namespace {

using ::holmes::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string letters(std::size_t count) {
  std::string text(count, ' ');
  for (std::size_t i = 0; i < count; ++i) text[i] = static_cast<char>(i % 251);
  return text;
}

std::string error_of(const std::filesystem::path& path) {
  const auto file = open_byte_text(path);
  if (file) return "no error";
  EXPECT_EQ(file.error().code(), ErrorCode::kInvalidArgument);
  return file.error().message();
}

TEST(ByteText, ReadsBytesAsTokens) {
  const TemporaryFolder folder;
  const auto file = open_byte_text(folder.write("a.txt", std::string("\x00z\xff\n", 4)));
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->token_count(), 4);
  std::vector<std::int32_t> tokens(3);
  (*file)->read(1, tokens);
  EXPECT_THAT(tokens, ElementsAre('z', 255, '\n'));
}

TEST(ByteText, HashIsOfTheContent) {
  const TemporaryFolder folder;
  const auto a = open_byte_text(folder.write("a.txt", "the same"));
  const auto b = open_byte_text(folder.write("b.txt", "the same"));
  const auto c = open_byte_text(folder.write("c.txt", "the sane"));
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ((*a)->hash(), (*b)->hash());
  EXPECT_NE((*a)->hash(), (*c)->hash());
  // XXH3-128 of "abc" as the xxhsum tool prints it: the hash must stay comparable for ever.
  const auto abc = open_byte_text(folder.write("abc.txt", "abc"));
  ASSERT_TRUE(abc);
  EXPECT_EQ((*abc)->hash(), "06b05ab6733a618578af5f94892f3950");
}

TEST(ByteText, NamesTheFileItCannotUse) {
  const TemporaryFolder folder;
  const auto missing = folder.path() / "missing.txt";
  EXPECT_THAT(error_of(missing), AllOf(HasSubstr(missing.string()), HasSubstr("does not exist")));
  EXPECT_THAT(error_of(folder.path()),
              AllOf(HasSubstr(folder.path().string()), HasSubstr("is a folder")));
  EXPECT_THAT(error_of(folder.write("empty.txt", "")),
              AllOf(HasSubstr("empty.txt"), HasSubstr("is empty")));
  EXPECT_THAT(error_of("/dev/null"), HasSubstr("not a regular file"));
  const auto loop = folder.path() / "loop";
  std::filesystem::create_symlink(loop, loop);  // unreadable for everybody, root included
  EXPECT_THAT(error_of(loop), AllOf(HasSubstr(loop.string()), HasSubstr("cannot read")));
}

TEST(Split, KeepsTheEndForValidation) {
  const TemporaryFolder folder;
  const auto file = open_byte_text(folder.write("a.txt", letters(1000)));
  ASSERT_TRUE(file);
  const auto parts = split(**file, 0.1, 16);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->train.begin, 0);
  EXPECT_EQ(parts->train.end, 900);
  EXPECT_EQ(parts->validation.begin, 900);
  EXPECT_EQ(parts->validation.end, 1000);
}

TEST(Split, RefusesPartsWithoutASample) {
  const TemporaryFolder folder;
  const auto file = open_byte_text(folder.write("short.txt", letters(100)));
  ASSERT_TRUE(file);
  const auto no_validation = split(**file, 0.1, 10);
  ASSERT_FALSE(no_validation);
  EXPECT_EQ(no_validation.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(
      no_validation.error().message(),
      AllOf(HasSubstr("short.txt"), HasSubstr("10 are for validation"), HasSubstr("needs 11")));
  const auto no_training = split(**file, 0.5, 50);
  ASSERT_FALSE(no_training);
  EXPECT_THAT(no_training.error().message(), HasSubstr("50 are for training"));
  EXPECT_FALSE(split(**file, 1.0, 10));
  EXPECT_FALSE(split(**file, -0.5, 10));
  EXPECT_TRUE(split(**file, 0.11, 10));
}

/// First tokens of `count` samples from step 0 on, in order of use.
std::vector<std::uint64_t> uses(const SampleOrder& order, std::uint32_t batch, std::size_t count) {
  std::vector<std::uint64_t> firsts;
  for (std::uint64_t step = 0; firsts.size() < count; ++step) {
    for (std::uint32_t i = 0; i < batch && firsts.size() < count; ++i) {
      firsts.push_back(order.first_token(Step(step), i));
    }
  }
  return firsts;
}

TEST(SampleOrder, UsesEachSampleOnceAnEpochForEveryCount) {
  constexpr std::uint32_t kSequence = 4;
  constexpr std::uint32_t kBatch = 3;  // mostly no divisor of the count: batches straddle epochs
  for (std::uint64_t samples = 1; samples <= 140; ++samples) {
    const TokenRange range{10, 10 + samples * kSequence + 1};
    const SampleOrder order(range, kSequence, kBatch, 42);
    ASSERT_EQ(order.sample_count(), samples);
    const auto firsts = uses(order, kBatch, 3 * samples);
    for (int epoch = 0; epoch < 3; ++epoch) {
      const auto begin = firsts.begin() + static_cast<std::ptrdiff_t>(epoch * samples);
      std::vector<std::uint64_t> sorted(begin, begin + static_cast<std::ptrdiff_t>(samples));
      std::sort(sorted.begin(), sorted.end());
      for (std::uint64_t i = 0; i < samples; ++i) ASSERT_EQ(sorted[i], 10 + i * kSequence);
    }
  }
}

TEST(SampleOrder, IsAFunctionOfSeedAndStepOnly) {
  const TokenRange range{0, 1001};
  const SampleOrder one(range, 10, 8, 7);
  const SampleOrder other(range, 10, 8, 7);
  const auto whole = uses(one, 8, 400);
  // Asked in another order, by another object, from the middle: the answer is the same.
  for (std::uint64_t step = 50; step-- > 0;) {
    for (std::uint32_t i = 8; i-- > 0;) {
      ASSERT_EQ(other.first_token(Step(step), i), whole[step * 8 + i]);
    }
  }
}

TEST(SampleOrder, ShufflesDifferentlyForEachSeedAndEpoch) {
  const TokenRange range{0, 1001};
  const auto a = uses(SampleOrder(range, 10, 10, 1), 10, 200);
  const auto b = uses(SampleOrder(range, 10, 10, 2), 10, 200);
  int same_seed = 0;
  int same_epoch = 0;
  int in_place = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    same_seed += a[i] == b[i] ? 1 : 0;
    same_epoch += a[i] == a[i + 100] ? 1 : 0;
    in_place += a[i] == i * 10 ? 1 : 0;
  }
  // A random permutation agrees with another in one place on average.
  EXPECT_LT(same_seed, 8);
  EXPECT_LT(same_epoch, 8);
  EXPECT_LT(in_place, 8);
}

TEST(SampleOrder, StaysTheSameAcrossReleases) {
  // Resuming an old checkpoint must go on in its order: these numbers may never change.
  const SampleOrder order({100, 100 + 20 * 5 + 1}, 5, 4, 123);
  const auto firsts = uses(order, 4, 8);
  EXPECT_THAT(firsts, ElementsAre(175, 150, 140, 135, 155, 115, 120, 145));
}

TEST(SampleOrder, WorksForHugeFiles) {
  const SampleOrder order({0, std::uint64_t{1} << 50}, 1024, 512, 9);
  std::set<std::uint64_t> seen;
  for (std::uint32_t i = 0; i < 512; ++i) seen.insert(order.first_token(Step(1'000'000), i));
  EXPECT_EQ(seen.size(), 512);
  EXPECT_LE(*seen.rbegin() + 1025, std::uint64_t{1} << 50);
}

TEST(MicroBatch, TakesItsSamplesAndShiftsTargetsByOne) {
  const TemporaryFolder folder;
  const auto file = open_byte_text(folder.write("a.txt", letters(241)));
  ASSERT_TRUE(file);
  const SampleOrder order({0, 241}, 8, 6, 3);
  for (std::uint32_t k = 0; k < 3; ++k) {
    std::vector<std::int32_t> tokens(16);
    std::vector<std::int32_t> targets(16);
    fill_micro_batch(**file, order, Step(4), MicroBatch(k), 2, 8, tokens, targets);
    for (std::uint32_t b = 0; b < 2; ++b) {
      const auto first = order.first_token(Step(4), k * 2 + b);
      for (std::uint32_t t = 0; t < 8; ++t) {
        EXPECT_EQ(tokens[b * 8 + t], static_cast<std::int32_t>((first + t) % 251));
        EXPECT_EQ(targets[b * 8 + t], static_cast<std::int32_t>((first + t + 1) % 251));
      }
    }
  }
}

TEST(ValidationOrder, SpreadsFixedSamplesEvenly) {
  const ValidationOrder order({1000, 1000 + 100 * 10 + 1}, 10, 4, 5);  // 20 of 100 samples
  std::vector<std::uint64_t> firsts;
  for (std::uint32_t e = 0; e < 4; ++e) {
    for (std::uint32_t i = 0; i < 5; ++i) firsts.push_back(order.first_token(MicroBatch(e), i));
  }
  for (std::size_t u = 0; u < firsts.size(); ++u) EXPECT_EQ(firsts[u], 1000 + u * 5 * 10);
}

TEST(ValidationOrder, RepeatsEvenlyWhenTheRangeIsSmall) {
  const ValidationOrder order({50, 50 + 3 * 10 + 5}, 10, 2, 4);  // 8 uses of 3 samples
  std::map<std::uint64_t, int> count;
  for (std::uint32_t e = 0; e < 2; ++e) {
    for (std::uint32_t i = 0; i < 4; ++i) ++count[order.first_token(MicroBatch(e), i)];
  }
  EXPECT_EQ(count.size(), 3);
  for (const auto& [first, times] : count) {
    EXPECT_GE(times, 2) << first;
    EXPECT_LE(times, 3) << first;
  }
}

TEST(ValidationOrder, NeverReadsWhatTrainingReads) {
  const TemporaryFolder folder;
  const auto file = open_byte_text(folder.write("a.txt", letters(5000)));
  ASSERT_TRUE(file);
  const auto parts = split(**file, 0.2, 16);
  ASSERT_TRUE(parts);
  const SampleOrder order(parts->train, 16, 7, 5);
  std::uint64_t last_read = 0;
  for (const auto first : uses(order, 7, order.sample_count())) {
    last_read = std::max(last_read, first + 16);  // the last target
  }
  const ValidationOrder validation(parts->validation, 16, 10, 4);
  EXPECT_LT(last_read, validation.first_token(MicroBatch(0), 0));
  EXPECT_LE(validation.first_token(MicroBatch(9), 3) + 17, 5000);
  std::vector<std::int32_t> tokens(64);
  std::vector<std::int32_t> targets(64);
  fill_validation_micro_batch(**file, validation, MicroBatch(9), tokens, targets);
  EXPECT_EQ(tokens[1], targets[0]);
  EXPECT_EQ(tokens[48], static_cast<std::int32_t>(validation.first_token(MicroBatch(9), 3) % 251));
}

}  // namespace
}  // namespace holmes::model

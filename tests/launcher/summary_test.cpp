// Goal: the gzip figure is gzip's, and what is printed at the end has every figure with its unit.
#include "summary.hpp"

#include <numbers>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "gzip_bound.hpp"
#include "temporary_folder.hpp"

namespace holmes::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string sentence(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += "line " + std::to_string(i * i) + " of the text\n";
  return text;
}

TEST(GzipBound, IsTheSizeOfTheGzipFile) {
  // An empty deflate stream is 2 bytes and gzip's frame 18; one stored byte costs 1 more.
  const std::string one = "a";
  EXPECT_DOUBLE_EQ(gzip_nats_per_byte(std::as_bytes(std::span(one))), 21 * 8 * std::numbers::ln2);
  EXPECT_EQ(gzip_nats_per_byte({}), 0);
}

TEST(GzipBound, AgreesWithTheProgram) {
  const TemporaryFolder folder;
  const std::string text = sentence(20'000);
  write_file(folder.path() / "text", text);
  const std::string command = "gzip -9 -n < " + (folder.path() / "text").string() + " > " +
                              (folder.path() / "text.gz").string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto bytes = static_cast<double>(std::filesystem::file_size(folder.path() / "text.gz"));
  const double expected = bytes * 8 * std::numbers::ln2 / static_cast<double>(text.size());
  // The two have the same algorithm, not the same code.
  EXPECT_NEAR(gzip_nats_per_byte(std::as_bytes(std::span(text))), expected, 0.01 * expected);
}

TEST(GzipBound, IsOfTheValidationPart) {
  const TemporaryFolder folder;
  const std::string text = std::string(30'000, 'a') + sentence(500);
  write_file(folder.path() / "text", text);
  actors::JobConfig job;
  job.data.text = folder.path() / "text";
  job.train.sequence = 16;
  job.data.validation = 0.1;
  const auto figure = gzip_nats_of_validation(job);
  ASSERT_TRUE(figure) << figure.error().message();
  EXPECT_GT(*figure, 0.1);  // of the sentences, not of the letters before them
}

Summary finished() {
  Summary summary;
  summary.outcome = actors::Outcome::kFinished;
  summary.validation_nats = 1.4321;
  summary.gzip_nats = 1.64;
  summary.byte_tokens = true;
  summary.checkpoint = "runs/a/checkpoints/step-00000100";
  summary.duration = std::chrono::seconds(75);
  return summary;
}

TEST(Summary, SaysFiguresWithUnits) {
  const std::string text = summary_text(finished());
  EXPECT_THAT(text, HasSubstr("1.4321 nats per byte"));
  EXPECT_THAT(text, HasSubstr("gzip -9 needs   1.6400 nats per byte"));
  EXPECT_THAT(text, HasSubstr("runs/a/checkpoints/step-00000100"));
  EXPECT_THAT(text, HasSubstr("finished after 1:15"));
}

TEST(Summary, LeavesOutWhatIsNotKnown) {
  Summary summary;
  summary.duration = std::chrono::seconds(1);
  EXPECT_EQ(summary_text(summary), "failed after 1.0 s");
  const auto json = nlohmann::json::parse(summary_json(summary));
  EXPECT_EQ(json["outcome"], "failed");
  EXPECT_FALSE(json.contains("validation_loss"));
  EXPECT_EQ(nlohmann::json::parse(summary_json(finished()))["gzip9_nats_per_byte"], 1.64);
}

TEST(Summary, SaysWhichHostsWereLost) {
  Summary summary;
  summary.outcome = actors::Outcome::kFinished;
  EXPECT_THAT(summary_text(summary), Not(HasSubstr("lost")));
  summary.hosts_lost = {"b0", "a1"};
  EXPECT_THAT(summary_text(summary), HasSubstr("hosts lost      2: b0, a1\n"));
  EXPECT_EQ(nlohmann::json::parse(summary_json(summary))["hosts_lost"],
            nlohmann::json({"b0", "a1"}));
}

}  // namespace
}  // namespace holmes::launcher

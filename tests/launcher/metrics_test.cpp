// Goal: metrics.jsonl has one object for each step, whose numbers read back exactly; the validation
// is on the line of its step; a resumed run goes on where the checkpoint was.
#include "metrics.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "event_json.hpp"
#include "sample_events.hpp"
#include "temporary_folder.hpp"

namespace holmes::launcher {
namespace {

std::vector<nlohmann::json> lines(const std::filesystem::path& file) {
  std::vector<nlohmann::json> result;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) result.push_back(nlohmann::json::parse(line));
  return result;
}

class Metrics : public testing::Test {
 protected:
  MetricsWriter::Options options(std::uint64_t steps, std::uint64_t validate_every = 0) {
    return {file(), steps, validate_every, two_hosts()};
  }
  std::filesystem::path file() const { return folder_.path() / "metrics.jsonl"; }

  TemporaryFolder folder_;
};

TEST_F(Metrics, EachStepIsALineAtOnce) {
  const double loss = 2.0 / 3.0 + 1e-15;
  MetricsWriter writer(options(10));
  ASSERT_TRUE(writer.on_event(plan_from(0)));
  ASSERT_TRUE(writer.on_event(step_finished(0, loss)));
  const auto found = lines(file());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]["step"], 0);
  EXPECT_EQ(found[0]["loss"].get<double>(), loss);
  EXPECT_EQ(found[0]["tokens_per_s"], 2000.0);
  EXPECT_EQ(found[0]["step_s"], 0.5);
  EXPECT_EQ(found[0]["nics"]["a0/eth0"]["bytes_sent"], 1'000'000);
  EXPECT_FALSE(found[0].contains("validation_loss"));
}

TEST_F(Metrics, ValidationIsOnTheLineOfItsStep) {
  {
    MetricsWriter writer(options(3, 2));
    ASSERT_TRUE(writer.on_event(plan_from(0)));
    ASSERT_TRUE(writer.on_event(step_finished(0, 3)));
    ASSERT_TRUE(writer.on_event(step_finished(1, 2)));
    ASSERT_TRUE(writer.on_event(actors::ValidationFinished{Step(2), 2.5}));
    ASSERT_TRUE(writer.on_event(step_finished(2, 1)));  // its validation never comes
  }
  const auto found = lines(file());
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[1]["validation_loss"], 2.5);
  EXPECT_FALSE(found[0].contains("validation_loss"));
  EXPECT_FALSE(found[2].contains("validation_loss"));
}

TEST_F(Metrics, AValidationAfterTheNextStepIsALineOfItsOwn) {
  MetricsWriter writer(options(10, 2));
  ASSERT_TRUE(writer.on_event(plan_from(0)));
  ASSERT_TRUE(writer.on_event(step_finished(1, 2)));
  ASSERT_TRUE(writer.on_event(step_finished(2, 1)));
  ASSERT_TRUE(writer.on_event(actors::ValidationFinished{Step(2), 2.5}));
  const auto found = lines(file());
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[2], (nlohmann::json{{"step", 1}, {"validation_loss", 2.5}}));
}

TEST_F(Metrics, AnIncidentWritesWhatWaits) {
  MetricsWriter writer(options(1));
  ASSERT_TRUE(writer.on_event(plan_from(0)));
  ASSERT_TRUE(writer.on_event(step_finished(0, 3)));
  ASSERT_TRUE(writer.on_event(incident()));
  EXPECT_EQ(lines(file()).size(), 1U);
}

TEST_F(Metrics, ALostHostAndTheRecoveryAreLinesThatAResumeKeeps) {
  {
    MetricsWriter writer(options(10));
    ASSERT_TRUE(writer.on_event(plan_from(0)));
    ASSERT_TRUE(writer.on_event(step_finished(0, 3)));
    ASSERT_TRUE(writer.on_event(lost_host()));
    ASSERT_TRUE(writer.on_event(plan_from(1)));
    ASSERT_TRUE(writer.on_event(step_finished(1, 2)));
    ASSERT_TRUE(writer.on_event(regrouped()));
    ASSERT_TRUE(writer.on_event(step_finished(2, 1)));
  }
  ASSERT_TRUE(cut_metrics(file(), Step(2)));
  const auto found = lines(file());
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[1]["event"], "incident");
  EXPECT_EQ(found[1]["goes_on"], true);
  EXPECT_EQ(found[2]["step"], 1);
  EXPECT_EQ(found[3]["event"], "regrouped");
}

TEST_F(Metrics, ResumingCutsTheStepsThatAreRunAgain) {
  write_file(file(), "{\"step\":0,\"loss\":3}\n{\"step\":1,\"loss\":2}\n{\"step\":2,\"lo");
  {
    MetricsWriter writer(options(10));
    ASSERT_TRUE(writer.on_event(plan_from(1)));
    ASSERT_TRUE(writer.on_event(step_finished(1, 2.25)));
  }
  const auto found = lines(file());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0]["loss"], 3);
  EXPECT_EQ(found[1]["loss"], 2.25);
}

TEST_F(Metrics, ABrokenLineIsDroppedOnResume) {
  write_file(file(), "{\"step\":0,\"loss\":3}\n{\"step\":1,\"lo");
  ASSERT_TRUE(cut_metrics(file(), Step(5)));
  EXPECT_EQ(read_file(file()), "{\"step\":0,\"loss\":3}\n");
}

TEST_F(Metrics, AnEmptyPlanThatStopsTheJobCutsNothing) {
  MetricsWriter writer(options(10));
  ASSERT_TRUE(writer.on_event(plan_from(0)));
  ASSERT_TRUE(writer.on_event(step_finished(0, 3)));
  ASSERT_TRUE(writer.on_event(actors::PlanInForce{Generation(2), Step(0), {}}));
  EXPECT_EQ(lines(file()).size(), 1U);
}

TEST_F(Metrics, ADiskThatRefusesIsReportedOnce) {
  MetricsWriter writer({folder_.path() / "no/such/folder", 10, 0, two_hosts()});
  EXPECT_FALSE(writer.on_event(plan_from(0)));
  EXPECT_TRUE(writer.on_event(step_finished(0, 3)));
}

TEST(EventJson, EveryEventNamesItself) {
  const auto cluster = two_hosts();
  const auto name = [&](const actors::Event& event) {
    return nlohmann::json::parse(event_json(event, cluster))["event"].get<std::string>();
  };
  EXPECT_EQ(name(actors::HostStarted{HostId(0), "a0", 12}), "host_started");
  EXPECT_EQ(name(plan_from(0)), "plan_in_force");
  EXPECT_EQ(name(step_finished(0, 1)), "step_finished");
  EXPECT_EQ(name(actors::ValidationFinished{Step(1), 2}), "validation_finished");
  EXPECT_EQ(name(actors::CheckpointSaved{Step(1), "x"}), "checkpoint_saved");
  EXPECT_EQ(name(incident()), "incident");
  EXPECT_EQ(name(regrouped()), "regrouped");
}

TEST(EventJson, ARecoveryHasItsPhases) {
  const auto json = nlohmann::json::parse(event_json(regrouped(), two_hosts()));
  EXPECT_EQ(json["lost"], nlohmann::json({"b0"}));
  EXPECT_EQ(json["first_step"], 12);
  EXPECT_EQ(json["steps_lost"], 0);
  EXPECT_DOUBLE_EQ(json["agree_s"], 0.002);
  EXPECT_DOUBLE_EQ(json["first_step_s"], 0.1);
  const auto message = json["message"].get<std::string>();
  EXPECT_EQ(message,
            "on without host b0 from step 12 after 136 ms (agree 2 ms, plan 4 ms, move state "
            "30 ms, first step 100 ms; last sign of life 50 ms before that)");
}

TEST(EventJson, AnIncidentSaysWhoWhatAndWhen) {
  const auto json = nlohmann::json::parse(event_json(incident(), two_hosts()));
  EXPECT_EQ(json["host"], "b0");
  EXPECT_EQ(json["last_committed"], 11);
  EXPECT_EQ(json["code"], "closed");
}

}  // namespace
}  // namespace holmes::launcher

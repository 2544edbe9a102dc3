// Goal: `holmes train` turns a session's events into files and lines, its outcome into the exit
// code, and starts nothing when the job is wrong. Method: a session that plays a script.
#include "train.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "capture_console.hpp"
#include "sample_events.hpp"

namespace holmes::launcher {
namespace {

using testing::HasSubstr;

class ScriptedSession final : public actors::Session {
 public:
  ScriptedSession(actors::SessionOptions options, actors::Outcome outcome)
      : options_(std::move(options)), outcome_(outcome) {}
  void request_stop() override {}
  void agent_exited(HostId, int, const std::string&) override {}
  actors::Health health() const override { return {}; }
  actors::Outcome wait() override {
    const std::vector<actors::Event> script{actors::HostStarted{HostId(0), "a0", 12},
                                            plan_from(0),
                                            step_finished(0, 3.0),
                                            step_finished(1, 2.5),
                                            actors::ValidationFinished{Step(2), 2.0},
                                            actors::CheckpointSaved{Step(2), "there"}};
    for (const auto& event : script) options_.on_event(event);
    if (outcome_ == actors::Outcome::kFailed) options_.on_event(incident());
    return outcome_;
  }

 private:
  const actors::SessionOptions options_;
  const actors::Outcome outcome_;
};

class Train : public testing::Test {
 protected:
  Train() {
    command_.job = folder_.path() / "job.toml";
    write_file(command_.job, "[run]\n");
    job_.run.folder = folder_.path() / "run";
    job_.train.steps = 2;
    job_.cluster = two_hosts();
  }

  int run(actors::Outcome outcome) {
    return run(
        [outcome](actors::SessionOptions options) -> Result<std::unique_ptr<actors::Session>> {
          HOLMES_TRY(options.before_start());
          return std::unique_ptr<actors::Session>(
              std::make_unique<ScriptedSession>(std::move(options), outcome));
        });
  }
  int run(std::function<Result<std::unique_ptr<actors::Session>>(actors::SessionOptions)> start) {
    return train(command_, {capture_.console(),
                            clock_,
                            {},
                            {},
                            false,
                            true,
                            [this](const actors::ConfigSource&) { return load(); },
                            std::move(start),
                            agent_});
  }
  std::string file(const std::string& name) const { return read_file(job_.run.folder / name); }

  Result<actors::JobConfig> load() const {
    if (!job_error_.empty()) return Error(ErrorCode::kInvalidArgument, job_error_);
    return job_;
  }

  TemporaryFolder folder_;
  CaptureConsole capture_;
  SteadyClock clock_;
  TrainCommand command_;
  actors::JobConfig job_;
  std::string job_error_;
  std::string agent_ = "/bin/false";
};

TEST_F(Train, LeavesWhatHappenedInTheRunFolder) {
  EXPECT_EQ(run(actors::Outcome::kFinished), 0);
  EXPECT_EQ(file("job.toml"), "[run]\n");
  EXPECT_EQ(nlohmann::json::parse(file("plan.json"))["stages"].size(), 2U);
  EXPECT_THAT(file("metrics.jsonl"), HasSubstr("\"validation_loss\":2.0"));
  EXPECT_THAT(capture_.out(), HasSubstr("step 2/2"));
  EXPECT_THAT(capture_.out(), HasSubstr("validation loss 2.0000 nats per byte"));
  EXPECT_THAT(capture_.out(), HasSubstr("there"));
}

TEST_F(Train, ExitCodesFollowTheOutcome) {
  EXPECT_EQ(run(actors::Outcome::kInterrupted), 3);
  command_.overwrite = true;
  EXPECT_EQ(run(actors::Outcome::kFailed), 1);
  EXPECT_THAT(capture_.error(), HasSubstr("host b0 failed during step 12"));
}

TEST_F(Train, TheLogOfALostHostIsNamedWhereThereIsOne) {
  const auto log = job_.run.folder / "logs/b0.log";
  const auto run_with_log = [&](bool exists) {
    run([&](actors::SessionOptions options) -> Result<std::unique_ptr<actors::Session>> {
      HOLMES_TRY(options.before_start());
      if (exists) write_file(log, "");
      return std::unique_ptr<actors::Session>(
          std::make_unique<ScriptedSession>(std::move(options), actors::Outcome::kFailed));
    });
  };
  run_with_log(false);
  EXPECT_THAT(capture_.error(), testing::Not(HasSubstr("its log: ")));
  command_.overwrite = true;
  run_with_log(true);
  EXPECT_THAT(capture_.error(), HasSubstr("; its log: " + log.string() + "\n"));
}

TEST_F(Train, JsonIsNothingButJsonLines) {
  command_.json = true;
  EXPECT_EQ(run(actors::Outcome::kFinished), 0);
  std::istringstream out(capture_.out());
  std::string last;
  for (std::string line; std::getline(out, line);)
    last = nlohmann::json::parse(line)["event"].get<std::string>();
  EXPECT_EQ(last, "ended");
}

TEST_F(Train, AWrongJobExits2BeforeAnythingStarts) {
  job_error_ = "job.toml:3: [train] stps: unknown key; did you mean steps?";
  EXPECT_EQ(run(actors::Outcome::kFinished), 2);
  EXPECT_THAT(capture_.error(), HasSubstr("did you mean steps"));
  EXPECT_EQ(capture_.out(), "");
  EXPECT_FALSE(std::filesystem::exists(job_.run.folder));
}

TEST_F(Train, AJobThatDoesNotFitExits2AndSaysWhatWould) {
  job_.model = {4, 4, 64, 256, 256, 64};
  job_.train.sequence = 64;
  job_.train.shape = {64, 16, 4};
  for (auto& host : job_.cluster.hosts) host.devices[0].memory_gib = 0.012;
  EXPECT_EQ(run(actors::Outcome::kFinished), 2);
  EXPECT_THAT(capture_.error(), HasSubstr("memory is short: host "));
  EXPECT_THAT(capture_.error(), HasSubstr("too little"));
  EXPECT_THAT(capture_.error(), HasSubstr("what fits: "));
  EXPECT_THAT(capture_.error(), HasSubstr("--set train.micro_batch="));
  EXPECT_FALSE(std::filesystem::exists(job_.run.folder));
  for (auto& host : job_.cluster.hosts) host.devices[0].memory_gib = 0.003;
  EXPECT_EQ(run(actors::Outcome::kFinished), 2);
  EXPECT_THAT(capture_.error(), HasSubstr("add hosts or memory"));
}

TEST_F(Train, ASessionThatRefusesExitsByItsReason) {
  EXPECT_EQ(run([](actors::SessionOptions) -> Result<std::unique_ptr<actors::Session>> {
              return Error(ErrorCode::kInvalidArgument, "port 29400 is in use");
            }),
            2);
  EXPECT_EQ(run([](actors::SessionOptions) -> Result<std::unique_ptr<actors::Session>> {
              return Error(ErrorCode::kTimeout, "host b0 did not come");
            }),
            1);
  EXPECT_THAT(capture_.error(), HasSubstr("port 29400"));
}

TEST_F(Train, ARefusedSessionLeavesTheRunFolderAsItWas) {
  EXPECT_EQ(run(actors::Outcome::kFinished), 0);
  std::filesystem::create_directories(job_.run.folder / "checkpoints/step-00000002");
  write_file(job_.run.folder / "checkpoints/step-00000002/manifest.json", "{}");
  command_.overwrite = true;
  write_file(command_.job, "[run] # another\n");
  const auto refuse = [](actors::SessionOptions) -> Result<std::unique_ptr<actors::Session>> {
    return Error(ErrorCode::kInvalidArgument, "port 29400 is in use");
  };
  EXPECT_EQ(run(refuse), 2);
  EXPECT_TRUE(std::filesystem::exists(job_.run.folder / "checkpoints/step-00000002"));
  EXPECT_EQ(file("job.toml"), "[run]\n");
  EXPECT_NE(file("metrics.jsonl"), "");
}

TEST_F(Train, ARunFolderThatCannotBeWrittenExits2) {
  job_.run.folder = command_.job / "run";
  EXPECT_EQ(run(actors::Outcome::kFinished), 2);
  EXPECT_THAT(capture_.error(), HasSubstr("run.folder"));
}

TEST_F(Train, ASecondRunDoesNotReplaceTheFirst) {
  std::filesystem::create_directories(job_.run.folder / "checkpoints/step-00000002");
  write_file(job_.run.folder / "checkpoints/step-00000002/manifest.json", "{}");
  EXPECT_EQ(run(actors::Outcome::kFinished), 2);
  command_.resume = true;
  EXPECT_EQ(run(actors::Outcome::kFinished), 0);
}

TEST_F(Train, HostsThatAreOtherMachinesAreForLaunch) {
  job_.transport.nics = actors::NicSource::kInterfaces;
  EXPECT_EQ(run(actors::Outcome::kFinished), 2);
  EXPECT_THAT(capture_.error(), HasSubstr("train it with holmes launch"));
  EXPECT_FALSE(std::filesystem::exists(job_.run.folder));
}

TEST_F(Train, AgentsAreStartedThroughTheRunFolder) {
  const auto script = folder_.path() / "agent";
  write_file(script, "#!/bin/sh\nexec sleep 0.5\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  agent_ = script;
  Result<int> pid = 0;
  std::string processes;
  EXPECT_EQ(run([&](actors::SessionOptions options) -> Result<std::unique_ptr<actors::Session>> {
              HOLMES_TRY(options.before_start());
              pid = options.starter->start({HostId(1), "b0", "job", "127.0.0.1:1"});
              processes = file("processes.json");
              return Error(ErrorCode::kTimeout, "host b0 did not come");
            }),
            1);
  ASSERT_TRUE(pid) << pid.error().message();
  EXPECT_EQ(nlohmann::json::parse(processes),
            nlohmann::json::parse(processes_json({{"b0", *pid}})));
  EXPECT_EQ(nlohmann::json::parse(file("processes.json")), nlohmann::json::array())
      << "it is named as long as it runs";
  EXPECT_TRUE(std::filesystem::exists(job_.run.folder / "logs/b0.log"));
}

}  // namespace
}  // namespace holmes::launcher

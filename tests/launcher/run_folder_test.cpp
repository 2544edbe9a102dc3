// Goal: one run at a time in a folder, nothing of an earlier run is lost by accident, files are
// replaced whole, and what is wrong is said with the folder and the way out.
#include "run_folder.hpp"

#include <csignal>

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <nlohmann/json.hpp>

#include "temporary_folder.hpp"

namespace holmes::launcher {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// While it lives, no file of this process can be written to, as on a full disk.
class NoFileMayGrow {
 public:
  NoFileMayGrow() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  NoFileMayGrow(const NoFileMayGrow&) = delete;
  NoFileMayGrow& operator=(const NoFileMayGrow&) = delete;
  ~NoFileMayGrow() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(RunFolder, IsMadeWithItsLogs) {
  const TemporaryFolder temporary;
  const auto folder = RunFolder::open(temporary.path() / "a/b", RunStart::kFresh);
  ASSERT_TRUE(folder) << folder.error().message();
  write_file(temporary.path() / "job", "[run]\n");
  ASSERT_TRUE(folder->begin(temporary.path() / "job"));
  EXPECT_TRUE(fs::is_directory(folder->path() / "logs"));
  EXPECT_EQ(read_file(folder->path() / "job.toml"), "[run]\n");
  EXPECT_EQ(folder->log_file("b0"), folder->path() / "logs/b0.log");
}

TEST(RunFolder, RefusesASecondRunWhileTheFirstLasts) {
  const TemporaryFolder temporary;
  {
    const auto first = RunFolder::open(temporary.path(), RunStart::kFresh);
    ASSERT_TRUE(first);
    const auto second = RunFolder::open(temporary.path(), RunStart::kOverwrite);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(second.error().message(), HasSubstr("another holmes train"));
    EXPECT_THAT(second.error().message(), HasSubstr(temporary.path().string()));
  }
  EXPECT_TRUE(RunFolder::open(temporary.path(), RunStart::kFresh));
}

TEST(RunFolder, KeepsCheckpointsUnlessToldOtherwise) {
  const TemporaryFolder temporary;
  const fs::path checkpoint = temporary.path() / "checkpoints/step-00000010";
  fs::create_directories(checkpoint);
  write_file(checkpoint / "manifest.json", "{}");
  const auto fresh = RunFolder::open(temporary.path(), RunStart::kFresh);
  ASSERT_FALSE(fresh);
  EXPECT_THAT(fresh.error().message(), HasSubstr("--resume"));
  EXPECT_TRUE(RunFolder::open(temporary.path(), RunStart::kResume));
  EXPECT_TRUE(fs::exists(checkpoint));
  const auto folder = RunFolder::open(temporary.path(), RunStart::kOverwrite);
  ASSERT_TRUE(folder);
  EXPECT_TRUE(fs::exists(checkpoint)) << "the job may still be refused";
  write_file(temporary.path() / "job", "[run]\n");
  ASSERT_TRUE(folder->begin(temporary.path() / "job"));
  EXPECT_FALSE(fs::exists(checkpoint));
}

TEST(RunFolder, OverwritesNothingThatHolmesHasNotMade) {
  for (const char* mine :
       {"checkpoints/other/file", "checkpoints/step-00000007/file", "checkpoints/notes.txt"}) {
    const TemporaryFolder temporary;
    const fs::path checkpoint = temporary.path() / "checkpoints/step-00000010";
    fs::create_directories(checkpoint);
    write_file(checkpoint / "manifest.json", "{}");
    fs::create_directories(temporary.path() / "checkpoints/step-00000011.tmp");
    EXPECT_TRUE(RunFolder::open(temporary.path(), RunStart::kOverwrite));
    fs::create_directories((temporary.path() / mine).parent_path());
    write_file(temporary.path() / mine, "keep");
    const auto folder = RunFolder::open(temporary.path(), RunStart::kOverwrite);
    ASSERT_FALSE(folder) << mine;
    EXPECT_THAT(folder.error().message(), HasSubstr("move it away"));
    EXPECT_TRUE(fs::exists(temporary.path() / mine));
    EXPECT_TRUE(fs::exists(checkpoint));
  }
}

TEST(RunFolder, WhatAnInterruptedSaveLeftIsNoCheckpoint) {
  const TemporaryFolder temporary;
  fs::create_directories(temporary.path() / "checkpoints/step-00000010.tmp");
  const auto resumed = RunFolder::open(temporary.path(), RunStart::kResume);
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(resumed.error().message(), HasSubstr("without --resume"));
  EXPECT_TRUE(RunFolder::open(temporary.path(), RunStart::kFresh));
}

TEST(RunFolder, IsNotMadeToResumeNothing) {
  const TemporaryFolder temporary;
  EXPECT_FALSE(RunFolder::open(temporary.path() / "misspelt", RunStart::kResume));
  EXPECT_FALSE(fs::exists(temporary.path() / "misspelt"));
}

TEST(RunFolder, RefusesFilesOfAnotherKind) {
  const TemporaryFolder temporary;
  for (const char* name : {"checkpoints", "logs"}) {
    write_file(temporary.path() / name, "");
    const auto folder = RunFolder::open(temporary.path(), RunStart::kFresh);
    ASSERT_FALSE(folder) << name;
    EXPECT_THAT(folder.error().message(), HasSubstr(name));
    fs::remove(temporary.path() / name);
  }
  fs::create_symlink("/dev/full", temporary.path() / "metrics.jsonl");
  EXPECT_FALSE(RunFolder::open(temporary.path(), RunStart::kFresh));
}

TEST(RunFolder, SaysWhyItCannotBeMade) {
  const TemporaryFolder temporary;
  write_file(temporary.path() / "file", "");
  const auto folder = RunFolder::open(temporary.path() / "file/run", RunStart::kFresh);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(folder.error().message(), HasSubstr("run.folder"));
  EXPECT_THAT(folder.error().message(), HasSubstr("file/run"));
}

TEST(RunFolder, ReplacesFilesWhole) {
  const TemporaryFolder temporary;
  const auto folder = RunFolder::open(temporary.path(), RunStart::kFresh);
  ASSERT_TRUE(folder);
  ASSERT_TRUE(folder->write("plan.json", "a long first text"));
  ASSERT_TRUE(folder->write("plan.json", "second"));
  EXPECT_EQ(read_file(folder->path() / "plan.json"), "second");
  EXPECT_FALSE(fs::exists(folder->path() / "plan.json.new"));
}

TEST(RunFolder, AFailedWriteLeavesTheOldFileAndNothingElse) {
  const TemporaryFolder temporary;
  const auto folder = RunFolder::open(temporary.path(), RunStart::kFresh);
  ASSERT_TRUE(folder);
  ASSERT_TRUE(folder->write("plan.json", "old"));
  const auto status = [&] {
    const NoFileMayGrow limit;
    return folder->write("plan.json", "new");
  }();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr("cannot write"));
  EXPECT_EQ(read_file(folder->path() / "plan.json"), "old");
  EXPECT_FALSE(fs::exists(folder->path() / "plan.json.new"));
}

TEST(RunFolder, ProcessesNameHostAndPid) {
  const auto json = nlohmann::json::parse(processes_json({{"a0", 12}, {"b0", 34}}));
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[1]["host"], "b0");
  EXPECT_EQ(json[1]["pid"], 34);
}

}  // namespace
}  // namespace holmes::launcher

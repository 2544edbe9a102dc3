// Goal: agents are direct children with their own process group and log file, their end is heard
// once, and none outlives its parent, however that dies. Method: /bin/sh stands for the agent.
#include "local_processes.hpp"

#include <csignal>
#include <fstream>
#include <future>

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "signals.hpp"
#include "spawn.hpp"
#include "temporary_folder.hpp"

namespace holmes::launcher {
namespace {

constexpr auto kDeadline = std::chrono::seconds(20);

class Processes : public testing::Test {
 protected:
  LocalProcesses::Options shell(const std::string& script) {
    LocalProcesses::Options options;
    options.executable = "/bin/sh";
    options.arguments = [script](const actors::AgentInvitation& invitation) {
      return std::vector<std::string>{"sh", "-c", script, "sh", invitation.job};
    };
    options.log_file = [this](HostId host) { return log_file(host); };
    options.grace = std::chrono::milliseconds(100);
    return options;
  }
  std::filesystem::path log_file(HostId host) const {
    return folder_.path() / (std::to_string(host.value()) + ".log");
  }

  TemporaryFolder folder_;
};

/// Whether the process is gone, or dead and only not yet reaped by init, within the deadline.
bool ends(int pid) {
  const Descriptor descriptor = watch_process(pid);
  if (!descriptor) return true;
  pollfd watched{descriptor.get(), POLLIN, 0};
  return ::poll(&watched, 1, std::chrono::milliseconds(kDeadline).count()) == 1;
}

TEST_F(Processes, ReadWhatIsForThemAlone) {
  auto options = shell("cat; echo \"and $1\"");
  options.input = [](const actors::AgentInvitation& invitation) {
    return "for " + invitation.host_name + "\n";
  };
  LocalProcesses processes(std::move(options));
  ASSERT_TRUE(processes.start({HostId(2), "h2", "job", ""}));
  std::promise<int> ended;
  processes.on_exit([&](HostId, int status) { ended.set_value(status); });
  auto end = ended.get_future();
  ASSERT_EQ(end.wait_for(kDeadline), std::future_status::ready);
  std::ifstream log(log_file(HostId(2)));
  const std::string text{std::istreambuf_iterator<char>(log), {}};
  EXPECT_EQ(text, "for h2\nand job\n");
}

TEST_F(Processes, AreNotStartedWithoutWhatTheyNeed) {
  auto options = shell("true");
  options.input = [](const actors::AgentInvitation&) -> Result<std::string> {
    return Error(ErrorCode::kOutOfResources, "no key");
  };
  LocalProcesses processes(std::move(options));
  const auto started = processes.start({HostId(2), "h2", "job", ""});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message(), "no key");
}

TEST_F(Processes, WriteTheirLogAndTellTheirEnd) {
  LocalProcesses processes(shell("echo out $1; echo err >&2; exit 7"));
  const auto pid = processes.start({HostId(2), "h2", "job-name", ""});
  ASSERT_TRUE(pid) << pid.error().message();
  std::promise<std::pair<HostId, int>> ended;
  processes.on_exit([&](HostId host, int status) { ended.set_value({host, status}); });
  auto end = ended.get_future();
  ASSERT_EQ(end.wait_for(kDeadline), std::future_status::ready);
  const auto [host, status] = end.get();
  EXPECT_EQ(host, HostId(2));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read_file(log_file(HostId(2))), "out job-name\nerr\n");
}

TEST_F(Processes, AreDirectChildrenInTheirOwnGroup) {
  LocalProcesses processes(shell("echo $PPID; exec sleep 60"));
  const auto pid = processes.start({HostId(0), "h0", "", ""});
  ASSERT_TRUE(pid);
  EXPECT_EQ(::getpgid(*pid), *pid);
  EXPECT_NE(::getpgid(*pid), ::getpgrp());
}

TEST_F(Processes, AreNamedAsLongAsTheyRun) {
  auto options = shell("exec sleep 60");
  std::vector<std::pair<HostId, int>> seen;
  options.on_change = [&seen](const auto& running) { seen = running; };
  {
    LocalProcesses processes(std::move(options));
    const auto first = processes.start({HostId(0), "h0", "", ""});
    const auto second = processes.start({HostId(1), "h1", "", ""});
    ASSERT_TRUE(first && second);
    EXPECT_THAT(seen, testing::ElementsAre(testing::Pair(HostId(0), *first),
                                           testing::Pair(HostId(1), *second)));
    std::promise<HostId> ended;
    processes.on_exit([&ended](HostId host, int) { ended.set_value(host); });
    ::kill(*first, SIGKILL);
    auto end = ended.get_future();
    ASSERT_EQ(end.wait_for(kDeadline), std::future_status::ready);
    processes.on_exit({});
    EXPECT_EQ(end.get(), HostId(0));
    EXPECT_THAT(seen, testing::ElementsAre(testing::Pair(HostId(1), *second)));
  }
  EXPECT_THAT(seen, testing::IsEmpty());
}

TEST_F(Processes, AreKilledWhenTheStarterGoes) {
  int pid = 0;
  {
    LocalProcesses processes(shell("exec sleep 60"));
    pid = processes.start({HostId(0), "h0", "", ""}).value_or(0);
    ASSERT_NE(pid, 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);  // dead and reaped
}

TEST_F(Processes, SayWhyTheyCannotStart) {
  auto options = shell("");
  options.executable = "/no/such/program";
  LocalProcesses processes(std::move(options));
  const auto pid = processes.start({HostId(0), "h0", "", ""});
  ASSERT_FALSE(pid);
  EXPECT_THAT(pid.error().message(), testing::HasSubstr("/no/such/program"));
}

TEST_F(Processes, InheritNoDescriptorAndNoBlockedSignal) {
  const Descriptor kept(::dup(0));  // as libraries open them: without close-on-exec
  ASSERT_TRUE(kept);
  LocalProcesses processes(shell("test -e /proc/self/fd/" + std::to_string(kept.get()) +
                                 " && echo inherited; grep SigBlk /proc/self/status; echo end"));
  std::promise<void> ended;
  ASSERT_TRUE(processes.start({HostId(0), "h0", "", ""}));
  processes.on_exit([&](HostId, int) { ended.set_value(); });
  ASSERT_EQ(ended.get_future().wait_for(kDeadline), std::future_status::ready);
  EXPECT_EQ(read_file(log_file(HostId(0))), "SigBlk:\t0000000000000000\nend\n");
}

TEST_F(Processes, DieWithAParentThatIsKilled) {
  const auto pid_file = folder_.path() / "pid";
  const pid_t parent = ::fork();
  if (parent == 0) {
    LocalProcesses processes(shell("exec sleep 60"));
    const auto pid = processes.start({HostId(0), "h0", "", ""});
    write_file(pid_file, std::to_string(pid.value_or(0)));
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_GT(parent, 0);
  ASSERT_EQ(::waitpid(parent, nullptr, 0), parent);
  const int pid = std::stoi(read_file(pid_file));
  ASSERT_GT(pid, 0);
  EXPECT_TRUE(ends(pid));
}

TEST(SignalWatcher, CountsStopSignals) {
  // In a child, so that the blocked signals and the ones sent stay there.
  const pid_t child = ::fork();
  if (child == 0) {
    block_stop_signals();
    std::promise<void> first;
    std::promise<int> second;
    const SignalWatcher watcher([&](int count) {
      if (count == 1) first.set_value();
      if (count == 2) second.set_value(count);
    });
    ::kill(::getpid(), SIGINT);
    if (first.get_future().wait_for(kDeadline) != std::future_status::ready) ::_exit(1);
    ::kill(::getpid(), SIGTERM);
    auto end = second.get_future();
    ::_exit(end.wait_for(kDeadline) == std::future_status::ready && end.get() == 2 ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace holmes::launcher

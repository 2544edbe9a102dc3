// Goal: agents in this process report how they end to the session that they serve, and to nobody
// once it is gone. Method: agents without a coordinator, a session that only listens, and a job
// whose agents come from elsewhere.
#include "holmes/actors/local_agents.hpp"

#include <unistd.h>

#include <future>

#include <gmock/gmock.h>

#include "session/small_job.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::actors::testing {
namespace {

using ::testing::HasSubstr;

struct Ended {
  HostId host;
  int wait_status = 0;
  std::string last_words;
};

/// Hears of one agent that ends.
class Listener final : public Session {
 public:
  void request_stop() override {}
  void agent_exited(HostId host, int wait_status, const std::string& last_words) override {
    ended_.set_value({host, wait_status, last_words});
  }
  Health health() const override { return {}; }
  Outcome wait() override { return Outcome::kFailed; }

  Ended ended() {
    auto ended = ended_.get_future();
    const auto ready = ended.wait_for(std::chrono::seconds(60));
    return ready == std::future_status::ready ? ended.get() : Ended{};
  }

 private:
  std::promise<Ended> ended_;
};

/// Nobody listens at the discard port of an address that is ours alone.
AgentInvitation nobody() {
  return {HostId(3), "b1", "job", "127.9.9.9:9"};
}

TEST(LocalAgents, TellTheirSessionHowTheyEnded) {
  Listener listener;
  LocalAgents agents;
  agents.report_to(&listener);
  const auto process = agents.start(nobody());
  ASSERT_TRUE(process);
  EXPECT_EQ(*process, ::getpid());
  const Ended ended = listener.ended();
  EXPECT_EQ(ended.host, HostId(3));
  EXPECT_EQ(ended.wait_status, 1 << 8);
  EXPECT_THAT(ended.last_words, HasSubstr("host b1 cannot join the job at 127.9.9.9:9"));
}

TEST(LocalAgents, TellNobodyOnceTheSessionIsGone) {
  LocalAgents agents;
  {
    Listener listener;
    agents.report_to(&listener);
    agents.report_to(nullptr);
  }
  for (int again = 0; again < 20; ++again) ASSERT_TRUE(agents.start(nobody()));
}

TEST(LocalAgents, WriteToTheLogThatTheyAreGiven) {
  MemoryLogSink sink;
  Listener listener;
  {
    LocalAgents agents(Logger(sink, "agent"));
    agents.report_to(&listener);
    ASSERT_TRUE(agents.start(nobody()));
    listener.ended();
  }
  ASSERT_FALSE(sink.lines().empty());
  EXPECT_EQ(sink.lines().back().level, LogLevel::kError);
}

TEST(LocalAgents, AreStartedByTheSessionOnceForEachHost) {
  const holmes::testing::TemporaryFolder folder;
  Local local(small_job(folder.path(), "run", 2));
  EXPECT_EQ(local.session->wait(), Outcome::kFinished);
  EXPECT_EQ(local.record.plans().size(), 1U);
  local.agents.request_leave(HostId(0));  // of what has ended: nothing happens
  local.agents.request_leave(HostId(9));
}

}  // namespace
}  // namespace holmes::actors::testing

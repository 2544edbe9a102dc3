// Trains two small models in the background of one process, prints their losses as they come, and
// stops both when the first has done all its steps.
//
// Usage: embed TEXT FOLDER     TEXT: what to learn; FOLDER: where the runs are kept
#include <cstdio>
#include <filesystem>
#include <string>

#include "holmes/actors/job_config.hpp"
#include "holmes/actors/local_agents.hpp"
#include "holmes/actors/session.hpp"

namespace {

using namespace holmes;

/// Two hosts, one stage of the model on each. They are threads of this process.
partition::Cluster two_hosts() {
  partition::Cluster cluster;
  cluster.fabrics = {{"ethernet", partition::NicKind::kEthernet, 1, 100}};
  for (const char* name : {"a0", "b0"}) {
    partition::Host host;
    host.name = name;
    host.devices.resize(1);
    host.nics = {{"eth0", FabricId(0), 1, 100}};
    cluster.hosts.push_back(host);
  }
  return cluster;
}

actors::JobConfig small_job(const std::string& text, const std::filesystem::path& folder,
                            float peak) {
  actors::JobConfig job;
  job.run.folder = folder;
  job.model.layers = 2;
  job.model.heads = 2;
  job.model.channels = 32;
  job.model.sequence = 32;
  job.data.text = text;
  job.train.steps = 30;
  job.train.shape = {16, 4, 0};
  job.train.sequence = 32;
  job.train.learning_rate = {peak, peak / 10, 5, 0};
  job.parallel.pipeline = 2;
  job.cluster = two_hosts();
  return job;
}

/// One training: its agents, its session, and the name that its lines carry.
class Training {
 public:
  explicit Training(std::string name) : name_(std::move(name)) {}

  Status start(const actors::JobConfig& job) {
    actors::SessionOptions options;
    options.job = job;
    options.starter = &agents_;
    options.on_event = [this](const actors::Event& event) { print(event); };
    HOLMES_TRY_ASSIGN(session_, actors::start_session(std::move(options)));
    return {};
  }
  void request_stop() { session_->request_stop(); }
  actors::Outcome wait() { return session_->wait(); }

 private:
  /// On the session's thread; a program with a window would post to its own loop here.
  void print(const actors::Event& event) const {
    if (const auto* step = std::get_if<actors::StepFinished>(&event))
      std::printf("%s step %2u loss %.4f\n", name_.c_str(),
                  static_cast<unsigned>(step->step.value() + 1), step->loss);
    if (const auto* saved = std::get_if<actors::CheckpointSaved>(&event))
      std::printf("%s saved %s\n", name_.c_str(), saved->folder.c_str());
    if (const auto* incident = std::get_if<actors::Incident>(&event))
      std::printf("%s %s\n", name_.c_str(), to_string(*incident).c_str());
  }

  const std::string name_;
  actors::LocalAgents agents_;  // outlives the session
  std::unique_ptr<actors::Session> session_;
};

int run(const std::string& text, const std::filesystem::path& folder) {
  Training fast("fast");
  Training slow("slow");
  auto long_job = small_job(text, folder / "slow", 1e-3F);
  long_job.train.steps = 1'000'000;
  for (const auto& started :
       {fast.start(small_job(text, folder / "fast", 1e-2F)), slow.start(long_job)}) {
    if (started) continue;
    std::fprintf(stderr, "embed: %s\n", started.error().message().c_str());
    return 2;
  }
  const auto first = fast.wait();  // here a program would do its other work
  slow.request_stop();
  const auto second = slow.wait();
  std::printf("fast %s, slow %s\n", std::string(to_string(first)).c_str(),
              std::string(to_string(second)).c_str());
  return first == actors::Outcome::kFinished && second == actors::Outcome::kInterrupted ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: embed TEXT FOLDER\n");
    return 2;
  }
  return run(arguments[1], arguments[2]);
}

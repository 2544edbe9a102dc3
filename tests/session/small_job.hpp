#pragma once

// A job of two clusters of one host each that takes well under a second, on text of its own; and a
// record of what its session tells.

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "holmes/actors/local_agents.hpp"
#include "holmes/actors/session.hpp"

namespace holmes::actors::testing {

inline partition::Host one_device(const std::string& name, const std::string& cluster) {
  partition::Host host;
  host.name = name;
  host.cluster = cluster;
  host.devices.emplace_back();
  host.nics.push_back({"eth0", FabricId(0), 10, 10});
  return host;
}

/// `folder` holds the text and the run folder `name`.
inline JobConfig small_job(const std::filesystem::path& folder, const std::string& name,
                           std::uint64_t steps) {
  JobConfig job;
  job.run.folder = folder / name;
  job.run.name = name;
  job.model = {2, 2, 16, 16, 256, 64};
  job.data.text = folder / "text.txt";
  job.data.validation_batches = 2;
  if (!std::filesystem::exists(job.data.text)) {
    std::ofstream text(job.data.text);
    for (int i = 0; i < 1000; ++i) text << "line " << i * i << " of a text about " << i << "\n";
  }
  job.train.steps = steps;
  job.train.shape = {8, 2, 0};
  job.train.sequence = 16;
  job.train.learning_rate = {1e-2F, 1e-3F, 2, 0};
  job.parallel.pipeline = 2;
  job.cluster.fabrics = {{"ethernet", partition::NicKind::kEthernet, 10, 10}};
  job.cluster.hosts = {one_device("a0", "a"), one_device("b0", "b")};
  return job;
}

/// Keeps what a session tells; the test waits for steps.
class Record {
 public:
  void add(const Event& event) {
    const std::lock_guard lock(mutex_);
    if (const auto* step = std::get_if<StepFinished>(&event)) losses_.push_back(step->loss);
    if (const auto* saved = std::get_if<CheckpointSaved>(&event)) saved_.push_back(saved->folder);
    if (const auto* plan = std::get_if<PlanInForce>(&event)) plans_.push_back(*plan);
    changed_.notify_all();
  }
  bool wait_for_steps(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60),
                             [&] { return losses_.size() >= count; });
  }
  std::vector<double> losses() const {
    const std::lock_guard lock(mutex_);
    return losses_;
  }
  std::vector<std::filesystem::path> saved() const {
    const std::lock_guard lock(mutex_);
    return saved_;
  }
  std::vector<PlanInForce> plans() const {
    const std::lock_guard lock(mutex_);
    return plans_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<double> losses_;
  std::vector<std::filesystem::path> saved_;
  std::vector<PlanInForce> plans_;
};

/// A session whose agents are threads of this process.
struct Local {
  explicit Local(const JobConfig& job, bool resume = false) {
    SessionOptions options;
    options.job = job;
    options.resume = resume;
    options.starter = &agents;
    options.on_event = [this](const Event& event) { record.add(event); };
    session = start_session(std::move(options)).value();
  }

  Record record;
  LocalAgents agents;
  std::unique_ptr<Session> session;
};

}  // namespace holmes::actors::testing

// Plans a job that is built from values, prints the plan, and shows that a session refuses a job
// without text before anything starts. Exit code 0: both went as they must.
#include <cstdio>
#include <string>

#include "holmes/actors/job_config.hpp"
#include "holmes/actors/session.hpp"

namespace {

using namespace holmes;

partition::Host host(const std::string& name, const std::string& cluster, FabricId fast) {
  partition::Host host;
  host.name = name;
  host.cluster = cluster;
  host.devices.emplace_back();
  host.nics.push_back({"fast0", fast, 4, 20});
  host.nics.push_back({"eth0", FabricId(0), 1, 100});
  return host;
}

/// Two clusters of two hosts; only Ethernet joins them.
partition::Cluster two_clusters() {
  partition::Cluster cluster;
  cluster.fabrics = {{"ethernet", partition::NicKind::kEthernet, 1, 100},
                     {"fast-a", partition::NicKind::kInfiniBand, 4, 20},
                     {"fast-b", partition::NicKind::kRoce, 4, 20}};
  cluster.hosts = {host("a0", "a", FabricId(1)), host("a1", "a", FabricId(1)),
                   host("b0", "b", FabricId(2)), host("b1", "b", FabricId(2))};
  return cluster;
}

actors::JobConfig job_from_values() {
  actors::JobConfig job;
  job.model.layers = 4;
  job.model.heads = 4;
  job.model.channels = 64;
  job.train.shape = {16, 2, 4};
  job.train.sequence = job.model.sequence;
  job.parallel.pipeline = 2;
  job.cluster = two_clusters();
  return job;
}

bool is_refused(const actors::JobConfig& job) {
  actors::SessionOptions options;
  options.job = job;
  options.on_event = [](const actors::Event&) {};
  const auto session = actors::start_session(std::move(options));
  if (session) return false;
  std::printf("refused: %s\n", session.error().message().c_str());
  return session.error().code() == ErrorCode::kInvalidArgument;
}

}  // namespace

int main() {
  const auto job = job_from_values();
  const auto plan = actors::plan_of(job);
  if (!plan) {
    std::printf("no plan: %s\n", plan.error().message().c_str());
    return 1;
  }
  std::printf("%s", partition::explain(*plan, job.cluster).c_str());
  return is_refused(job) ? 0 : 1;
}

#pragma once

// What a host gives its agent. Production (sockets, threads, files) and simulation (virtual time,
// one process) differ here and nowhere else. It outlives the agent and all its actors.

#include <memory>

#include "batches.hpp"
#include "holmes/actors/job_config.hpp"
#include "holmes/base/compute_queue.hpp"
#include "holmes/model/gpt.hpp"
#include "holmes/transport/connection.hpp"
#include "stage.hpp"
#include "state_store.hpp"

namespace holmes::actors {

/// A NIC, and where it is to listen.
struct OpenNic {
  std::unique_ptr<transport::Context> context;
  transport::Endpoint at;  ///< Empty: no plan uses it.
};

class HostEnvironment {
 public:
  virtual ~HostEnvironment() = default;

  /// For the HostAgent; the contexts below run on it too.
  virtual Executor& executor() = 0;
  /// For one more Stage or Replica. In production the same thread, so that no message between
  /// actors of a host changes threads; in simulation one whose order against the others is drawn.
  virtual Executor& member_executor() = 0;
  /// The way to the coordinator; no NIC of the plan.
  virtual transport::Context& control_context() = 0;
  /// A NIC of the job's cluster. An error says which NIC of which host is not there.
  virtual Result<OpenNic> open_nic(const JobConfig& job, HostId host, NicId nic) = 0;
  virtual std::unique_ptr<ComputeQueue> open_device(const partition::Device& device) = 0;
  virtual std::unique_ptr<ComputeQueue> open_disk() = 0;
  /// `gpu`: its number among the host's GPUs. An error says what is missing.
  virtual Result<std::unique_ptr<model::Engine>> make_engine(const JobConfig& job,
                                                             const partition::Device& device,
                                                             std::uint32_t gpu) = 0;
  virtual Result<std::unique_ptr<BatchSource>> open_batches(const JobConfig& job) = 0;
  virtual Result<std::unique_ptr<StateStore>> open_store(const JobConfig& job) = 0;
  /// Told of every pass of this host's stages; may be empty.
  virtual PassObserver pass_observer() = 0;
};

}  // namespace holmes::actors

#pragma once

// A discrete-event simulator of training steps: it executes the plan and the schedules that the
// runtime executes, with the cost model's times for passes and queues for NICs, trunks and links.
// Deterministic, single-threaded, no clocks.
//
// A pass starts when its device is free and its input is there. Every transfer passes the sending
// host's NICs on the edge's fabric, the receiving host's, and whatever trunks and links lie
// between; each of them serves what it is given first come, first served, so that transfers which
// share one wait for each other. Collectives take each bucket (one layer) when its gradients are
// ready at all replicas. Then one vote, the updates, and the gathers that the next forwards wait
// for.
//
// What it leaves out: congestion control, switches inside a fabric, and the time that operating
// systems and actors take.

#include <cstdint>
#include <string>
#include <vector>

#include "holmes/partition/cost.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::partition {

/// From `at_s` on (of simulated time) something runs at `factor` of its speed.
struct SpeedChange {
  enum class What : std::uint8_t { kFabric, kLink, kHost };
  What what = What::kFabric;
  std::size_t index = 0;  ///< Into the cluster's fabrics, links or hosts.
  double at_s = 0;
  double factor = 1;  ///< Above 0.
};

struct SimulateOptions {
  CostOptions cost;
  std::uint32_t steps = 2;  ///< The first one fills the pipeline from nothing.
  std::vector<SpeedChange> changes;
  bool record = false;  ///< Fill events and transfers: for traces and pictures.
};

/// Where the time of one replica went in the last step; sum is the step's time.
struct DeviceTime {
  StageIndex stage;
  DeviceId device;  ///< The first of its share.
  double forward_s = 0;
  double backward_s = 0;
  double optimizer_s = 0;
  double transfer_s = 0;    ///< Waited for a payload on its way, or blocked by sending one.
  double bubble_s = 0;      ///< Waited for another stage to compute.
  double collective_s = 0;  ///< Waited for gradients, the vote and gathered parameters.
};

struct ChannelUse {
  enum class Kind : std::uint8_t { kSend, kReceive, kTrunk, kLink };
  Kind kind = Kind::kSend;
  HostId host;           ///< kSend, kReceive.
  FabricId fabric;       ///< All but kLink.
  std::size_t link = 0;  ///< kLink.
  bool forth = true;     ///< kTrunk, kLink: in which of the two directions.
  double bytes = 0;      ///< Of one step, the last.
  double busy_s = 0;     ///< The time that they take it, in that step.
};

/// One payload on its way through one channel; `channel.bytes` are its own.
struct ChannelEvent {
  ChannelUse channel;
  double start_s = 0;
  double end_s = 0;
};

struct SimulatedEvent {
  enum class Kind : std::uint8_t {
    kForward,
    kBackward,
    kBackwardInput,
    kBackwardWeight,
    kUpdate,
    kActivation,  ///< On its way to the next stage.
    kGradient,    ///< On its way to the stage before.
    kReduceScatter,
    kAllGather,
    kTied,
    kVote,
  };
  Kind kind = Kind::kForward;
  std::uint32_t step = 0;
  StageIndex stage;
  std::uint32_t replica = 0;  ///< Position in the stage's shares; groups: 0.
  std::uint32_t item = 0;     ///< Micro-batch, or bucket.
  std::uint32_t chunk = 0;
  double start_s = 0;
  double end_s = 0;
};

struct Simulation {
  double step_s = 0;  ///< From commit to commit; of a single step, from nothing to its end.
  double samples_per_s = 0;
  double tflops_per_device = 0;         ///< By the paper's formula: 96-style FLOPs.
  double model_tflops_per_device = 0;   ///< By those that are needed.
  std::vector<double> commits_s;        ///< When each step was committed.
  std::vector<DeviceTime> devices;      ///< By stage, then leaf order.
  std::vector<ChannelUse> channels;     ///< Those that carried something.
  std::vector<SimulatedEvent> events;   ///< In the order in which they were decided.
  std::vector<ChannelEvent> transfers;  ///< The same, with SimulateOptions::record.
};

/// The plan must be valid for the cluster and not empty. kInvalidArgument: absurd options.
Result<Simulation> simulate(const Plan& plan, const Cluster& cluster, const ModelCost& model,
                            const SimulateOptions& options);

}  // namespace holmes::partition

#pragma once

// One training job, as its TOML file and --set overrides say. config_keys.hpp lists every key with
// its type, default and help; this is the value they fill.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/result.hpp"
#include "holmes/model/gpt.hpp"
#include "holmes/model/optimizer.hpp"
#include "holmes/partition/cluster.hpp"
#include "holmes/partition/cost.hpp"
#include "holmes/partition/nccl.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::actors {

/// The kind of a device that is a GPU of NVIDIA's and can be trained on; see docs/gpu.md.
constexpr std::string_view kCudaDevice = "cuda";

/// What a job does when a host is lost.
enum class OnLoss : std::uint8_t { kContinue, kStop };
/// What the NICs of the cluster file are.
enum class NicSource : std::uint8_t {
  kLoopback,    ///< Emulated on this machine: NIC n of host h is 127.h.n.1.
  kInterfaces,  ///< The hosts' own, by address or by name.
};
/// What keeps strangers out of a job's connections.
enum class Security : std::uint8_t {
  kAuto,  ///< TLS where they leave this machine, nothing where they stay on it.
  kTls,   ///< Mutual TLS: see SessionOptions::credentials.
  kNone,  ///< Nothing: whoever reaches the ports may join, and read what goes by.
};

struct JobConfig {
  struct Run {
    std::filesystem::path folder = "runs/default";
    std::string name = "holmes";
    std::uint32_t keep = 3;              ///< Checkpoints kept.
    std::uint64_t checkpoint_every = 0;  ///< Steps between checkpoints; 0: only at the end.
  } run;
  model::GptConfig model;
  struct Data {
    std::filesystem::path text;
    std::filesystem::path tokens;           ///< PREFIX of an indexed data set, instead of text.
    std::string tokenizer = "bytes";        ///< Or "none", or an absolute path.
    double validation = 0.05;               ///< Share of the text kept for validation.
    std::uint64_t validate_every = 0;       ///< Steps between validations; 0: only at the end.
    std::uint32_t validation_batches = 16;  ///< Micro-batches of one validation.
  } data;
  struct Train {
    std::uint64_t steps = 100;
    partition::JobShape shape;
    std::uint32_t sequence = 256;
    std::uint64_t seed = 1;
    model::AdamW optimizer;
    model::LearningRate learning_rate;
    float clip_norm = 1.0F;
    bool tf32 = false;  ///< Of GPUs' products of matrices.
  } train;
  partition::PlanOptions parallel;
  partition::CostOptions cost;  ///< Of predictions; it changes nothing that runs.
  partition::Cluster
      cluster;  ///< From [cluster] file; one host with one device where none is named.
  struct Transport {
    NicSource nics = NicSource::kLoopback;
    bool emulate = true;  ///< Loopback: hold NICs to the rates and latencies of the cluster file.
    std::string listen = "127.0.0.1";  ///< Address of the coordinator.
    std::uint32_t port = 0;            ///< Of the coordinator; 0: any free one.
    std::uint32_t nic_port = 0;        ///< NIC n of a host listens at nic_port + n; 0: any.
    Security security = Security::kAuto;
    bool plain_on_trusted = false;  ///< NICs on fabrics that are marked trusted do without.
  } transport;
  struct Resilience {
    std::uint32_t heartbeat_ms = 200;
    std::uint32_t timeout_ms = 3000;  ///< A host that is silent for so long is lost.
    /// Going on takes a second copy of the optimizer's state in memory.
    OnLoss on_loss = OnLoss::kContinue;
    std::uint32_t restarts = 0;  ///< Of each host's agent, after it has failed.
    /// Until a NIC that was lost is tried again; each time that it is lost anew doubles it.
    std::uint32_t nic_retry_ms = 10000;
    bool adapt = false;       ///< Take another plan when measured speeds call for it.
    double adapt_gain = 0.05; /**< Of a step's time, that it must promise. */
  } resilience;
};

/// A host that is to take part.
struct HostChoice {
  std::string name;         ///< Of the cluster file, or the host's address there.
  std::uint32_t slots = 0;  ///< The first devices of it that are used; 0: all.
};

struct ConfigSource {
  std::filesystem::path file;
  std::vector<std::string> overrides;  ///< "train.steps=100"
  partition::NcclOverrides nccl = {};  ///< The user's variables that keep NICs out.
  bool needs_text = true;              ///< False: to look at the job, not to train it.
  std::vector<HostChoice> hosts = {};  ///< In this order; empty: all of the cluster file.
};

/// Reads and checks a job file and the cluster file it names (relative to the job file's folder).
/// kInvalidArgument: "file:line: [section] key: what is wrong; what to do", with the nearest valid
/// name for an unknown key.
Result<JobConfig> load_job(const ConfigSource& source);

/// A job that was built from values, with the defaults that depend on others filled in (no hosts:
/// one host of one device; decay_steps 0: steps; reduction_leaves 0), held to everything that a job
/// file is held to. start_session() does this too. kInvalidArgument: "job: [train] steps: 0 is out
/// of range; ...".
Result<JobConfig> checked_job(const JobConfig& job);

/// Reads a cluster file alone.
Result<partition::Cluster> load_cluster(const std::filesystem::path& file);

/// The same from text, for fuzzing and tests; `name` stands for the file in errors.
Result<partition::Cluster> parse_cluster(std::string_view text, const std::string& name);
Result<JobConfig> parse_job(std::string_view text, const std::string& name,
                            const std::vector<std::string>& overrides,
                            const std::filesystem::path& folder);

/// The same job as the text of a job file, every key with its value in force and paths absolute;
/// without [cluster].
std::string to_toml(const JobConfig& job);
/// The cluster as the text of a cluster file; parse_cluster() of it gives the cluster back.
std::string to_toml(const partition::Cluster& cluster);
/// A job from both texts as to_toml() wrote them, checked again.
Result<JobConfig> parse_resolved_job(std::string_view job, std::string_view cluster);

/// Whether the job's connections are under TLS; all but those of NICs for which it is false.
bool uses_tls(const JobConfig& job);
bool uses_tls(const JobConfig& job, const partition::Nic& nic);

/// What the planner needs to know of the job's model.
partition::ModelCost model_cost(const JobConfig& job);
/// The plan that the job asks for; strategy auto searches with the job's own [cost].
Result<partition::Plan> plan_of(const JobConfig& job);

/// All keys with type, default and help, for `holmes train --keys` and the documentation.
std::string describe_keys();

}  // namespace holmes::actors

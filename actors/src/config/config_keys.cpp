#include "config/config_keys.hpp"

#include <vector>

#include "config/cluster_keys.hpp"
#include "holmes/base/limits.hpp"
#include "holmes/base/suggest.hpp"

namespace holmes::actors {
namespace {

constexpr double kMillion = 1e6;
constexpr double kStepsMax = 1e12;
constexpr double kSeedMax = 9e15;  // exact in a double, which ranges are kept in
constexpr double kLayersMax = static_cast<double>(limits::kLayersMax);
constexpr double kDevicesMax = static_cast<double>(limits::kDevicesMax);

// In the order of the enumerations.
constexpr std::string_view kStrategies[] = {
    "megatron", "holmes", "auto", "megatron-lm", "megatron-deepspeed", "megatron-llama"};
constexpr std::string_view kSchedules[] = {"1f1b", "gpipe", "interleaved", "zero-bubble",
                                           "network-aware"};
constexpr std::string_view kRecomputes[] = {"none", "selective", "full"};
constexpr std::string_view kOptimizers[] = {"overlapped", "sharded", "replicated"};
constexpr std::string_view kCollectives[] = {"direct", "ring"};
constexpr std::string_view kSplits[] = {"default", "equal", "formula", "optimal"};
constexpr std::string_view kOnLoss[] = {"continue", "stop"};
constexpr std::string_view kNicSources[] = {"loopback", "interfaces"};
constexpr std::string_view kSecurities[] = {"auto", "tls", "none"};
constexpr std::string_view kFamilies[] = {"gpt2", "llama"};
constexpr std::string_view kHeads[] = {"default", "tied", "untied"};

constexpr Section kSections[] = {
    {"run", "The run folder and what is kept in it."},
    {"model", "The model that is trained. Constants of the job."},
    {"data", "The text it learns from."},
    {"train",
     "Steps, batches, optimizer. batch, micro_batch, sequence, reduction_leaves and seed are "
     "constants of the job; the others may change when it is resumed."},
    {"parallel", "How the model is laid out on the cluster."},
    {"cost",
     "Constants of predictions (plan, simulate, auto), as calibration finds them. Nothing that "
     "runs depends on them but what auto chooses."},
    {"cluster", "The hosts."},
    {"transport", "Networks."},
    {"resilience", "When a host counts as lost, and what happens then."},
    {"security", "Reserved; no keys yet."},
};

// Table of keys; each line is one fact, so that splitting it would only hide it.
constexpr Key kKeys[] = {
    {"run",
     "folder",
     [](Draft& d) -> Target { return &d.job.run.folder; },
     {},
     "",
     "Folder for metrics, logs and checkpoints; relative to the current folder."},
    {"run",
     "name",
     [](Draft& d) -> Target { return &d.job.run.name; },
     {},
     "",
     "Name of the run, for people."},
    {"run",
     "keep",
     [](Draft& d) -> Target { return &d.job.run.keep; },
     {1, kMillion},
     "",
     "Checkpoints kept; older ones are removed."},
    {"run",
     "checkpoint_every",
     [](Draft& d) -> Target { return &d.job.run.checkpoint_every; },
     {0, kStepsMax},
     "",
     "Steps between checkpoints; 0: only at the end."},

    {"model",
     "family",
     [](Draft& d) -> Target { return &d.job.model.family; },
     {0, 0, kFamilies},
     "",
     "gpt2: learned positions, layer norms, GELU; llama: rotary embeddings, RMS norms, SwiGLU, no "
     "biases."},
    {"model",
     "layers",
     [](Draft& d) -> Target { return &d.job.model.layers; },
     {1, kLayersMax},
     "",
     "Transformer blocks."},
    {"model",
     "heads",
     [](Draft& d) -> Target { return &d.job.model.heads; },
     {1, 65536},
     "",
     "Attention heads; must divide channels (llama: unless head_channels is set)."},
    {"model",
     "channels",
     [](Draft& d) -> Target { return &d.job.model.channels; },
     {1, 262144},
     "",
     "Width of the model."},
    {"model",
     "sequence",
     [](Draft& d) -> Target { return &d.job.model.sequence; },
     {1, kMillion},
     "",
     "Longest sequence; gpt2: rows of the position table."},
    {"model",
     "vocabulary",
     [](Draft& d) -> Target { return &d.job.model.vocabulary; },
     {2, 10 * kMillion},
     "",
     "Tokens that may occur; at least 256 for bytes."},
    {"model",
     "vocabulary_padding",
     [](Draft& d) -> Target { return &d.job.model.vocabulary_padding; },
     {1, 65536},
     "",
     "The embedding's rows are rounded up to a multiple of it."},
    {"model",
     "head",
     [](Draft& d) -> Target { return &d.job.model.head; },
     {0, 0, kHeads},
     "",
     "tied: the output table is the table of tokens; untied (llama only): a matrix of its own; "
     "default: gpt2 tied, llama untied."},
    {"model",
     "kv_heads",
     [](Draft& d) -> Target { return &d.job.model.kv_heads; },
     {0, 65536},
     "",
     "llama: heads of keys and values, each shared by heads / kv_heads heads; 0: heads."},
    {"model",
     "head_channels",
     [](Draft& d) -> Target { return &d.job.model.head_channels; },
     {0, 65536},
     "",
     "llama: channels of a head, an even number; 0: channels / heads."},
    {"model",
     "feed_forward",
     [](Draft& d) -> Target { return &d.job.model.feed_forward; },
     {0, 4 * kMillion},
     "",
     "llama: width of the feed-forward part; 0: 8/3 of channels, rounded up to a multiple of 256."},
    {"model",
     "norm_epsilon",
     [](Draft& d) -> Target { return &d.job.model.norm_epsilon; },
     {1e-12, 0.1},
     "",
     "llama: what RMS norms add to the mean square; gpt2 has 1e-5."},
    {"model",
     "rope_theta",
     [](Draft& d) -> Target { return &d.job.model.rope.theta; },
     {1, 1e12},
     "",
     "llama: base of the rotary embeddings' wavelengths."},
    {"model",
     "rope_factor",
     [](Draft& d) -> Target { return &d.job.model.rope.factor; },
     {1, 1e6},
     "",
     "llama: slow rotations are slowed down by it further, as in Llama 3.1 (8); 1: none."},
    {"model",
     "rope_low_factor",
     [](Draft& d) -> Target { return &d.job.model.rope.low_factor; },
     {1e-6, 1e6},
     "",
     "llama: slow are those with fewer turns over rope_original_sequence."},
    {"model",
     "rope_high_factor",
     [](Draft& d) -> Target { return &d.job.model.rope.high_factor; },
     {1e-6, 1e6},
     "",
     "llama: those with more turns are left alone; above rope_low_factor."},
    {"model",
     "rope_original_sequence",
     [](Draft& d) -> Target { return &d.job.model.rope.original_sequence; },
     {1, kMillion},
     "",
     "llama: longest sequence before the rotations were slowed down."},

    {"data",
     "text",
     [](Draft& d) -> Target { return &d.job.data.text; },
     {},
     "none: it or tokens must be set",
     "Plain text file; relative to the job file, from --set to the current folder."},
    {"data",
     "tokens",
     [](Draft& d) -> Target { return &d.job.data.tokens; },
     {},
     "none",
     "PREFIX of PREFIX.bin and PREFIX.idx (Megatron's format; holmes data build), instead of "
     "text."},
    {"data",
     "tokenizer",
     [](Draft& d) -> Target { return &d.job.data.tokenizer; },
     {},
     "",
     "How text becomes tokens: bytes (one token a byte), or a path: a tokenizer.json, or a folder "
     "with one or with vocab.json and merges.txt. With tokens: the one they were made with."},
    {"data",
     "validation",
     [](Draft& d) -> Target { return &d.job.data.validation; },
     {1e-6, 0.9},
     "",
     "Share of the text, at its end, kept for validation."},
    {"data",
     "validate_every",
     [](Draft& d) -> Target { return &d.job.data.validate_every; },
     {0, kStepsMax},
     "",
     "Steps between validations; 0: only at the end."},
    {"data",
     "validation_batches",
     [](Draft& d) -> Target { return &d.job.data.validation_batches; },
     {1, kMillion},
     "",
     "Micro-batches of one validation."},

    {"train",
     "steps",
     [](Draft& d) -> Target { return &d.job.train.steps; },
     {1, kStepsMax},
     "",
     "Optimizer updates of the whole job."},
    {"train",
     "batch",
     [](Draft& d) -> Target { return &d.job.train.shape.batch; },
     {1, kMillion},
     "",
     "Samples of a step, over all hosts."},
    {"train",
     "micro_batch",
     [](Draft& d) -> Target { return &d.job.train.shape.micro_batch; },
     {1, kMillion},
     "",
     "Samples that go through the pipeline at once; must divide batch."},
    {"train",
     "sequence",
     [](Draft& d) -> Target { return &d.job.train.sequence; },
     {1, kMillion},
     "model.sequence",
     "Tokens of a sample; at most model.sequence."},
    {"train",
     "seed",
     [](Draft& d) -> Target { return &d.job.train.seed; },
     {0, kSeedMax},
     "",
     "Of initial values and of the order of samples."},
    {"train",
     "reduction_leaves",
     [](Draft& d) -> Target { return &d.job.train.shape.reduction_leaves; },
     {1, 1024},
     "the largest power of two, at most 8, that divides batch / micro_batch",
     "Leaves of the tree that sums gradients: a power of two that divides batch / micro_batch (or, "
     "to plan only, batch / micro_batch itself). No "
     "stage can have more replicas."},
    {"train",
     "lr",
     [](Draft& d) -> Target { return &d.job.train.learning_rate.peak; },
     {1e-12, 100},
     "",
     "Highest learning rate."},
    {"train",
     "lr_min",
     [](Draft& d) -> Target { return &d.job.train.learning_rate.floor; },
     {0, 100},
     "lr / 10",
     "Learning rate at the end of the decay; at most lr."},
    {"train",
     "warmup_steps",
     [](Draft& d) -> Target { return &d.job.train.learning_rate.warmup_steps; },
     {0, kStepsMax},
     "",
     "Steps of linear warm-up."},
    {"train",
     "decay_steps",
     [](Draft& d) -> Target { return &d.job.train.learning_rate.decay_steps; },
     {1, kStepsMax},
     "train.steps",
     "Step at which the cosine ends; at least warmup_steps."},
    {"train",
     "beta1",
     [](Draft& d) -> Target { return &d.job.train.optimizer.beta1; },
     {0, 0.999999},
     "",
     "AdamW's decay of the first moment."},
    {"train",
     "beta2",
     [](Draft& d) -> Target { return &d.job.train.optimizer.beta2; },
     {0, 0.999999},
     "",
     "AdamW's decay of the second moment."},
    {"train",
     "epsilon",
     [](Draft& d) -> Target { return &d.job.train.optimizer.epsilon; },
     {1e-20, 1},
     "",
     "AdamW's guard against division by zero."},
    {"train",
     "weight_decay",
     [](Draft& d) -> Target { return &d.job.train.optimizer.weight_decay; },
     {0, 10},
     "",
     "Decoupled weight decay of matrices."},
    {"train",
     "clip_norm",
     [](Draft& d) -> Target { return &d.job.train.clip_norm; },
     {0, kMillion},
     "",
     "Gradients are scaled down to this norm; 0: off."},
    {"train",
     "tf32",
     [](Draft& d) -> Target { return &d.job.train.tf32; },
     {},
     "",
     "GPUs: products of matrices with 10 bits of mantissa, faster, and not the results of fp32."},

    {"parallel",
     "strategy",
     [](Draft& d) -> Target { return &d.job.parallel.strategy; },
     {0, 0, kStrategies},
     "",
     "holmes: stages are clusters, blocks by speed; megatron: rank order, equal split; auto: the "
     "shortest step that the simulator finds; the others are baselines, which train as megatron."},
    {"parallel",
     "tensor",
     [](Draft& d) -> Target { return &d.job.parallel.tensor; },
     {1, kDevicesMax},
     "",
     "Devices of one host that share each layer; more than 1 can be planned, not trained with."},
    {"parallel",
     "pipeline",
     [](Draft& d) -> Target { return &d.job.parallel.pipeline; },
     {0, kLayersMax},
     "0",
     "Pipeline stages; 0: one for each cluster."},
    {"parallel",
     "data",
     [](Draft& d) -> Target { return &d.job.parallel.data; },
     {0, kDevicesMax},
     "0",
     "Replicas of each stage; 0: all devices are used."},
    {"parallel",
     "schedule",
     [](Draft& d) -> Target { return &d.job.parallel.schedule; },
     {0, 0, kSchedules},
     "",
     "Order of forward and backward passes; network-aware: generated for the cluster's delays and "
     "speeds. Training executes 1f1b, gpipe and network-aware; the others are for plan and "
     "simulate."},
    {"parallel",
     "alpha",
     [](Draft& d) -> Target { return &d.job.parallel.alpha; },
     {0.1, 10},
     "",
     "Weight of the fastest stages in the partition formula of holmes."},
    {"parallel",
     "split",
     [](Draft& d) -> Target { return &d.job.parallel.split; },
     {0, 0, kSplits},
     "",
     "Blocks of each stage: equal, formula (by speed, the paper's), optimal (embedding, head and "
     "memory counted); default: the strategy's own."},

    {"cost",
     "compute_efficiency",
     [](Draft& d) -> Target { return &d.job.cost.compute_efficiency; },
     {1e-6, 10},
     "",
     "Share of a device's tflops that training reaches."},
    {"cost",
     "infiniband_efficiency",
     [](Draft& d) -> Target { return &d.job.cost.network_efficiency[0]; },
     {1e-6, 10},
     "",
     "Share of the goodput of InfiniBand NICs that is reached."},
    {"cost",
     "roce_efficiency",
     [](Draft& d) -> Target { return &d.job.cost.network_efficiency[1]; },
     {1e-6, 10},
     "",
     "The same of RoCE."},
    {"cost",
     "ethernet_efficiency",
     [](Draft& d) -> Target { return &d.job.cost.network_efficiency[2]; },
     {1e-6, 10},
     "",
     "The same of Ethernet, and of links between clusters."},
    {"cost",
     "loopback_efficiency",
     [](Draft& d) -> Target { return &d.job.cost.network_efficiency[3]; },
     {1e-6, 10},
     "",
     "The same of loopback."},
    {"cost",
     "pass_overhead_us",
     [](Draft& d) -> Target { return &d.job.cost.pass_overhead_us; },
     {0, 1e9},
     "",
     "Added to each pass of a micro-batch through a stage."},
    {"cost",
     "backward_ratio",
     [](Draft& d) -> Target { return &d.job.cost.backward_ratio; },
     {0.1, 10},
     "",
     "Time of a backward pass over that of a forward pass."},
    {"cost",
     "local_gbit_s",
     [](Draft& d) -> Target { return &d.job.cost.local_gbit_s; },
     {1e-6, 1e6},
     "",
     "Between devices of one host, each device and direction."},
    {"cost",
     "local_latency_us",
     [](Draft& d) -> Target { return &d.job.cost.local_latency_us; },
     {0, 1e7},
     "",
     "The same, one way."},
    {"cost",
     "memory_gbyte_s",
     [](Draft& d) -> Target { return &d.job.cost.memory_gbyte_s; },
     {1e-6, 1e6},
     "",
     "Of a device's memory: what bounds the optimizer."},
    {"cost",
     "element_bytes",
     [](Draft& d) -> Target { return &d.job.cost.element_bytes; },
     {2, 4},
     "",
     "Of weights and activations; 2: half precision with fp32 masters. Training has 4."},
    {"cost",
     "exact",
     [](Draft& d) -> Target { return &d.job.cost.exact; },
     {},
     "",
     "Gradients are summed in tree order, in fp32. Training always does."},
    {"cost",
     "collective",
     [](Draft& d) -> Target { return &d.job.cost.collective; },
     {0, 0, kCollectives},
     "",
     "How gradients are exchanged. Training does it direct."},
    {"cost",
     "optimizer",
     [](Draft& d) -> Target { return &d.job.cost.optimizer; },
     {0, 0, kOptimizers},
     "",
     "overlapped: bucket by bucket behind backward; sharded: after the last pass; replicated: by "
     "all-reduce. Training has overlapped."},
    {"cost",
     "recompute",
     [](Draft& d) -> Target { return &d.job.cost.recompute; },
     {0, 0, kRecomputes},
     "",
     "What of a block is computed again in its backward pass. Training has none."},
    {"cost",
     "overlapped_transfers",
     [](Draft& d) -> Target { return &d.job.cost.overlapped_transfers; },
     {},
     "",
     "False: a device that sends waits until the payload is delivered."},
    {"cost",
     "nic_selection",
     [](Draft& d) -> Target { return &d.job.cost.nic_selection; },
     {},
     "",
     "False: everything on the fabric that all hosts have."},
    {"cost",
     "reserved_gib",
     [](Draft& d) -> Target { return &d.job.cost.reserved_gib; },
     {0, 1e6},
     "",
     "Of each device, for what the memory model does not count."},

    {"cluster",
     "file",
     [](Draft& d) -> Target { return &d.cluster_file; },
     {},
     "none: one host with one device",
     "Cluster file; relative to the job file, from --set to the current folder."},

    {"transport",
     "nics",
     [](Draft& d) -> Target { return &d.job.transport.nics; },
     {0, 0, kNicSources},
     "",
     "What the NICs of the cluster file are: emulated on this machine's loopback, or the hosts' "
     "own "
     "interfaces, by their address or by their name (holmes launch chooses it)."},
    {"transport",
     "emulate",
     [](Draft& d) -> Target { return &d.job.transport.emulate; },
     {},
     "",
     "On loopback: hold NICs to the rates and latencies of the cluster file."},
    {"transport",
     "listen",
     [](Draft& d) -> Target { return &d.job.transport.listen; },
     {},
     "",
     "Address of this machine at which the coordinator waits for agents; holmes launch finds one "
     "that the hosts reach."},
    {"transport",
     "port",
     [](Draft& d) -> Target { return &d.job.transport.port; },
     {0, 65535},
     "",
     "TCP port of the coordinator; 0: any free one."},
    {"transport",
     "nic_port",
     [](Draft& d) -> Target { return &d.job.transport.nic_port; },
     {0, 65000},
     "",
     "TCP port of a host's first NIC, the next NIC has the next port; 0: any free ones. For "
     "firewalls."},
    {"transport",
     "security",
     [](Draft& d) -> Target { return &d.job.transport.security; },
     {0, 0, kSecurities},
     "",
     "What keeps strangers out: tls, both ends of every connection prove who they are and all of "
     "it is encrypted; none, for networks that you trust (holmes launch --insecure); auto is tls "
     "where connections leave this machine, and none where they do not."},
    {"transport",
     "plain_on_trusted",
     [](Draft& d) -> Target { return &d.job.transport.plain_on_trusted; },
     {},
     "",
     "Connections of NICs on fabrics that the cluster file marks trusted are plain, and prove "
     "nothing; the coordinator's stay under TLS."},

    {"resilience",
     "heartbeat_ms",
     [](Draft& d) -> Target { return &d.job.resilience.heartbeat_ms; },
     {10, 60000},
     "",
     "Time between signs of life."},
    {"resilience",
     "timeout_ms",
     [](Draft& d) -> Target { return &d.job.resilience.timeout_ms; },
     {50, 600000},
     "",
     "A host that is silent for so long is lost; at least 2 heartbeats."},
    {"resilience",
     "on_loss",
     [](Draft& d) -> Target { return &d.job.resilience.on_loss; },
     {0, 0, kOnLoss},
     "",
     "When a host is lost: continue with the others (each host keeps a copy of another one's "
     "optimizer shard in memory), or stop with an error."},
    {"resilience",
     "restarts",
     [](Draft& d) -> Target { return &d.job.resilience.restarts; },
     {0, 1000000},
     "",
     "How often each host's agent is started again after it has failed; the host then comes back "
     "into the job."},
    {"resilience",
     "nic_retry_ms",
     [](Draft& d) -> Target { return &d.job.resilience.nic_retry_ms; },
     {10, 3600000},
     "",
     "Time until a NIC that was lost is tried again; doubled each time that it is lost anew."},
    {"resilience",
     "adapt",
     [](Draft& d) -> Target { return &d.job.resilience.adapt; },
     {},
     "",
     "Measure how fast devices compute while training runs, and take another plan when that makes "
     "steps shorter; the bits of the result stay the same."},
    {"resilience",
     "adapt_gain",
     [](Draft& d) -> Target { return &d.job.resilience.adapt_gain; },
     {0.01, 0.9},
     "",
     "Share of a step's time that another plan must promise to save."},
};

/// Quoted, and cut when absurdly long.
std::string quoted(std::string_view name) {
  constexpr std::size_t kShown = 64;
  return "'" + std::string(name.substr(0, kShown)) + (name.size() > kShown ? "..." : "") + "'";
}

std::string key_text(const Key& key, Draft& defaults) {
  const Target target = key.target(defaults);
  std::string text = "  " + std::string(key.name);
  text.resize(std::max<std::size_t>(text.size() + 2, 24), ' ');
  text += describe_type(target, key.rule);
  const std::string range = describe_range(target, key.rule);
  if (!range.empty()) text += ", " + range;
  text += "; default ";
  text += key.default_text.empty() ? show(target, key.rule) : std::string(key.default_text);
  return text + "\n      " + std::string(key.help) + "\n";
}

}  // namespace

std::span<const Section> config_sections() {
  return kSections;
}

std::span<const Key> config_keys() {
  return kKeys;
}

const Section* find_section(std::string_view name) {
  for (const Section& section : kSections) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

const Key* find_key(std::string_view section, std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

std::string unknown_section(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Section& section : kSections) names.push_back(section.name);
  return "unknown section [" + std::string(name.substr(0, 64)) + "]" + did_you_mean(name, names);
}

std::string unknown_key(std::string_view section, std::string_view name) {
  const std::string text = "unknown key " + quoted(name) + " in [" + std::string(section) + "]";
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) {
    if (key.section == section) names.push_back(key.name);
  }
  if (names.empty()) return text + "; this section has no keys yet";
  const std::string near = did_you_mean(name, names);
  for (const Key& key : kKeys) {
    if (near.empty() && key.name == name) {
      return text + "; it belongs to [" + std::string(key.section) + "]";
    }
  }
  return text + near;
}

std::string describe_keys() {
  Draft defaults;
  std::string text;
  for (const Section& section : kSections) {
    text += (text.empty() ? "[" : "\n[") + std::string(section.name) + "]  " +
            std::string(section.help) + "\n";
    for (const Key& key : kKeys) {
      if (key.section == section.name) text += key_text(key, defaults);
    }
  }
  return "The job file\n\n" + text + "\nThe cluster file, which cluster.file names\n\n" +
         describe_cluster_keys();
}

}  // namespace holmes::actors

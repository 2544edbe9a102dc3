#pragma once

// The simulator's state: workers (replicas of stages), messages between them, and buckets of
// gradients. One run of one plan; see holmes/partition/simulate.hpp for what it models.

#include <queue>
#include <vector>

#include "holmes/partition/reach.hpp"
#include "holmes/partition/schedule.hpp"
#include "schedule/pipeline_of.hpp"
#include "simulate/channels.hpp"
#include "simulate/flows.hpp"

namespace holmes::partition {

class Engine {
 public:
  Engine(const Plan& plan, const Cluster& cluster, const ModelCost& model,
         const SimulateOptions& options);
  Simulation run();

 private:
  /// One layer of a stage: what a collective takes at once.
  struct Bucket {
    enum class Layer : std::uint8_t { kEmbedding, kBlock, kHead };
    Layer layer = Layer::kBlock;
    std::uint32_t chunk = 0;
    std::uint32_t blocks_before = 0;  ///< In its chunk.
    bool embedding_before = false;    ///< In its chunk.
    double parameters = 0;            ///< Of all tensor ranks together.
    double ready_s = 0;               ///< Gradients, at the last replica so far.
    double updated_s = 0;
    double gathered_s = 0;
    std::uint32_t ready_count = 0;
  };
  struct HostShare {
    HostId host;
    double shares = 0;
    double subtrees = 0;  ///< Partial sums that they send.
  };
  struct Stage {
    std::vector<Bucket> buckets;
    std::uint32_t first_worker = 0;
    std::uint32_t worker_count = 0;
    std::vector<HostShare> hosts;
    std::vector<FabricId> paths;  ///< Of its data group.
    double subtrees = 0;
    double shares_max = 0;  ///< On one host.
    std::uint32_t gathers_left = 0;
  };
  struct Durations {
    PassTimes times;
    double gate_s = 0;  ///< No forward of this chunk starts earlier, for its parameters.
  };
  struct Worker {
    DeviceTime time;
    HostId host;
    std::uint32_t replica = 0;
    LayerTimes layers;
    std::vector<Durations> chunks;
    std::vector<ScheduledPass> program;
    std::vector<std::uint32_t> weights_left;  ///< By chunk: passes that add weight gradients.
    SpeedProfile profile;
    std::size_t position = 0;
    double offset_s = 0;  ///< Of its first forward, from the commit before.
    double free_s = 0;
    bool waiting = true;
    bool open = true;  ///< Its parameters for this step are known to come.
  };
  struct Message {
    double arrives_s = -1;
    double sent_s = 0;
  };
  /// What a stage sends to another.
  struct Payload {
    bool forward = false;
    std::size_t message = 0;     ///< Into activations_ or gradients_.
    std::uint32_t receiver = 0;  ///< Worker.
    StageIndex stage;            ///< The sender's, and what it sends.
    std::uint32_t replica = 0;
    std::uint32_t micro_batch = 0;
    std::uint32_t chunk = 0;
    double sent_s = 0;
    double latency_s = 0;
  };
  struct Event {
    enum class Kind : std::uint8_t { kPassEnd, kReduce, kTied, kCommit, kGather, kTiedBack, kFlow };
    double at_s = 0;
    std::uint64_t number = 0;  ///< Ties go to what was decided first.
    Kind kind = Kind::kPassEnd;
    std::uint32_t index = 0;   ///< Worker, stage, or flow.
    std::uint32_t bucket = 0;  ///< Flow: version.
    bool operator>(const Event& other) const {
      return at_s != other.at_s ? at_s > other.at_s : number > other.number;
    }
  };

  void add_stage(const ModelCost& model, std::uint32_t index);
  void add_buckets(const ModelCost& model, std::uint32_t index, Stage& stage);
  void add_worker(const ModelCost& model, std::uint32_t stage, std::uint32_t replica);
  const Group* group(GroupKind kind, DeviceId device) const;
  void push(double at_s, Event::Kind kind, std::uint32_t index, std::uint32_t bucket = 0);
  void handle(const Event& event);

  // Passes (engine_passes.cpp).
  void try_start(std::uint32_t worker);
  void start(Worker& worker, std::uint32_t index, double start_s);
  void account_wait(Worker& worker, const ScheduledPass& pass, double start_s);
  void end_pass(std::uint32_t worker, double at_s);
  double send(const Worker& from, const ScheduledPass& pass, bool forward, double at_s);
  void begin_flow(const Channels::Way& way, const Payload& payload, double at_s);
  void end_flow(const Event& event);
  void deliver(const Payload& payload, double arrives_s);
  void gradients_ready(Worker& worker, const ScheduledPass& pass, double end_s);
  Message* input(const Worker& worker, const ScheduledPass& pass);
  std::uint32_t place(const Worker& worker, const ScheduledPass& pass) const;
  double duration(const Worker& worker, const ScheduledPass& pass) const;

  // Collectives and updates (engine_update.cpp).
  void reduce(std::uint32_t stage, std::uint32_t bucket, double at_s);
  void finish_reduction(double done_s);
  void exchange_tied(bool back, double at_s);
  void commit(double at_s);
  void update(Worker& worker, Stage& stage, double at_s);
  void push_gathers(std::uint32_t stage);
  void gather(std::uint32_t stage, std::uint32_t bucket, double at_s);
  void open_when_gathered(std::uint32_t stage, double gathered_s);
  double collective(const Stage& stage, double bytes, double at_s, bool gather);
  double across_clusters(const Stage& stage, double bytes, double at_s, double latency_s);
  double vote_s();
  void begin_step();

  void record(const SimulatedEvent& event) {
    if (options_.record) result_.events.push_back(event);
  }

  const Plan& plan_;
  const Cluster& cluster_;
  const SimulateOptions& options_;
  const std::vector<HostId> hosts_;
  const std::vector<const Device*> devices_;
  Channels channels_;
  Flows flows_;                   ///< With LinkSharing::kEvenly.
  std::vector<Payload> flowing_;  ///< By flow.
  std::vector<Flows::End> ends_;  ///< Scratch.
  std::uint32_t stage_count_;
  std::uint32_t micro_batches_;
  double edge_bytes_ = 0;
  double gradient_bytes_ = 4;
  double tied_parameters_ = 0;
  std::vector<FabricId> common_;  ///< Joins all members.
  std::vector<Stage> stages_;
  std::vector<Worker> workers_;
  std::vector<std::vector<std::uint32_t>> owners_;  ///< Worker by stage and leaf.
  std::vector<std::vector<FabricId>> edge_paths_;
  std::vector<Message> activations_;  ///< By place in the pipeline of chunks, and micro-batch.
  std::vector<Message> gradients_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::uint64_t pushed_ = 0;
  std::uint32_t step_ = 0;
  std::uint32_t reductions_left_ = 0;
  double reduced_s_ = 0;
  double end_s_ = 0;
  std::vector<double> commits_s_;
  Simulation result_;
};

}  // namespace holmes::partition

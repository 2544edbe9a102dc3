#include "actors/local_job.hpp"

namespace holmes::actors::testing {

void DrainedExecutor::drain(const std::function<bool()>& when) {
  std::vector<Strand*> ready;
  while (!when || !when()) {
    ready.clear();
    for (auto& strand : strands_)
      if (!strand->tasks_.empty()) ready.push_back(strand.get());
    if (ready.empty()) return;
    auto& strand = *ready[in_turn_ ? 0 : random_.below(ready.size())];
    Task task = std::move(strand.tasks_.front());
    strand.tasks_.pop_front();
    task();
  }
}

partition::Plan make_plan(const LocalPlan& local, const partition::JobShape& job) {
  partition::Plan plan;
  plan.job = job;
  plan.schedule = local.schedule;
  std::uint32_t device = 0;
  for (const auto& stage : local.stages) {
    partition::StagePlan part{stage.first_block, stage.last_block, {}};
    for (const auto& leaves : stage.replicas) {
      part.shares.push_back({DeviceId(device), leaves});
      if (!local.orders.empty()) part.shares.back().order = local.orders.at(device);
      ++device;
    }
    plan.stages.push_back(std::move(part));
  }
  return plan;
}

class LocalJob::Batches final : public BatchSource {
 public:
  Batches(const holmes::testing::SerialJob& job, const model::TokenFile& file)
      : job_(job),
        file_(file),
        order_(model::split(file, job.validation, job.sequence)->train, job.sequence, job.batch,
               job.seed) {}
  void fill_training(Step step, MicroBatch micro_batch, std::span<std::int32_t> tokens,
                     std::span<std::int32_t> targets) const override {
    model::fill_micro_batch(file_, order_, step, micro_batch, job_.micro_batch, job_.sequence,
                            tokens, targets);
  }
  void fill_validation(std::uint32_t, std::span<std::int32_t>,
                       std::span<std::int32_t>) const override {}
  const std::string& data_hash() const override { return file_.hash(); }

 private:
  holmes::testing::SerialJob job_;
  const model::TokenFile& file_;
  model::SampleOrder order_;
};

class LocalJob::Agent final : public ExecutorActor {
 public:
  Agent(LocalJob& job, Executor& executor)
      : ExecutorActor(job.runtime_.system(), executor, Logger()), job_(job) {}

 protected:
  caf::behavior make_behavior() override {
    return {
        [](const MemberReady&) {},
        [this](const StepCommitted& step) { job_.steps_.push_back(step); },
        [this](const MemberFailed& failed) { job_.failures_.push_back(failed); },
        [](const ValidationLossReady&) {},
        [this](const ShardSaved& saved) {
          if (++saved_[saved.step] == job_.members_.size())
            job_.store_.publish(saved.step, {}).value();
        },
    };
  }

 private:
  LocalJob& job_;
  std::map<Step, std::size_t> saved_;
};

struct LocalJob::Member {
  DrainedExecutor::Strand* replica_strand = nullptr;
  DrainedExecutor::Strand* stage_strand = nullptr;
  std::unique_ptr<Replica> replica;
  std::unique_ptr<Stage> stage;
};

LocalJob::LocalJob(const holmes::testing::SerialJob& job, const LocalPlan& plan,
                   std::uint64_t steps, const model::TokenFile& file, model::Engine& engine,
                   std::uint64_t seed)
    : executor_(seed),
      pool_(std::size_t{1} << 30, engine.memory()),
      batches_(std::make_unique<Batches>(job, file)),
      plan_(std::make_shared<const partition::Plan>(
          make_plan(plan, {job.batch, job.micro_batch, job.reduction_leaves}))),
      table_(std::make_shared<const std::vector<LayerTable>>(model_table(job.model))) {
  if (auto memory = engine.payload_memory())
    payloads_.emplace(std::size_t{1} << 30, std::move(memory));
  agent_ = std::make_unique<Agent>(*this, executor_.strand());
  agent_->start();
  build(job, steps, engine);
}

LocalJob::~LocalJob() = default;

void LocalJob::build(const holmes::testing::SerialJob& job, std::uint64_t steps,
                     model::Engine& engine) {
  const Generation generation(1);
  std::map<DeviceId, LocalMember> local;
  for (std::uint32_t s = 0; s < plan_->stages.size(); ++s)
    for (const auto& share : plan_->stages[s].shares) {
      auto member = std::make_unique<Member>();
      member->replica_strand = &executor_.strand();
      member->stage_strand = &executor_.strand();
      ReplicaSpec replica;
      replica.generation = generation;
      replica.stage = StageIndex(s);
      replica.device = share.device;
      replica.plan = plan_;
      replica.table = table_;
      replica.layers = stage_layers(*plan_, StageIndex(s), job.model);
      replica.span.steps = steps;
      replica.seed = job.seed;
      replica.rule = {job.optimizer, job.learning_rate, job.clip_norm};
      member->replica = std::make_unique<Replica>(
          runtime_.system(), *member->replica_strand, Logger(), std::move(replica),
          ReplicaResources{compute_, engine, compute_, pool_, store_, agent_->handle()});
      member->replica->start();
      const auto range = layer_range(*plan_, StageIndex(s));
      StageSpec stage;
      stage.generation = generation;
      stage.stage = StageIndex(s);
      stage.device = share.device;
      stage.span.steps = steps;
      stage.shape = {job.micro_batch, job.sequence};
      stage.channels = job.model.channels;
      stage.has_embedding = range.embedding;
      stage.has_head = range.head;
      member->stage = std::make_unique<Stage>(
          runtime_.system(), *member->stage_strand, Logger(), stage,
          model::make_layers(job.model, range, stage.shape, engine),
          StageResources{compute_, engine, pool_, payloads_ ? *payloads_ : pool_, *batches_,
                         member->replica->handle(), agent_->handle(),
                         [this](StageIndex at, Step step, const ProgramPass& pass) {
                           passes_.push_back({at, step, pass});
                         }});
      member->stage->start();
      local[share.device] = {member->stage->handle(), member->replica->handle()};
      members_.push_back(std::move(member));
    }
  const auto routes = std::make_shared<const Routes>(
      generation, plan_, std::make_shared<const partition::Cluster>(), HostId(0), std::move(local),
      std::vector<caf::actor>{});
  BufferDemand demand;
  BufferDemand payload_demand;
  for (auto& member : members_) {
    demand.add(member->replica->demand(*routes));
    demand.add(member->stage->demand(*routes));
    (payloads_ ? payload_demand : demand).add(member->stage->payload_demand(*routes));
  }
  pool_.reserve(demand).value();
  if (payloads_) payloads_->reserve(payload_demand).value();
  for (auto& member : members_) member->replica->prepare();
  executor_.drain();
  for (auto& member : members_) {
    caf::anon_send(member->replica->handle(), Go{generation, routes});
    caf::anon_send(member->stage->handle(), Go{generation, routes});
  }
}

void LocalJob::run(const std::function<bool()>& when) {
  executor_.drain(when);
}

void LocalJob::silence(std::size_t actor) {
  auto& member = *members_.at(actor / 2);
  (actor % 2 == 0 ? member.stage_strand : member.replica_strand)->silence();
}

std::vector<float> LocalJob::weights(Step step) const {
  std::vector<float> all;
  const auto* model = store_.checkpoint(step);
  if (model == nullptr) return all;
  for (const auto& [number, layer] : *model)
    all.insert(all.end(), layer.parameters.begin(), layer.parameters.end());
  return all;
}

}  // namespace holmes::actors::testing

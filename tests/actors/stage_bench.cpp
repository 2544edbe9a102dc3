#include "actors/stage_bench.hpp"

#include <cstring>

#include <gtest/gtest.h>

namespace holmes::actors::testing {

namespace {

constexpr std::uint32_t kTokens = 4;
constexpr std::uint32_t kChannels = 8;

bool same_bits(const Buffer& a, const Buffer& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

bool same_bits(const BufferView& a, const Buffer& b) {
  return a.size() == b.size() && std::memcmp(a.bytes().data(), b.data(), b.size()) == 0;
}

partition::Plan bench_plan(const BenchShape& shape) {
  LocalPlan local;
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
    const auto first = stage * shape.blocks_per_stage;
    local.stages.push_back({first, first + shape.blocks_per_stage - 1, {{0, shape.leaves - 1}}});
  }
  return make_plan(local, {shape.micro_batches, 1, shape.leaves});
}

void fill_tokens(Step step, MicroBatch micro_batch, std::span<std::int32_t> tokens, int salt) {
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::int32_t>(
        (step.value() * 31 + micro_batch.value() * 7 + i * 3 + static_cast<std::size_t>(salt)) %
        60);
}

}  // namespace

caf::behavior Probe::make_behavior() {
  return {
      [this](GradientReady& ready) { gradients.push_back(std::move(ready)); },
      [this](const LossReady& ready) { losses.push_back(ready); },
      [this](TensorArrived& arrived) { tensors.push_back(std::move(arrived)); },
      [this](const MemberFailed& failed) { failures.push_back(failed); },
      [this](const Quiet& report) { quiet.push_back(report); },
  };
}

void HeldQueue::submit(ComputePriority, Duration, Task work, Executor& home, Task done) {
  jobs_.push_back({std::move(work), &home, std::move(done)});
}

void HeldQueue::run_one() {
  auto job = std::move(jobs_.front());
  jobs_.pop_front();
  job.work();
  job.work = {};
  job.home->post(std::move(job.done));
}

class StageBench::Batches final : public BatchSource {
 public:
  void fill_training(Step step, MicroBatch micro_batch, std::span<std::int32_t> tokens,
                     std::span<std::int32_t> targets) const override {
    fill_tokens(step, micro_batch, tokens, 0);
    fill_tokens(step, micro_batch, targets, 1);
  }
  void fill_validation(std::uint32_t, std::span<std::int32_t>,
                       std::span<std::int32_t>) const override {}
  const std::string& data_hash() const override { return hash_; }

 private:
  const std::string hash_;
};

/// Notes the addresses that it is called with.
class StageBench::SpyLayer final : public model::Layer {
 public:
  SpyLayer(std::unique_ptr<model::Layer> layer, std::vector<LayerCall>& calls, StageIndex stage,
           std::size_t slot)
      : layer_(std::move(layer)), calls_(calls), stage_(stage), slot_(slot) {}
  const std::vector<model::ParameterSpec>& parameters() const override {
    return layer_->parameters();
  }
  std::size_t parameter_count() const override { return layer_->parameter_count(); }
  std::size_t stash_bytes() const override { return layer_->stash_bytes(); }
  double forward_flops() const override { return layer_->forward_flops(); }
  void forward(const model::ForwardArgs& args) override {
    calls_.push_back({stage_, slot_, false, args.input.data(), args.output.data()});
    layer_->forward(args);
  }
  void backward(const model::BackwardArgs& args) override {
    calls_.push_back(
        {stage_, slot_, true, args.output_gradient.data(), args.input_gradient.data()});
    layer_->backward(args);
  }

 private:
  std::unique_ptr<model::Layer> layer_;
  std::vector<LayerCall>& calls_;
  StageIndex stage_;
  std::size_t slot_;
};

StageBench::StageBench(const BenchShape& shape, const std::set<std::uint32_t>& real,
                       std::uint64_t seed, ComputeQueue* queue)
    : shape_(shape),
      seed_(seed),
      config_{shape.stages * shape.blocks_per_stage, 2, kChannels, kTokens, 60, 64},
      executor_(seed),
      batches_(std::make_unique<Batches>()),
      plan_(std::make_shared<const partition::Plan>(bench_plan(shape))),
      agent_(std::make_unique<Probe>(runtime_.system(), executor_.strand())) {
  agent_->start();
  std::map<DeviceId, LocalMember> local;
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
    replicas_[stage] = std::make_unique<Probe>(runtime_.system(), executor_.strand());
    replicas_[stage]->start();
    neighbours_[stage] = std::make_unique<Probe>(runtime_.system(), executor_.strand());
    neighbours_[stage]->start();
    if (real.contains(stage)) build_stage(stage, queue != nullptr ? *queue : inline_);
    local[DeviceId(stage)] = {
        real.contains(stage) ? stages_[stage]->handle() : neighbours_[stage]->handle(),
        replicas_[stage]->handle()};
  }
  routes_ = std::make_shared<const Routes>(kGeneration, plan_,
                                           std::make_shared<const partition::Cluster>(), HostId(0),
                                           std::move(local), std::vector<caf::actor>{});
}

StageBench::~StageBench() = default;

void StageBench::build_stage(std::uint32_t stage, ComputeQueue& queue) {
  StageSpec spec;
  spec.generation = kGeneration;
  spec.stage = StageIndex(stage);
  spec.device = DeviceId(stage);
  spec.span.steps = shape_.steps;
  spec.shape = {1, kTokens};
  spec.channels = kChannels;
  spec.has_embedding = stage == 0;
  spec.has_head = stage + 1 == shape_.stages;
  std::vector<std::unique_ptr<model::Layer>> spies;
  for (auto& layer : layers(stage))
    spies.push_back(
        std::make_unique<SpyLayer>(std::move(layer), calls_, StageIndex(stage), spies.size()));
  stages_[stage] = std::make_unique<Stage>(runtime_.system(), executor_.strand(), Logger(), spec,
                                           std::move(spies),
                                           StageResources{queue,
                                                          *engine_,
                                                          pool_,
                                                          pool_,
                                                          *batches_,
                                                          replicas_[stage]->handle(),
                                                          agent_->handle(),
                                                          {}});
  stages_[stage]->start();
}

std::vector<std::unique_ptr<model::Layer>> StageBench::layers(std::uint32_t stage) {
  return model::make_layers(config_, layer_range(*plan_, StageIndex(stage)), {1, kTokens},
                            *engine_);
}

std::size_t StageBench::slots(std::uint32_t stage) {
  return stage_layers(*plan_, StageIndex(stage), config_).size();
}

std::size_t StageBench::activation_floats() const {
  return std::size_t{kTokens} * kChannels;
}

Buffer StageBench::random_floats(std::size_t count, std::uint64_t name) const {
  Random random(mix64(seed_ * 1000003 + name));
  Buffer buffer = Buffer::allocate(count * sizeof(float));
  for (float& value : buffer.mutable_as<float>())
    value = static_cast<float>(random.uniform() - 0.5) * 0.2F;
  return buffer;
}

Buffer StageBench::parameters(std::uint32_t stage, std::size_t slot, Step step) {
  return random_floats(layers(stage).at(slot)->parameter_count(),
                       1000 + stage * 100 + slot * 10 + step.value());
}

Buffer StageBench::input(std::uint32_t stage, Step step, std::uint32_t micro_batch) const {
  if (stage == 0) return {};
  return random_floats(activation_floats(), 2000 + stage * 100 + micro_batch * 10 + step.value());
}

Buffer StageBench::output_gradient(std::uint32_t stage, Step step,
                                   std::uint32_t micro_batch) const {
  if (stage + 1 == shape_.stages) return {};
  return random_floats(activation_floats(), 3000 + stage * 100 + micro_batch * 10 + step.value());
}

transport::BulkTag StageBench::tag(transport::BulkKind kind, std::uint32_t from, std::uint32_t to,
                                   Step step, std::uint32_t micro_batch) const {
  transport::BulkTag tag;
  tag.generation = kGeneration;
  tag.step = step;
  tag.kind = kind;
  tag.stage = StageIndex(from);
  tag.micro_batch = MicroBatch(micro_batch);
  tag.source = DeviceId(from);
  tag.destination = DeviceId(to);
  return tag;
}

std::vector<StageBench::Message> StageBench::messages(std::uint32_t stage, Step step) {
  std::vector<Message> all;
  const auto to = stages_.at(stage)->handle();
  if (step == Step(0))
    all.push_back({[this, to](Generation g) { caf::anon_send(to, Go{g, routes_}); }});
  const auto tensor = [&](transport::BulkTag named, Buffer payload) {
    all.push_back({[to, named, payload](Generation g) {
      auto of = named;
      of.generation = g;
      caf::anon_send(to, TensorArrived{of, BufferView(payload)});
    }});
  };
  for (std::uint32_t i = 0; i < shape_.micro_batches; ++i) {
    using transport::BulkKind;
    if (stage > 0 && !stages_.contains(stage - 1))
      tensor(tag(BulkKind::kActivation, stage - 1, stage, step, i), input(stage, step, i));
    if (stage + 1 < shape_.stages && !stages_.contains(stage + 1))
      tensor(tag(BulkKind::kActivationGradient, stage + 1, stage, step, i),
             output_gradient(stage, step, i));
  }
  for (std::uint32_t slot = 0; slot < slots(stage); ++slot) {
    lent_values_[{stage, slot, step}] = parameters(stage, slot, step);
    all.push_back({[this, to, stage, slot, step](Generation g) {
      caf::anon_send(to, ParametersReady{g, step, slot, lent_values_.at({stage, slot, step})});
    }});
    const auto bytes = lent_values_.at({stage, slot, step}).size();
    for (std::uint32_t leaf = 0; leaf < shape_.leaves; ++leaf)
      all.push_back({[this, to, stage, slot, step, leaf, bytes](Generation g) {
        Buffer memory = Buffer::allocate(bytes);
        std::memset(memory.mutable_bytes().data(), 0x7f, bytes);  // lent memory is not zero
        lent_[{stage, slot, leaf, step}] = memory.data();
        caf::anon_send(to, AccumulatorLent{g, step, slot, leaf, std::move(memory)});
      }});
  }
  return all;
}

void StageBench::supersede(std::uint32_t stage, Generation generation) {
  caf::anon_send(stages_.at(stage)->handle(), Supersede{generation, agent_->handle()});
}

void StageBench::run_direct(std::uint32_t stage, Step step, std::uint32_t micro_batch,
                            Direct& into) {
  auto own = layers(stage);
  const bool head = stage + 1 == shape_.stages;
  std::vector<std::int32_t> tokens(kTokens);
  std::vector<std::int32_t> targets(kTokens);
  fill_tokens(step, MicroBatch(micro_batch), tokens, 0);
  fill_tokens(step, MicroBatch(micro_batch), targets, 1);
  std::vector<Buffer> values{input(stage, step, micro_batch)};
  std::vector<Buffer> stashes;
  std::vector<Buffer> weights;
  float loss = 0;
  for (std::size_t slot = 0; slot < own.size(); ++slot) {
    weights.push_back(parameters(stage, slot, step));
    stashes.push_back(Buffer::allocate(own[slot]->stash_bytes()));
    const bool last = head && slot + 1 == own.size();
    values.push_back(last ? Buffer() : Buffer::allocate(activation_floats() * sizeof(float)));
    model::ForwardArgs args;
    args.parameters = weights[slot].as<float>();
    args.input = values[slot].as<float>();
    if (!last) args.output = values[slot + 1].mutable_as<float>();
    args.stash = stashes[slot].mutable_bytes();
    args.tokens = tokens;
    args.targets = targets;
    args.loss = &loss;
    own[slot]->forward(args);
  }
  into.outputs.push_back(values.back());
  into.losses.push_back(loss);
  const auto leaf = plan_->leaf_of(MicroBatch(micro_batch));
  Buffer gradient = output_gradient(stage, step, micro_batch);
  for (std::size_t slot = own.size(); slot-- > 0;) {
    auto& sum = into.gradients[{slot, leaf}];
    if (!sum) {
      sum = Buffer::allocate(weights[slot].size());
      std::memset(sum.mutable_bytes().data(), 0, sum.size());
    }
    const bool first = stage == 0 && slot == 0;
    Buffer below = first ? Buffer() : Buffer::allocate(activation_floats() * sizeof(float));
    model::BackwardArgs args;
    args.parameters = weights[slot].as<float>();
    args.input = values[slot].as<float>();
    args.stash = stashes[slot].bytes();
    args.output_gradient = gradient.as<float>();
    if (!first) args.input_gradient = below.mutable_as<float>();
    args.gradients = sum.mutable_as<float>();
    args.tokens = tokens;
    args.targets = targets;
    args.loss_scale = 1.0F / static_cast<float>(shape_.micro_batches);
    own[slot]->backward(args);
    gradient = below;
  }
  into.input_gradients.push_back(gradient);
}

StageBench::Direct StageBench::direct(std::uint32_t stage, Step step) {
  Direct result;
  for (std::uint32_t i = 0; i < shape_.micro_batches; ++i) run_direct(stage, step, i, result);
  return result;
}

void StageBench::expect_step(std::uint32_t stage, Step step) {
  const auto expected = direct(stage, step);
  std::size_t count = 0;
  for (const auto& ready : replica(stage).gradients) {
    if (ready.step != step) continue;
    ++count;
    EXPECT_EQ(ready.generation, kGeneration);
    const auto& sum = expected.gradients.at({ready.slot, ready.leaf});
    EXPECT_TRUE(same_bits(ready.gradients, sum)) << "slot " << ready.slot << " leaf " << ready.leaf;
    EXPECT_EQ(ready.gradients.data(), (lent_[{stage, ready.slot, ready.leaf, step}]));
    EXPECT_TRUE(ready.gradients.unique());
  }
  EXPECT_EQ(count, expected.gradients.size()) << "each leaf of each bucket comes back once";
  for (std::size_t slot = 0; slot < slots(stage); ++slot)
    EXPECT_TRUE((lent_values_.at({stage, slot, step}).unique())) << "parameters are still held";
  const auto sent = [&](std::uint32_t to, const std::vector<Buffer>& payloads) {
    std::size_t seen = 0;
    for (const auto& arrived : neighbour(to).tensors) {
      if (arrived.tag.step != step) continue;
      ++seen;
      EXPECT_TRUE(same_bits(arrived.payload, payloads.at(arrived.tag.micro_batch.index())));
    }
    EXPECT_EQ(seen, shape_.micro_batches);
  };
  if (stage > 0) sent(stage - 1, expected.input_gradients);
  if (stage + 1 < shape_.stages) return sent(stage + 1, expected.outputs);
  std::size_t losses = 0;
  for (const auto& ready : replica(stage).losses) {
    if (ready.step != step) continue;
    ++losses;
    EXPECT_EQ(ready.loss, expected.losses.at(ready.micro_batch.index()));
  }
  EXPECT_EQ(losses, shape_.micro_batches);
}

}  // namespace holmes::actors::testing

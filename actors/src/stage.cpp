#include "stage.hpp"

#include <algorithm>
#include <string>

namespace holmes::actors {

namespace {

std::span<const float> floats(const BufferView& view) {
  const auto bytes = view.bytes();
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::span<const std::int32_t> ints(const Buffer& buffer) {
  return buffer ? buffer.as<std::int32_t>() : std::span<const std::int32_t>{};
}

}  // namespace

/// One operator on the device's queue: holds what it reads and writes until it has ended.
struct Stage::Job {
  Flight* flight = nullptr;
  std::size_t slot = 0;
  Buffer values;
  Buffer gradients;
  bool clear_gradients = false;
  Buffer output;  // forward: the layer's output; backward: the gradient of its input
  float loss = 0;
  std::function<Status()> read_tokens;  // empty: another layer reads them
  Status tokens;                        // what reading them came to
  Status engine;                        // whether the device computed
};

Stage::Stage(caf::actor_system& system, Executor& executor, Logger log, StageSpec spec,
             std::vector<std::unique_ptr<model::Layer>> layers, StageResources resources)
    : ExecutorActor(system, executor, std::move(log)),
      spec_(spec),
      layers_(std::move(layers)),
      resources_(std::move(resources)),
      step_(spec.first_step),
      buckets_(layers_.size()),
      reserved_step_(spec.first_step) {
  HOLMES_ASSERT(!layers_.empty(), "a stage has at least one layer");
}

caf::behavior Stage::make_behavior() {
  return {
      [this](const Go& go) { on(go); },
      [this](const Supersede& supersede) { on(supersede); },
      [this](ParametersReady& ready) { on(ready); },
      [this](AccumulatorLent& lent) { on(lent); },
      [this](TensorArrived& arrived) { on(arrived); },
      [this](const TensorTaken& taken) { on(taken); },
  };
}

// --- messages ---

void Stage::on(const Go& go) {
  if (go.generation != spec_.generation || stopped_) return;
  HOLMES_ASSERT(routes_ == nullptr, "a stage is told to go once");
  routes_ = go.routes;
  program_ = step_program(routes_->plan(), spec_.span, spec_.stage, spec_.device, step_);
  reserved_program_ = program_;
  reserve_ahead();
  advance();
}

void Stage::on(const Supersede& supersede) {
  if (supersede.generation <= spec_.generation) return;
  stopped_ = true;
  quiet_to_ = supersede.reply_to;
  quiet_generation_ = supersede.generation;
  if (!computing_) reply_quiet();
}

void Stage::on(ParametersReady& ready) {
  if (ready.generation != spec_.generation || stopped_) return;
  HOLMES_ASSERT(ready.slot < buckets_.size(), "parameters for a layer that the stage lacks");
  buckets_[ready.slot] = {ready.step, std::move(ready.values)};
  advance();
}

void Stage::on(AccumulatorLent& lent) {
  if (lent.generation != spec_.generation || stopped_) return;
  accumulators_[{lent.slot, lent.leaf}] = std::move(lent.gradients);
  advance();
}

void Stage::on(TensorArrived& arrived) {
  if (arrived.tag.generation != spec_.generation || stopped_) return;
  inbox_[arrived.tag] = std::move(arrived.payload);
  advance();
}

void Stage::on(const TensorTaken& taken) {
  if (taken.tag.generation != spec_.generation || stopped_) return;
  HOLMES_ASSERT(validations_sent_ > 0, "more payloads were taken than sent");
  --validations_sent_;
  advance();
}

// --- the state machine ---

void Stage::advance() {
  if (routes_ == nullptr || computing_ || stopped_) return;
  while (!in_pass_ && position_ == program_.size()) {
    if (step_.value() >= spec_.span.steps) return;
    next_step();
  }
  if (!in_pass_ && !begin_pass()) return;
  if (program_[position_].kind == PassKind::kBackward)
    run_backward();
  else
    run_forward();
}

/// At the median: what else had the core, or a sum that had to end first, delays single passes.
void Stage::report_times() {
  if (slowness_.empty()) return;
  const auto middle = slowness_.begin() + static_cast<std::ptrdiff_t>(slowness_.size() / 2);
  std::nth_element(slowness_.begin(), middle, slowness_.end());
  caf::anon_send(resources_.agent, StepTimed{spec_.device, *middle});
  slowness_.clear();
}

void Stage::next_step() {
  report_times();
  step_ = Step(step_.value() + 1);
  program_ = step_program(routes_->plan(), spec_.span, spec_.stage, spec_.device, step_);
  position_ = 0;
  reserve_ahead();
}

/// Takes the payload that the pass starts from, if it is there.
bool Stage::begin_pass() {
  const ProgramPass& pass = program_[position_];
  if (pass.kind == PassKind::kBackward) {
    const auto flight = flights_.find(pass.micro_batch);
    HOLMES_ASSERT(flight != flights_.end(), "backward of a micro-batch that had no forward");
    if (!receive_gradient(flight->second)) return false;
    slot_ = layers_.size() - 1;
  } else {
    if (pass.kind == PassKind::kValidate && !may_send_validation()) return false;
    Flight flight;
    if (!receive_input(flight) || !acquire_tokens(flight)) return false;
    flights_[pass.micro_batch] = std::move(flight);
    slot_ = 0;
  }
  in_pass_ = true;
  reserve_ahead();
  return !stopped_;
}

/// Training passes wait for gradients, so that only so many are under way. Nothing comes back from
/// a validation pass: it waits until the next stage has taken enough of those before it.
bool Stage::may_send_validation() const {
  return spec_.has_head ||
         validations_sent_ < partition::in_flight_max(routes_->plan(), spec_.stage, spec_.device);
}

bool Stage::receive_input(Flight& flight) {
  flight.inputs.resize(layers_.size());
  flight.stashes.resize(layers_.size());
  if (spec_.has_embedding) return true;
  const auto tag = activation_tag(step_, program_[position_].micro_batch, true);
  const auto arrived = inbox_.find(tag);
  if (arrived == inbox_.end()) return false;
  flight.inputs[0] = std::move(arrived->second);
  inbox_.erase(arrived);
  if (!routes_->is_local(tag.source))
    --reserved_count_;
  else if (program_[position_].kind == PassKind::kValidate)
    caf::anon_send(routes_->local(tag.source).stage, TensorTaken{tag});
  return true;
}

bool Stage::receive_gradient(Flight& flight) {
  if (spec_.has_head) return true;
  const auto tag = gradient_tag(step_, program_[position_].micro_batch, true);
  const auto arrived = inbox_.find(tag);
  if (arrived == inbox_.end()) return false;
  flight.output_gradient = std::move(arrived->second);
  inbox_.erase(arrived);
  if (!routes_->is_local(tag.source)) --reserved_count_;
  return true;
}

bool Stage::acquire_tokens(Flight& flight) {
  if (!spec_.has_embedding && !spec_.has_head) return true;
  const std::size_t bytes =
      std::size_t{spec_.shape.samples} * spec_.shape.tokens * sizeof(std::int32_t);
  flight.tokens = acquire(resources_.pool, bytes, "tokens");
  flight.targets = acquire(resources_.pool, bytes, "targets");
  return flight.tokens && flight.targets;
}

/// Reads the running pass's tokens, on the device's queue: the text may still be on the disk.
std::function<Status()> Stage::token_reader(Flight& flight) {
  if (!flight.tokens) return [] { return Status(); };
  const auto micro_batch = program_[position_].micro_batch;
  const auto tokens = flight.tokens.mutable_as<std::int32_t>();
  const auto targets = flight.targets.mutable_as<std::int32_t>();
  const auto& batches = resources_.batches;
  if (program_[position_].kind == PassKind::kValidate)
    return [&batches, tokens, targets,
            index = micro_batch.value() - routes_->plan().job.micro_batch_count()]() -> Status {
      HOLMES_TRY(batches.unchanged());
      batches.fill_validation(index, tokens, targets);
      return batches.unchanged();
    };
  return [&batches, tokens, targets, micro_batch, step = step_]() -> Status {
    HOLMES_TRY(batches.unchanged());
    batches.fill_training(step, micro_batch, tokens, targets);
    return batches.unchanged();
  };
}

bool Stage::has_parameters(std::size_t slot) const {
  return buckets_[slot].values && buckets_[slot].step == step_;
}

// --- forward ---

void Stage::run_forward() {
  if (!has_parameters(slot_)) return;
  auto& layer = *layers_[slot_];
  auto& flight = flights_.at(program_[position_].micro_batch);
  const bool is_head = spec_.has_head && slot_ + 1 == layers_.size();
  auto job = std::make_shared<Job>();
  job->flight = &flight;
  job->slot = slot_;
  job->values = buckets_[slot_].values;
  flight.stashes[slot_] = acquire(resources_.pool, layer.stash_bytes(), "stash");
  if (!flight.stashes[slot_]) return;
  if (!is_head) {
    const bool leaves = slot_ + 1 == layers_.size();
    job->output =
        acquire(leaves ? resources_.payloads : resources_.pool, activation_bytes(), "activation");
    if (!job->output) return;
  }
  model::ForwardArgs args;
  args.parameters = job->values.as<float>();
  args.input = floats(flight.inputs[slot_]);
  if (job->output) args.output = job->output.mutable_as<float>();
  args.stash = flight.stashes[slot_].mutable_bytes();
  args.tokens = ints(flight.tokens);
  args.targets = ints(flight.targets);
  args.loss = &job->loss;
  if (slot_ == 0) job->read_tokens = token_reader(flight);
  submit(job, layer.forward_flops(), [&layer, args, &read = *job] {
    if (read.read_tokens) read.tokens = read.read_tokens();
    if (read.tokens) layer.forward(args);
  });
}

void Stage::forward_done(Job& job) {
  if (!job.tokens) return fail("reading the text", job.tokens.error());
  Flight& flight = *job.flight;
  if (program_[position_].kind == PassKind::kValidate) {
    flight.stashes[job.slot] = {};
    flight.inputs[job.slot] = {};
  }
  if (job.slot + 1 == layers_.size()) {
    finish_forward(flight, std::move(job.output), job.loss);
    return;
  }
  flight.inputs[job.slot + 1] = BufferView(std::move(job.output));
  ++slot_;
}

void Stage::finish_forward(Flight&, Buffer output, float loss) {
  const ProgramPass pass = program_[position_];
  if (!spec_.has_head) {
    const bool validates = pass.kind == PassKind::kValidate;
    if (validates) ++validations_sent_;
    routes_->send_tensor(activation_tag(step_, pass.micro_batch, false), activation_shape(),
                         BufferView(std::move(output)), validates ? handle() : caf::actor());
  } else if (pass.kind == PassKind::kValidate) {
    const auto index = pass.micro_batch.value() - routes_->plan().job.micro_batch_count();
    caf::anon_send(resources_.agent, ValidationLossReady{spec_.generation, step_, index, loss});
  } else {
    caf::anon_send(resources_.replica, LossReady{spec_.generation, step_, pass.micro_batch, loss});
  }
  if (pass.kind == PassKind::kValidate) flights_.erase(pass.micro_batch);
  end_pass();
}

// --- backward ---

void Stage::run_backward() {
  const MicroBatch micro_batch = program_[position_].micro_batch;
  const auto leaf = routes_->plan().leaf_of(micro_batch);
  const auto accumulator = accumulators_.find({static_cast<std::uint32_t>(slot_), leaf});
  if (accumulator == accumulators_.end()) return;
  HOLMES_ASSERT(has_parameters(slot_), "parameters must stay until the last backward pass");
  auto& layer = *layers_[slot_];
  auto& flight = flights_.at(micro_batch);
  auto job = std::make_shared<Job>();
  job->flight = &flight;
  job->slot = slot_;
  job->values = buckets_[slot_].values;
  if (!(spec_.has_embedding && slot_ == 0)) {
    job->output = acquire(slot_ == 0 ? resources_.payloads : resources_.pool, activation_bytes(),
                          "activation gradient");
    if (!job->output) return;
  }
  model::BackwardArgs args;
  args.parameters = job->values.as<float>();
  args.input = floats(flight.inputs[slot_]);
  args.stash = flight.stashes[slot_].bytes();
  args.output_gradient = floats(flight.output_gradient);
  if (job->output) args.input_gradient = job->output.mutable_as<float>();
  args.gradients = accumulator->second.mutable_as<float>();
  args.tokens = ints(flight.tokens);
  args.targets = ints(flight.targets);
  args.loss_scale = 1.0F / static_cast<float>(routes_->plan().job.micro_batch_count());
  job->gradients = accumulator->second;
  const auto per_leaf =
      routes_->plan().job.micro_batch_count() / routes_->plan().job.reduction_leaves;
  const bool clear = micro_batch.value() % per_leaf == 0;
  submit(job, 2 * layer.forward_flops(), [&layer, &engine = resources_.engine, args, clear] {
    if (clear) engine.clear(args.gradients);
    layer.backward(args);
  });
}

void Stage::backward_done(Job& job) {
  Flight& flight = *job.flight;
  flight.stashes[job.slot] = {};
  flight.inputs[job.slot] = {};
  flight.output_gradient = BufferView(std::move(job.output));
  job.values = {};
  job.gradients = {};
  give_back_gradients(job.slot);
  if (job.slot != 0) {
    --slot_;
    return;
  }
  const MicroBatch micro_batch = program_[position_].micro_batch;
  if (!spec_.has_embedding)
    routes_->send_tensor(gradient_tag(step_, micro_batch, false), activation_shape(),
                         std::move(flight.output_gradient));
  flights_.erase(micro_batch);
  end_pass();
}

/// After the last micro-batch of a leaf its gradients go to the Replica; after the last pass of the
/// step the parameters go back first, so that an update never starts under a reader.
void Stage::give_back_gradients(std::size_t slot) {
  const MicroBatch micro_batch = program_[position_].micro_batch;
  if (!is_last_of_leaf(micro_batch)) return;
  if (position_ + 1 == program_.size()) buckets_[slot].values = {};
  const auto leaf = routes_->plan().leaf_of(micro_batch);
  const auto key = std::pair(static_cast<std::uint32_t>(slot), leaf);
  Buffer gradients = std::move(accumulators_.at(key));
  accumulators_.erase(key);
  caf::anon_send(resources_.replica,
                 GradientReady{spec_.generation, step_, key.first, leaf, std::move(gradients)});
}

bool Stage::is_last_of_leaf(MicroBatch micro_batch) const {
  const auto& job = routes_->plan().job;
  const auto per_leaf = job.micro_batch_count() / job.reduction_leaves;
  return (micro_batch.value() + 1) % per_leaf == 0;
}

void Stage::end_pass() {
  if (resources_.observer) resources_.observer(spec_.stage, step_, program_[position_]);
  in_pass_ = false;
  ++position_;
}

// --- compute ---

void Stage::submit(std::shared_ptr<Job> job, double flops, std::function<void()> work) {
  computing_ = true;
  const bool backward = program_[position_].kind == PassKind::kBackward;
  const double modelled_s = flops / spec_.flops_per_s;
  auto then_look = [work = std::move(work), job, &engine = resources_.engine] {
    work();
    job->engine = engine.status();
  };
  resources_.compute.submit(ComputePriority::kPass, from_seconds(modelled_s), std::move(then_look),
                            executor(),
                            guarded([this, job, backward, modelled_s, begun = clock().now()] {
                              computing_ = false;
                              if (modelled_s > 0)
                                slowness_.push_back(seconds(clock().now() - begun) / modelled_s);
                              if (stopped_) {
                                if (quiet_to_) reply_quiet();
                                return;
                              }
                              if (!job->engine) return fail("computing", job->engine.error());
                              backward ? backward_done(*job) : forward_done(*job);
                              advance();
                            }));
}

// --- payloads from other hosts ---

/// Keeps as many reservations as the schedule can have under way, and one more, so that a sender
/// never waits for a buffer without need.
void Stage::reserve_ahead() {
  const std::size_t depth = reservations_max(*routes_);
  while (reserved_count_ < depth && !stopped_) {
    if (reserved_position_ == reserved_program_.size()) {
      if (reserved_step_.value() >= spec_.span.steps || reserved_step_ > step_) return;
      reserved_step_ = Step(reserved_step_.value() + 1);
      reserved_program_ =
          step_program(routes_->plan(), spec_.span, spec_.stage, spec_.device, reserved_step_);
      reserved_position_ = 0;
      continue;
    }
    reserve(reserved_step_, reserved_program_[reserved_position_++]);
  }
}

void Stage::reserve(Step step, const ProgramPass& pass) {
  const bool backward = pass.kind == PassKind::kBackward;
  if (backward ? spec_.has_head : spec_.has_embedding) return;
  const auto tag = backward ? gradient_tag(step, pass.micro_batch, true)
                            : activation_tag(step, pass.micro_batch, true);
  if (routes_->is_local(tag.source)) return;
  Buffer buffer = acquire(resources_.payloads, activation_bytes(), "incoming payload");
  if (!buffer) return;
  ++reserved_count_;
  routes_->reserve_tensor(tag, activation_shape(), std::move(buffer), handle());
}

transport::BulkTag Stage::activation_tag(Step step, MicroBatch micro_batch, bool incoming) const {
  const StageIndex from(incoming ? spec_.stage.value() - 1 : spec_.stage.value());
  const StageIndex to(from.value() + 1);
  transport::BulkTag tag;
  tag.generation = spec_.generation;
  tag.step = step;
  tag.kind = transport::BulkKind::kActivation;
  tag.stage = from;
  tag.micro_batch = micro_batch;
  tag.source = pass_owner(routes_->plan(), from, micro_batch);
  tag.destination = pass_owner(routes_->plan(), to, micro_batch);
  return tag;
}

transport::BulkTag Stage::gradient_tag(Step step, MicroBatch micro_batch, bool incoming) const {
  const StageIndex from(incoming ? spec_.stage.value() + 1 : spec_.stage.value());
  const StageIndex to(from.value() - 1);
  auto tag = activation_tag(step, micro_batch, incoming ? false : true);
  std::swap(tag.source, tag.destination);
  tag.kind = transport::BulkKind::kActivationGradient;
  tag.stage = from;
  HOLMES_ASSERT(tag.destination == pass_owner(routes_->plan(), to, micro_batch),
                "gradients go back where activations came from");
  return tag;
}

transport::TensorShape Stage::activation_shape() const {
  return {transport::DType::kF32, {spec_.shape.samples, spec_.shape.tokens, spec_.channels}};
}

std::size_t Stage::activation_bytes() const {
  return std::size_t{spec_.shape.samples} * spec_.shape.tokens * spec_.channels * sizeof(float);
}

// --- ends ---

Buffer Stage::acquire(BufferPool& pool, std::size_t bytes, const char* what) {
  auto buffer = pool.acquire(bytes);
  if (buffer) return *std::move(buffer);
  fail(std::string("memory for ") + what, buffer.error());
  return {};
}

void Stage::fail(std::string operation, Error error) {
  if (stopped_) return;
  stopped_ = true;
  caf::anon_send(resources_.agent, MemberFailed{spec_.generation, spec_.device,
                                                std::move(operation), std::move(error)});
}

void Stage::reply_quiet() {
  flights_.clear();
  inbox_.clear();
  accumulators_.clear();
  for (auto& bucket : buckets_) bucket.values = {};
  caf::anon_send(quiet_to_, Quiet{quiet_generation_});
}

}  // namespace holmes::actors

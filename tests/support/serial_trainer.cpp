#include "support/serial_trainer.hpp"

#include <algorithm>
#include <numeric>

#include "holmes/base/assert.hpp"

namespace holmes::testing {
namespace {

using namespace holmes::model;

Split split_or_stop(const TokenFile& file, const SerialJob& job) {
  return split(file, job.validation, job.sequence).value();
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

SerialTrainer::SerialTrainer(const SerialJob& job, const TokenFile& file, Engine& engine)
    : job_(job),
      file_(file),
      split_(split_or_stop(file, job)),
      order_(split_.train, job.sequence, job.batch, job.seed),
      model_(job.model, {.samples = job.micro_batch, .tokens = job.sequence}, engine),
      tokens_(std::size_t{job.micro_batch} * job.sequence),
      targets_(tokens_.size()) {
  HOLMES_ASSERT(job.batch % job.micro_batch == 0, "micro-batches fill the batch");
  HOLMES_ASSERT(job.batch / job.micro_batch % job.reduction_leaves == 0,
                "each leaf has the same number of micro-batches");
  model_.initialise_all(job.seed);
}

float SerialTrainer::forward(Step step, MicroBatch micro_batch) {
  fill_micro_batch(file_, order_, step, micro_batch, job_.micro_batch, job_.sequence, tokens_,
                   targets_);
  return model_.forward(tokens_, targets_);
}

SerialTrainer::Gradients SerialTrainer::sum_leaf(std::uint32_t leaf, std::vector<double>& losses) {
  const std::uint32_t count = job_.batch / job_.micro_batch;
  const std::uint32_t in_leaf = count / job_.reduction_leaves;
  model_.zero_gradients();
  for (std::uint32_t i = 0; i < in_leaf; ++i) {
    losses.push_back(double{forward(next_, MicroBatch(leaf * in_leaf + i))});
    model_.backward(tokens_, targets_, 1.0F / static_cast<float>(count));
  }
  Gradients gradients;
  for (auto& layer : model_.layers()) {
    const auto values = layer.gradients.span();
    gradients.emplace_back(values.begin(), values.end());
  }
  return gradients;
}

SerialTrainer::Gradients SerialTrainer::sum_node(std::uint32_t node, std::vector<double>& losses) {
  if (node >= job_.reduction_leaves) return sum_leaf(node - job_.reduction_leaves, losses);
  Gradients left = sum_node(2 * node, losses);
  const Gradients right = sum_node(2 * node + 1, losses);
  for (std::size_t i = 0; i < left.size(); ++i) add(left[i], right[i]);
  return left;
}

SerialStep SerialTrainer::step() {
  std::vector<double> losses;  // in the order of micro-batches, since leaves are visited in order
  const Gradients sum = sum_node(1, losses);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    std::copy(sum[i].begin(), sum[i].end(), model_.layers()[i].gradients.span().begin());
  }
  const float rate = learning_rate(job_.learning_rate, next_.value());
  const double norm = model_.update(job_.optimizer, next_.value(), rate, double{job_.clip_norm});
  next_ = Step(next_.value() + 1);
  return {mean(losses), norm, double{rate}};
}

double SerialTrainer::validate(std::uint32_t micro_batches) {
  const ValidationOrder order(split_.validation, job_.sequence, micro_batches, job_.micro_batch);
  std::vector<double> losses;
  for (std::uint32_t i = 0; i < micro_batches; ++i) {
    fill_validation_micro_batch(file_, order, MicroBatch(i), tokens_, targets_);
    losses.push_back(double{model_.forward(tokens_, targets_)});
  }
  return mean(losses);
}

std::vector<float> SerialTrainer::weights() {
  std::vector<float> all;
  for (auto& layer : model_.layers()) {
    const auto values = layer.parameters.span();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

JobConstants SerialTrainer::constants() const {
  JobConstants job;
  job.model = job_.model;
  job.seed = job_.seed;
  job.batch = job_.batch;
  job.micro_batch = job_.micro_batch;
  job.sequence = job_.sequence;
  job.reduction_leaves = job_.reduction_leaves;
  job.tokenizer = "bytes";
  job.validation = job_.validation;
  job.data_hash = file_.hash();
  job.isa = "test";
  return job;
}

Result<std::filesystem::path> SerialTrainer::save(const std::filesystem::path& root,
                                                  std::uint32_t keep) {
  std::vector<LayerValues> values;
  std::vector<MomentValues> moments;
  for (auto& layer : model_.layers()) {
    const auto& specs = layer.layer->parameters();
    values.push_back({specs, layer.parameters.span()});
    moments.push_back({specs, 0, layer.exp_avg.span(), layer.exp_avg_sq.span()});
  }
  HOLMES_TRY_ASSIGN(const auto writer, CheckpointWriter::begin(root, next_));
  HOLMES_TRY_ASSIGN(const auto model_file, writer.write_model_part({}, values));
  HOLMES_TRY_ASSIGN(const auto optimizer_file, writer.write_optimizer_part({}, moments));
  const std::vector<FileSummary> files = {model_file, optimizer_file};
  return writer.publish(constants(), files, keep);
}

Status SerialTrainer::load(const Checkpoint& checkpoint) {
  HOLMES_TRY(check_same_job(checkpoint.job(), constants()));
  for (auto& layer : model_.layers()) {
    const auto& specs = layer.layer->parameters();
    HOLMES_TRY(checkpoint.read_layer(specs, layer.parameters.span()));
    HOLMES_TRY(
        checkpoint.read_layer_moments(specs, 0, layer.exp_avg.span(), layer.exp_avg_sq.span()));
  }
  next_ = checkpoint.step();
  return {};
}

SerialRun serial_train(const SerialJob& job, const TokenFile& file, Engine& engine,
                       std::uint64_t steps) {
  SerialTrainer trainer(job, file, engine);
  SerialRun run;
  for (std::uint64_t i = 0; i < steps; ++i) run.steps.push_back(trainer.step());
  run.weights = trainer.weights();
  return run;
}

}  // namespace holmes::testing

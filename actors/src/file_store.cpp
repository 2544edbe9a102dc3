#include "file_store.hpp"

namespace holmes::actors {

namespace {

class FileStore final : public StateStore {
 public:
  FileStore(std::filesystem::path root, std::uint32_t keep, model::JobConstants constants,
            std::span<const model::TokenizerFile> tokenizer)
      : root_(std::move(root)),
        keep_(keep),
        constants_(std::move(constants)),
        tokenizer_(tokenizer.begin(), tokenizer.end()) {}

  Status load(const std::string& folder, std::span<const LayerState> layers) override {
    HOLMES_TRY_ASSIGN(const auto checkpoint, model::Checkpoint::open(folder, {&constants_, false}));
    for (const auto& layer : layers) {
      HOLMES_TRY(checkpoint.read_layer(layer.table->parameters, layer.parameters));
      HOLMES_TRY(checkpoint.read_layer_moments(layer.table->parameters, layer.shard.begin,
                                               layer.exp_avg, layer.exp_avg_sq));
    }
    return {};
  }

  Result<std::vector<SavedFile>> save(const SaveRequest& request) override {
    HOLMES_TRY_ASSIGN(const auto writer, model::CheckpointWriter::join(root_, request.step));
    std::vector<SavedFile> files;
    const auto add = [&files](const model::FileSummary& file) {
      files.push_back({file.name, file.bytes, file.hash});
    };
    if (request.writes_parameters) {
      std::vector<model::LayerValues> values;
      for (const auto& layer : request.layers)
        values.push_back({layer.table->parameters, layer.parameters});
      HOLMES_TRY_ASSIGN(const auto file,
                        writer.write_model_part(part(request.stage, request.stage_count), values));
      add(file);
    }
    std::vector<model::MomentValues> moments;
    for (const auto& layer : request.layers)
      moments.push_back(
          {layer.table->parameters, layer.shard.begin, layer.exp_avg, layer.exp_avg_sq});
    HOLMES_TRY_ASSIGN(const auto file, writer.write_optimizer_part(
                                           part(request.member, request.member_count), moments));
    add(file);
    return files;
  }

  Result<std::string> publish(Step step, const std::vector<SavedFile>& files) override {
    HOLMES_TRY_ASSIGN(const auto writer, model::CheckpointWriter::join(root_, step));
    std::vector<model::FileSummary> summaries;
    for (const auto& file : files) summaries.push_back({file.name, file.bytes, file.hash});
    HOLMES_TRY_ASSIGN(const auto folder, writer.publish(constants_, summaries, keep_, tokenizer_));
    return folder.string();
  }

 private:
  static model::PartNumber part(std::size_t index, std::size_t count) {
    return {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(count)};
  }

  std::filesystem::path root_;
  std::uint32_t keep_;
  model::JobConstants constants_;
  std::vector<model::TokenizerFile> tokenizer_;
};

/// Null where the job has none.
Result<std::unique_ptr<model::Tokenizer>> open_tokenizer(const JobConfig& job) {
  if (job.data.tokenizer == model::kNoTokenizer) return std::unique_ptr<model::Tokenizer>();
  return model::make_tokenizer(job.data.tokenizer);
}

/// What results have the same bits on: the hosts' own processors, or GPUs.
std::string arithmetic_of(const JobConfig& job) {
  for (const auto& host : job.cluster.hosts)
    for (const auto& device : host.devices)
      if (device.kind == kCudaDevice) return job.train.tf32 ? "cuda with tf32" : "cuda";
  return model::instruction_set();
}

model::JobConstants constants_of(const JobConfig& job, std::string data_hash,
                                 const model::Tokenizer* tokenizer) {
  auto leaves = job.train.shape.reduction_leaves;
  if (leaves == 0) leaves = partition::default_reduction_leaves(job.train.shape);
  return {job.model,
          job.train.seed,
          job.train.shape.batch,
          job.train.shape.micro_batch,
          job.train.sequence,
          leaves,
          std::string(tokenizer != nullptr ? tokenizer->name() : model::kNoTokenizer),
          job.data.validation,
          std::move(data_hash),
          arithmetic_of(job)};
}

}  // namespace

Result<model::JobConstants> job_constants(const JobConfig& job, std::string data_hash) {
  HOLMES_TRY_ASSIGN(const auto tokenizer, open_tokenizer(job));
  return constants_of(job, std::move(data_hash), tokenizer.get());
}

std::filesystem::path checkpoint_root(const JobConfig& job) {
  return job.run.folder / "checkpoints";
}

Result<std::unique_ptr<StateStore>> make_file_store(const JobConfig& job, std::string data_hash) {
  HOLMES_TRY_ASSIGN(const auto tokenizer, open_tokenizer(job));
  std::span<const model::TokenizerFile> files;
  if (tokenizer != nullptr) files = tokenizer->files();
  return std::unique_ptr<StateStore>(
      std::make_unique<FileStore>(checkpoint_root(job), job.run.keep,
                                  constants_of(job, std::move(data_hash), tokenizer.get()), files));
}

}  // namespace holmes::actors

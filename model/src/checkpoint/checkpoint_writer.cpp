#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>

#include "checkpoint/contents.hpp"
#include "checkpoint/file_writer.hpp"
#include "checkpoint/layout.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/retention.hpp"
#include "holmes/base/assert.hpp"
#include "holmes/model/checkpoint.hpp"

namespace holmes::model {
namespace {

const std::map<std::string, std::string> kFileMetadata = {{"format", "pt"}};

Error folder_error(const std::string& action, const std::filesystem::path& folder,
                   const std::error_code& why) {
  return system_error("cannot " + action + " checkpoint folder " + folder.string(), why.value());
}

std::vector<std::uint64_t> wide(const std::vector<std::size_t>& shape) {
  return {shape.begin(), shape.end()};
}

Status write_descriptions(const std::filesystem::path& folder, const Manifest& manifest,
                          const Contents& contents) {
  HOLMES_TRY(write_file(folder / kConfigName, encode_config(manifest.job.model)));
  HOLMES_TRY(write_file(folder / kIndexName,
                        encode_index(contents.file_of_parameter(), contents.parameter_bytes())));
  HOLMES_TRY(write_file(folder / kManifestName, encode(manifest)));
  return sync_folder(folder);
}

/// Gives the folder its final name. A checkpoint of the same step is exchanged for the new one in
/// one go, so that at no moment there is none.
Status put_in_place(const std::filesystem::path& unfinished, const std::filesystem::path& folder) {
  const auto rename = [&](unsigned flags) {
    return ::renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, folder.c_str(), flags);
  };
  if (rename(0) == 0) return {};
  if (errno == ENOTEMPTY || errno == EEXIST) {
    if (rename(RENAME_EXCHANGE) == 0) return {};
  }
  return system_error("cannot name checkpoint " + folder.string(), errno);
}

/// Deletes what an interrupted writer of the same step left: parts of another layout.
Status delete_strangers(const std::filesystem::path& folder, std::span<const FileSummary> files) {
  std::error_code failed;
  std::vector<std::filesystem::path> strangers;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const auto is_this = [&](const FileSummary& file) {
      return file.name == entry->path().filename();
    };
    if (std::none_of(files.begin(), files.end(), is_this)) strangers.push_back(entry->path());
  }
  for (const auto& path : strangers) {
    if (!failed) std::filesystem::remove_all(path, failed);
  }
  return failed ? Status(folder_error("clear", folder, failed)) : Status();
}

Status write_and_publish(const std::filesystem::path& root, const std::filesystem::path& unfinished,
                         const Manifest& base, std::span<const TokenizerFile> tokenizer) {
  HOLMES_TRY_ASSIGN(const Contents contents, Contents::load(unfinished, base.files));
  Manifest manifest = base;
  manifest.parameters = contents.parameters();
  HOLMES_TRY(delete_strangers(unfinished, base.files));
  for (const auto& file : tokenizer) HOLMES_TRY(write_file(unfinished / file.name, file.content));
  HOLMES_TRY(write_descriptions(unfinished, manifest, contents));
  HOLMES_TRY(put_in_place(unfinished, root / step_name(manifest.step)));
  return sync_folder(root);
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::filesystem::path root, Step step)
    : root_(std::move(root)),
      step_(step),
      unfinished_(root_ / (step_name(step) + std::string(kUnfinishedSuffix))) {}

Result<CheckpointWriter> CheckpointWriter::begin(const std::filesystem::path& root, Step step) {
  CheckpointWriter writer(root, step);
  std::error_code failed;
  std::filesystem::remove_all(writer.unfinished_, failed);
  if (failed) return folder_error("clear", writer.unfinished_, failed);
  std::filesystem::create_directories(writer.unfinished_, failed);
  if (failed) return folder_error("make", writer.unfinished_, failed);
  return writer;
}

Result<CheckpointWriter> CheckpointWriter::join(const std::filesystem::path& root, Step step) {
  CheckpointWriter writer(root, step);
  std::error_code failed;
  std::filesystem::create_directories(writer.unfinished_, failed);
  if (failed) return folder_error("make", writer.unfinished_, failed);
  return writer;
}

Result<FileSummary> CheckpointWriter::write_model_part(PartNumber part,
                                                       std::span<const LayerValues> layers) const {
  HOLMES_ASSERT(part.index < part.count && part.count <= kPartsMax, "no such part");
  std::vector<TensorToWrite> tensors;
  for (const auto& layer : layers) {
    for (const auto& tensor : layer.parameters) {
      if (tensor.tied_copy) continue;
      HOLMES_ASSERT(tensor.offset + tensor.count <= layer.values.size(), tensor.name.c_str());
      tensors.push_back({tensor.name, Dtype::kF32, wide(tensor.shape),
                         std::as_bytes(layer.values.subspan(tensor.offset, tensor.count))});
    }
  }
  return write_safetensors(unfinished_ / part_name(kModelPart, part), tensors, kFileMetadata);
}

Result<FileSummary> CheckpointWriter::write_optimizer_part(
    PartNumber part, std::span<const MomentValues> moments) const {
  HOLMES_ASSERT(part.index < part.count && part.count <= kPartsMax, "no such part");
  std::vector<TensorToWrite> tensors;
  for (const auto& range : moments) {
    HOLMES_ASSERT(range.exp_avg.size() == range.exp_avg_sq.size(), "both moments of each element");
    for (const auto& run : runs_of(range.parameters, range.first, range.exp_avg.size())) {
      if (run.tensor->tied_copy) continue;
      const auto append = [&](Moment moment, std::span<const float> values) {
        tensors.push_back({encode(MomentName{moment, run.tensor->name, run.first, run.count}),
                           Dtype::kF32,
                           {run.count},
                           std::as_bytes(values.subspan(run.offset, run.count))});
      };
      append(Moment::kExpAvg, range.exp_avg);
      append(Moment::kExpAvgSq, range.exp_avg_sq);
    }
  }
  return write_safetensors(unfinished_ / part_name(kOptimizerPart, part), tensors, kFileMetadata);
}

Result<std::filesystem::path> CheckpointWriter::publish(
    const JobConstants& job, std::span<const FileSummary> files, std::uint32_t keep,
    std::span<const TokenizerFile> tokenizer) const {
  HOLMES_ASSERT(keep > 0, "a published checkpoint is kept");
  const Manifest manifest{step_, job, {}, {files.begin(), files.end()}};
  if (auto published = write_and_publish(root_, unfinished_, manifest, tokenizer); !published) {
    abandon();
    return published.error();
  }
  // What cannot be deleted takes room but harms nobody: the checkpoint stands.
  delete_old_checkpoints(root_, step_, keep);
  return root_ / step_name(step_);
}

void CheckpointWriter::abandon() const {
  std::error_code ignored;
  std::filesystem::remove_all(unfinished_, ignored);
}

}  // namespace holmes::model

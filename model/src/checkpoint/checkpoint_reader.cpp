#include <algorithm>

#include "checkpoint/contents.hpp"
#include "checkpoint/layout.hpp"
#include "checkpoint/manifest.hpp"
#include "data/mapped_file.hpp"
#include "holmes/base/assert.hpp"
#include "holmes/model/checkpoint.hpp"

namespace holmes::model {
namespace {

/// Thousands of layers need some megabytes.
constexpr std::size_t kManifestBytesMax = std::size_t{64} << 20;

Result<Manifest> read_manifest_file(const std::filesystem::path& folder) {
  std::error_code failed;
  if (!std::filesystem::is_directory(folder, failed)) {
    return Error(ErrorCode::kNotFound, "checkpoint " + folder.string() +
                                           " does not exist; name a folder such as "
                                           "RUN/checkpoints/step-00000100");
  }
  const auto path = folder / kManifestName;
  const auto file = MappedFile::open(path, "checkpoint file");
  if (!file) {
    return Error(ErrorCode::kCorrupt,
                 file.error().message() + "; is " + folder.string() + " a checkpoint?");
  }
  const auto bytes = file->bytes();
  if (bytes.size() > kManifestBytesMax) {
    return Error(ErrorCode::kCorrupt, path.string() + ": has " + std::to_string(bytes.size()) +
                                          " bytes, too many for a manifest");
  }
  auto manifest =
      parse_manifest({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
  if (manifest || manifest.error().code() != ErrorCode::kCorrupt) return manifest;
  return damaged(manifest.error().message());
}

/// The files hold the very tensors that the manifest names.
Status check_parameters(const std::filesystem::path& folder, const Manifest& manifest,
                        const Contents& contents) {
  for (const auto& expected : manifest.parameters) {
    const auto* found = contents.find(expected.name);
    if (found == nullptr || found->shape != expected.shape) {
      return Error(ErrorCode::kCorrupt,
                   folder.string() + ": tensor " + expected.name +
                       (found == nullptr ? ": is in none of its files"
                                         : ": has another shape than the manifest says"));
    }
  }
  if (manifest.parameters.size() != contents.parameters().size()) {
    return Error(ErrorCode::kCorrupt,
                 folder.string() + ": its files hold tensors that the manifest does not name");
  }
  return {};
}

}  // namespace

struct Checkpoint::State {
  std::filesystem::path folder;
  Manifest manifest;
  Contents contents;
};

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& folder,
                                    const CheckpointOptions& options) {
  HOLMES_TRY_ASSIGN(Manifest manifest, read_manifest_file(folder));
  if (options.job != nullptr) {
    const auto same = check_same_job(manifest.job, *options.job);
    if (!same) return same.error().in("checkpoint " + folder.string());
  }
  HOLMES_TRY_ASSIGN(Contents contents, Contents::load(folder, manifest.files));
  HOLMES_TRY(check_parameters(folder, manifest, contents));
  if (options.verify_hashes) HOLMES_TRY(contents.verify_hashes(manifest.files));
  return Checkpoint(
      std::make_unique<State>(State{folder, std::move(manifest), std::move(contents)}));
}

const std::filesystem::path& Checkpoint::folder() const {
  return state_->folder;
}

Step Checkpoint::step() const {
  return state_->manifest.step;
}

const JobConstants& Checkpoint::job() const {
  return state_->manifest.job;
}

const std::vector<Checkpoint::Parameter>& Checkpoint::parameters() const {
  return state_->manifest.parameters;
}

Status Checkpoint::read_parameters(std::string_view name, std::uint64_t first,
                                   std::span<float> out) const {
  return state_->contents.read(name, first, out);
}

Status Checkpoint::read_moments(std::string_view name, std::uint64_t first,
                                std::span<float> exp_avg, std::span<float> exp_avg_sq) const {
  HOLMES_TRY(state_->contents.read(Moment::kExpAvg, name, first, exp_avg));
  return state_->contents.read(Moment::kExpAvgSq, name, first, exp_avg_sq);
}

Status Checkpoint::read_layer(std::span<const ParameterSpec> parameters,
                              std::span<float> values) const {
  for (const auto& tensor : parameters) {
    HOLMES_ASSERT(tensor.offset + tensor.count <= values.size(), tensor.name.c_str());
    const auto* stored = state_->contents.find(tensor.name);
    if (stored != nullptr && !std::equal(stored->shape.begin(), stored->shape.end(),
                                         tensor.shape.begin(), tensor.shape.end())) {
      return Error(ErrorCode::kInvalidArgument, "checkpoint " + state_->folder.string() +
                                                    ": tensor " + tensor.name +
                                                    ": has another shape than the model's");
    }
    HOLMES_TRY(read_parameters(tensor.name, 0, values.subspan(tensor.offset, tensor.count)));
  }
  return {};
}

Status Checkpoint::read_layer_moments(std::span<const ParameterSpec> parameters, std::size_t first,
                                      std::span<float> exp_avg, std::span<float> exp_avg_sq) const {
  HOLMES_ASSERT(exp_avg.size() == exp_avg_sq.size(), "both moments of each element");
  for (const auto& run : runs_of(parameters, first, exp_avg.size())) {
    const auto avg = exp_avg.subspan(run.offset, run.count);
    const auto avg_sq = exp_avg_sq.subspan(run.offset, run.count);
    if (run.tensor->tied_copy) {
      std::fill(avg.begin(), avg.end(), 0.0F);
      std::fill(avg_sq.begin(), avg_sq.end(), 0.0F);
      continue;
    }
    HOLMES_TRY(read_moments(run.tensor->name, run.first, avg, avg_sq));
  }
  return {};
}

}  // namespace holmes::model

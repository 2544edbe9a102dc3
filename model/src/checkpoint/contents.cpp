#include "checkpoint/contents.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "holmes/base/assert.hpp"

namespace holmes::model {

Error damaged(const std::string& what) {
  return Error(ErrorCode::kCorrupt, what +
                                        "; put an undamaged copy in its place, or move its folder "
                                        "away to resume from the one before");
}

namespace {

/// All parts of a kind are there once, or an error that names one that is not.
Status check_parts(const std::filesystem::path& folder, std::string_view kind,
                   std::span<const FileSummary> files) {
  std::set<std::uint32_t> seen;
  std::uint32_t count = 0;
  for (const auto& file : files) {
    const auto name = parse_part_name(file.name);
    if (!name) return damaged(folder.string() + ": " + file.name + " is no file of a checkpoint");
    if (name->kind != kind) continue;
    if (count != 0 && count != name->part.count) {
      return damaged(folder.string() + ": " + file.name + " belongs to another number of files");
    }
    count = name->part.count;
    if (!seen.insert(name->part.index).second) {
      return damaged(folder.string() + ": " + file.name + " is listed twice");
    }
  }
  if (count == 0) return damaged(folder.string() + ": it has no " + std::string(kind) + " file");
  for (std::uint32_t i = 0; i < count; ++i) {
    if (seen.contains(i)) continue;
    return damaged(folder.string() + ": " + part_name(kind, {i, count}) + " is not listed");
  }
  return {};
}

/// Opens a file that should be as `expected` says.
Result<SafetensorsFile> open_part(const std::filesystem::path& path, const FileSummary& expected) {
  auto file = SafetensorsFile::open(path);
  // A file that was cut short fails here, with the first tensor that is not whole.
  if (!file) return damaged(file.error().message());
  if (file->file_bytes() != expected.bytes) {
    return damaged(path.string() + ": has " + std::to_string(file->file_bytes()) +
                   " bytes, the manifest says " + std::to_string(expected.bytes));
  }
  return file;
}

}  // namespace

Result<Contents> Contents::load(const std::filesystem::path& folder,
                                std::span<const FileSummary> files) {
  HOLMES_TRY(check_parts(folder, kModelPart, files));
  HOLMES_TRY(check_parts(folder, kOptimizerPart, files));
  Contents contents(folder);
  for (const auto& expected : files) {
    HOLMES_TRY_ASSIGN(SafetensorsFile file, open_part(folder / expected.name, expected));
    contents.names_.push_back(expected.name);
    contents.files_.push_back(std::move(file));
  }
  // Parameters first: moments are checked against them.
  for (std::size_t i = 0; i < contents.files_.size(); ++i) {
    if (contents.names_[i].starts_with(kModelPart)) HOLMES_TRY(contents.add_model_file(i));
  }
  for (std::size_t i = 0; i < contents.files_.size(); ++i) {
    if (contents.names_[i].starts_with(kOptimizerPart)) HOLMES_TRY(contents.add_optimizer_file(i));
  }
  for (auto& [name, tensor] : contents.tensors_) {
    HOLMES_TRY(contents.check_moments(name, tensor.exp_avg, Moment::kExpAvg));
    HOLMES_TRY(contents.check_moments(name, tensor.exp_avg_sq, Moment::kExpAvgSq));
  }
  return contents;
}

Status Contents::add_model_file(std::size_t file) {
  for (const auto& info : files_[file].tensors()) {
    if (info.dtype != Dtype::kF32) {
      return corrupt(file, info.name, "is " + std::string(to_string(info.dtype)) + ", not F32");
    }
    const std::uint64_t count = info.bytes / sizeof(float);
    Tensor tensor{parameters_.size(), {0, count, files_[file].bytes(info), file}, {}, {}};
    if (!tensors_.emplace(info.name, std::move(tensor)).second) {
      return corrupt(file, info.name, "also lies in " + file_of_[info.name]);
    }
    parameters_.push_back({info.name, info.shape, count});
    file_of_[info.name] = names_[file];
  }
  return {};
}

Status Contents::add_optimizer_file(std::size_t file) {
  for (const auto& info : files_[file].tensors()) {
    const auto name = parse_moment_name(info.name);
    if (!name || info.dtype != Dtype::kF32 || info.bytes / sizeof(float) != name->count) {
      return corrupt(file, info.name, "is no run of moments");
    }
    const auto tensor = tensors_.find(name->parameter);
    if (tensor == tensors_.end()) {
      return corrupt(file, info.name, "the model has no such tensor");
    }
    const std::uint64_t whole = tensor->second.values.count;
    if (name->first > whole || name->count > whole - name->first) {
      return corrupt(file, info.name, "the tensor has only " + std::to_string(whole) + " elements");
    }
    auto& runs =
        name->moment == Moment::kExpAvg ? tensor->second.exp_avg : tensor->second.exp_avg_sq;
    runs.push_back({name->first, name->count, files_[file].bytes(info), file});
  }
  return {};
}

Status Contents::check_moments(const std::string& name, std::vector<Run>& runs,
                               Moment moment) const {
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
  const std::uint64_t whole = tensors_.find(name)->second.values.count;
  const auto missing = [&](std::uint64_t from, std::uint64_t to) {
    return damaged(folder_.string() + ": no optimizer file has " +
                   encode(MomentName{moment, name, from, to - from}));
  };
  std::uint64_t end = 0;
  for (const auto& run : runs) {
    if (run.first < end) {
      return corrupt(run.file, encode(MomentName{moment, name, run.first, run.count}),
                     "overlaps another run");
    }
    if (run.first > end) return missing(end, run.first);
    end += run.count;
  }
  if (end != whole) return missing(end, whole);
  return {};
}

Error Contents::corrupt(std::size_t file, const std::string& tensor, const std::string& why) const {
  return damaged((folder_ / names_[file]).string() + ": tensor " + tensor + ": " + why);
}

std::uint64_t Contents::parameter_bytes() const {
  return std::accumulate(parameters_.begin(), parameters_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Checkpoint::Parameter& parameter) {
                           return sum + parameter.count * sizeof(float);
                         });
}

Status Contents::verify_hashes(std::span<const FileSummary> files) const {
  HOLMES_ASSERT(files.size() == files_.size(), "the files that were loaded");
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string hash = files_[i].hash();
    if (hash == files[i].hash) continue;
    return damaged((folder_ / names_[i]).string() + ": its content has changed (hash " + hash +
                   ", the manifest says " + files[i].hash + ")");
  }
  return {};
}

const Checkpoint::Parameter* Contents::find(std::string_view name) const {
  const auto tensor = tensors_.find(name);
  return tensor == tensors_.end() ? nullptr : &parameters_[tensor->second.index];
}

Result<const Contents::Tensor*> Contents::locate(std::string_view name, std::uint64_t first,
                                                 std::uint64_t count) const {
  const auto bad = [&](const std::string& why) {
    return Error(ErrorCode::kInvalidArgument,
                 "checkpoint " + folder_.string() + ": tensor " + std::string(name) + ": " + why);
  };
  const auto tensor = tensors_.find(name);
  if (tensor == tensors_.end()) return bad("it has none of that name");
  const std::uint64_t whole = tensor->second.values.count;
  if (first > whole || count > whole - first) {
    return bad("asked for elements " + std::to_string(first) + "+" + std::to_string(count) +
               " of " + std::to_string(whole));
  }
  return &tensor->second;
}

Status Contents::read(std::string_view name, std::uint64_t first, std::span<float> out) const {
  HOLMES_TRY_ASSIGN(const Tensor* tensor, locate(name, first, out.size()));
  const auto bytes = tensor->values.bytes.subspan(first * sizeof(float), out.size_bytes());
  std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(out).begin());
  return {};
}

Status Contents::read(Moment moment, std::string_view name, std::uint64_t first,
                      std::span<float> out) const {
  HOLMES_TRY_ASSIGN(const Tensor* tensor, locate(name, first, out.size()));
  const auto& runs = moment == Moment::kExpAvg ? tensor->exp_avg : tensor->exp_avg_sq;
  const std::uint64_t last = first + out.size();
  for (const auto& run : runs) {
    const std::uint64_t begin = std::max(first, run.first);
    const std::uint64_t end = std::min(last, run.first + run.count);
    if (begin >= end) continue;
    const auto bytes =
        run.bytes.subspan((begin - run.first) * sizeof(float), (end - begin) * sizeof(float));
    const auto part = out.subspan(begin - first, end - begin);
    std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(part).begin());
  }
  return {};
}

}  // namespace holmes::model

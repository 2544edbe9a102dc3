#pragma once

// The safetensors files of one checkpoint, opened and checked together: which tensor and which run
// of moments lies where.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/layout.hpp"
#include "holmes/model/checkpoint.hpp"

namespace holmes::model {

/// kCorrupt with `what` and what to do about a checkpoint that is not whole.
Error damaged(const std::string& what);

class Contents {
 public:
  /// kCorrupt when a file is missing, has another size or does not hold what it should, or when
  /// the files together do not hold each parameter and each of its moments once.
  static Result<Contents> load(const std::filesystem::path& folder,
                               std::span<const FileSummary> files);

  /// In the order of the files, and within them.
  const std::vector<Checkpoint::Parameter>& parameters() const { return parameters_; }
  const std::map<std::string, std::string>& file_of_parameter() const { return file_of_; }
  std::uint64_t parameter_bytes() const;

  Status verify_hashes(std::span<const FileSummary> files) const;

  const Checkpoint::Parameter* find(std::string_view name) const;
  Status read(std::string_view name, std::uint64_t first, std::span<float> out) const;
  Status read(Moment moment, std::string_view name, std::uint64_t first,
              std::span<float> out) const;

 private:
  /// Elements [first, first + count) of a parameter or moment.
  struct Run {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::span<const std::byte> bytes;
    std::size_t file = 0;
  };
  struct Tensor {
    std::size_t index = 0;  ///< In parameters_.
    Run values;
    std::vector<Run> exp_avg;
    std::vector<Run> exp_avg_sq;
  };

  explicit Contents(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Status add_model_file(std::size_t file);
  Status add_optimizer_file(std::size_t file);
  Status check_moments(const std::string& name, std::vector<Run>& runs, Moment moment) const;
  Error corrupt(std::size_t file, const std::string& tensor, const std::string& why) const;
  Result<const Tensor*> locate(std::string_view name, std::uint64_t first,
                               std::uint64_t count) const;

  std::filesystem::path folder_;
  std::vector<std::string> names_;  ///< Of files_.
  std::vector<SafetensorsFile> files_;
  std::vector<Checkpoint::Parameter> parameters_;
  std::map<std::string, std::string> file_of_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace holmes::model

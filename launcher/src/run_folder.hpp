#pragma once

// The folder of one run: locked against a second `holmes train`, with the files that people and
// programs read beside the checkpoints (which the session writes).
//
//   job.toml  plan.json  processes.json  metrics.jsonl  logs/<host>.log  checkpoints/  lock
//
// Threads: one at a time. The lock lasts as long as the object.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/result.hpp"

namespace holmes::launcher {

/// Closes a descriptor when it goes.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor();
  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }

 private:
  int value_ = -1;
};

/// Of a run folder, which need not exist. What an interrupted save left is no checkpoint.
bool has_checkpoints(const std::filesystem::path& folder);

enum class RunStart : std::uint8_t {
  kFresh,      ///< Refused where checkpoints lie already.
  kOverwrite,  ///< What an earlier run left is removed.
  kResume,     ///< What an earlier run left is continued.
};

class RunFolder {
 public:
  /// Makes the folder and takes its lock; nothing that lies in it is changed before begin().
  /// kInvalidArgument: not writable, in use, or `start` does not fit what lies there.
  static Result<RunFolder> open(const std::filesystem::path& path, RunStart start);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path metrics_file() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path logs() const { return path_ / "logs"; }
  std::filesystem::path log_file(std::string_view host) const;

  /// Once nothing can be refused any more: removes what `start` says, makes logs/, and keeps a copy
  /// of the job file as job.toml. kInvalidArgument: the folder cannot be written.
  Status begin(const std::filesystem::path& job_file) const;

  /// Writes `name` whole: readers see the old content or the new one.
  Status write(std::string_view name, std::string_view content) const;

 private:
  RunFolder(std::filesystem::path path, RunStart start, Descriptor lock)
      : path_(std::move(path)), start_(start), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  RunStart start_;
  Descriptor lock_;
};

/// The last line of a text file that is not empty, cut when absurdly long; "" without one.
std::string last_line(const std::filesystem::path& file);

/// Content of processes.json: which process serves which host; only those that run.
struct AgentProcess {
  std::string host;
  int pid = 0;
};
std::string processes_json(const std::vector<AgentProcess>& processes);

}  // namespace holmes::launcher

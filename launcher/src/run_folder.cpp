#include "run_folder.hpp"

#include <cerrno>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "console.hpp"
#include "holmes/model/checkpoint.hpp"

namespace holmes::launcher {
namespace fs = std::filesystem;
namespace {

Error refusal(const fs::path& path, const std::string& why) {
  return Error(ErrorCode::kInvalidArgument, "run folder " + path.string() + ": " + why);
}

std::string reason(int errno_value) {
  return std::generic_category().message(errno_value);
}

Result<Descriptor> take_lock(const fs::path& path) {
  Descriptor lock(::open((path / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock)
    return refusal(path, "cannot be written (" + reason(errno) +
                             "); choose another with --set run.folder=DIR");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return refusal(path,
                   "another holmes train is running in it; stop that one, or choose another "
                   "folder with --set run.folder=DIR");
  return lock;
}

/// Better before the first step than at the first line or checkpoint.
Status check_kinds(const fs::path& path) {
  std::error_code error;
  // A link to nowhere is there, too.
  const auto there = [&](const char* name) {
    return fs::exists(fs::symlink_status(path / name, error));
  };
  for (const char* name : {"checkpoints", "logs"}) {
    if (!there(name)) continue;
    if (!fs::is_directory(path / name, error))
      return refusal(path, std::string(name) + " is not a folder; move it away");
    if (::access((path / name).c_str(), W_OK | X_OK) != 0)
      return refusal(path, std::string(name) + " cannot be written (" + reason(errno) +
                               "); choose another folder with --set run.folder=DIR");
  }
  for (const char* name : {"metrics.jsonl", "plan.json", "processes.json", "job.toml"})
    if (there(name) && !fs::is_regular_file(path / name, error))
      return refusal(path, std::string(name) + " is not a regular file; move it away");
  return {};
}

/// What to overwrite must be of Holmes' making: anything else may be somebody's work.
Status check_overwritable(const fs::path& path) {
  if (const auto foreign = model::find_foreign(path / "checkpoints"))
    return refusal(path, "checkpoints/" + foreign->filename().string() +
                             " is no checkpoint of holmes, and --overwrite would remove it; move "
                             "it away, or choose another folder with --set run.folder=DIR");
  return {};
}

Status keep_job(const RunFolder& folder, const fs::path& job_file) {
  std::ifstream in(job_file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  if (!in) return system_error("cannot read " + job_file.string(), errno);
  return folder.write("job.toml", content.str());
}

Status clear(const fs::path& path) {
  std::error_code error;
  for (const char* name : {"checkpoints", "logs", "metrics.jsonl", "plan.json", "processes.json"}) {
    fs::remove_all(path / name, error);
    if (error) return refusal(path, std::string("cannot remove ") + name + ": " + error.message());
  }
  return {};
}

}  // namespace

bool has_checkpoints(const fs::path& path) {
  return static_cast<bool>(model::find_latest(path / "checkpoints"));
}

Descriptor::~Descriptor() {
  if (value_ >= 0) ::close(value_);
}

Result<RunFolder> RunFolder::open(const fs::path& path, RunStart start) {
  if (start == RunStart::kResume && !has_checkpoints(path))
    return refusal(path,
                   "holds no checkpoint to resume from; train without --resume first, or name "
                   "the run with --set run.folder=DIR");
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    return refusal(
        path, "cannot be made (" + error.message() + "); choose another with --set run.folder=DIR");
  HOLMES_TRY_ASSIGN(Descriptor lock, take_lock(path));
  if (start == RunStart::kFresh && has_checkpoints(path))
    return refusal(path,
                   "holds checkpoints of an earlier run; continue it with --resume, replace "
                   "it with --overwrite, or choose another folder with --set run.folder=DIR");
  HOLMES_TRY(check_kinds(path));
  if (start == RunStart::kOverwrite) HOLMES_TRY(check_overwritable(path));
  return RunFolder(path, start, std::move(lock));
}

Status RunFolder::begin(const fs::path& job_file) const {
  if (start_ == RunStart::kOverwrite) HOLMES_TRY(clear(path_));
  std::error_code error;
  fs::create_directories(logs(), error);
  if (error) return refusal(path_, "cannot make logs/: " + error.message());
  if (auto kept = keep_job(*this, job_file); !kept)
    return refusal(path_, kept.error().message() +
                              "; make room, or choose another folder with --set run.folder=DIR");
  return {};
}

fs::path RunFolder::log_file(std::string_view host) const {
  return logs() / (std::string(host) + ".log");
}

Status RunFolder::write(std::string_view name, std::string_view content) const {
  const fs::path file = path_ / name;
  const fs::path fresh = path_ / (std::string(name) + ".new");
  std::error_code error;
  fs::remove(fresh, error);  // of a run that was killed; or a pipe, at which writing would wait
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) {
    const int why = errno;
    fs::remove(fresh, error);
    return system_error("cannot write " + fresh.string(), why);
  }
  fs::rename(fresh, file, error);
  if (error) return system_error("cannot replace " + file.string(), error.value());
  return {};
}

std::string processes_json(const std::vector<AgentProcess>& processes) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& process : processes)
    list.push_back({{"host", process.host}, {"pid", process.pid}});
  return list.dump(2) + "\n";
}

std::string last_line(const std::filesystem::path& file) {
  constexpr std::streamoff kTailBytes = 4096;
  constexpr std::size_t kShown = 400;
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return "";
  in.seekg(std::max<std::streamoff>(0, static_cast<std::streamoff>(in.tellg()) - kTailBytes));
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) last = line;
  }
  return last.substr(0, kShown);
}

}  // namespace holmes::launcher

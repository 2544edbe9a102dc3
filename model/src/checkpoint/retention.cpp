#include "checkpoint/retention.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "checkpoint/layout.hpp"
#include "holmes/model/checkpoint.hpp"

namespace holmes::model {
namespace {

struct StepFolder {
  Step step;
  std::filesystem::path path;
};

/// Folders named step-N followed by `suffix`, oldest first.
std::vector<StepFolder> step_folders(const std::filesystem::path& root, std::string_view suffix) {
  std::vector<StepFolder> folders;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(root, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const auto step = parse_step_name(entry->path().filename().string(), suffix);
    std::error_code ignored;
    if (step && entry->is_directory(ignored)) folders.push_back({*step, entry->path()});
  }
  std::sort(folders.begin(), folders.end(),
            [](const StepFolder& a, const StepFolder& b) { return a.step < b.step; });
  return folders;
}

/// Has the files that make a checkpoint: not proof that they are good.
bool whole(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(folder / kManifestName, ignored);
}

}  // namespace

void delete_old_checkpoints(const std::filesystem::path& root, Step published, std::uint32_t keep) {
  std::error_code ignored;
  auto folders = step_folders(root, "");
  std::erase_if(folders, [&](const StepFolder& folder) {
    return folder.step >= published || !whole(folder.path);
  });
  const std::size_t kept = std::min<std::size_t>(folders.size(), keep - 1);
  folders.resize(folders.size() - kept);
  for (const auto& folder : folders) {
    std::filesystem::path unfinished = folder.path;
    unfinished += kUnfinishedSuffix;
    std::filesystem::remove_all(unfinished, ignored);
    std::filesystem::rename(folder.path, unfinished, ignored);
  }
  for (const auto& folder : step_folders(root, kUnfinishedSuffix)) {
    if (folder.step <= published) std::filesystem::remove_all(folder.path, ignored);
  }
}

void discard_unfinished(const std::filesystem::path& root) {
  std::error_code ignored;
  for (const auto& folder : step_folders(root, kUnfinishedSuffix))
    std::filesystem::remove_all(folder.path, ignored);
}

std::optional<std::filesystem::path> find_foreign(const std::filesystem::path& root) {
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(root, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const auto name = entry->path().filename().string();
    const bool checkpoint = parse_step_name(name, "") && whole(entry->path());
    if (!checkpoint && !parse_step_name(name, kUnfinishedSuffix)) return entry->path();
  }
  return std::nullopt;
}

Result<std::filesystem::path> find_latest(const std::filesystem::path& root) {
  auto folders = step_folders(root, "");
  std::erase_if(folders, [](const StepFolder& folder) { return !whole(folder.path); });
  if (folders.empty()) {
    return Error(ErrorCode::kNotFound, "there is no checkpoint in " + root.string() +
                                           "; name the folder of a run that has saved one");
  }
  return folders.back().path;
}

}  // namespace holmes::model

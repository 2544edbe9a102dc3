#include "data/watched_file.hpp"

#include "data/content_hash.hpp"

namespace holmes::model {

WatchedFile::WatchedFile(MappedFile file, std::string kind, std::string name)
    : file_(std::move(file)),
      kind_(std::move(kind)),
      name_(std::move(name)),
      modified_ns_(file_.stamp().modified_ns),
      hash_(content_hash(file_.bytes())) {}

Status WatchedFile::unchanged() const {
  const auto stamp = file_.stamp();
  const std::uint64_t bytes = file_.bytes().size();
  if (stamp.bytes >= bytes && stamp.modified_ns == modified_ns_.load()) return {};
  if (stamp.bytes >= bytes && content_hash(file_.bytes()) == hash_) {
    modified_ns_.store(stamp.modified_ns);
    return {};
  }
  return Error(ErrorCode::kInvalidArgument,
               kind_ + " " + name_ + " was changed while the job trained on it (it had " +
                   std::to_string(bytes) + " bytes, it has " + std::to_string(stamp.bytes) +
                   "); put the old one back and continue with --resume");
}

}  // namespace holmes::model

#include "link/early.hpp"

namespace holmes::transport {

bool EarlyWindow::take(std::size_t bytes) {
  if (count_ == kEarlyCountMax || bytes > kEarlyWindowBytes - bytes_) return false;
  ++count_;
  bytes_ += bytes;
  return true;
}

bool EarlyWindow::give_back(std::uint32_t count, std::uint64_t bytes) {
  if (count > count_ || bytes > bytes_) return false;
  count_ -= count;
  bytes_ -= bytes;
  return true;
}

Result<Buffer> EarlyInbox::memory(std::size_t bytes) {
  if (pool_.stats().buffers_lent < kEarlyCountMax)
    if (auto memory = pool_.acquire(bytes)) return memory;
  return Error(ErrorCode::kCorrupt, "more comes early than the window allows");
}

std::optional<EarlyInbox::Kept> EarlyInbox::take(const BulkTag& tag) {
  auto node = kept_.extract(tag);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

void EarlyInbox::drop_below(Generation generation) {
  while (!kept_.empty() && kept_.begin()->first.generation < generation) {
    taken(kept_.begin()->second.payload.size());
    kept_.erase(kept_.begin());
  }
}

void EarlyInbox::taken(std::size_t bytes) {
  ++taken_count_;
  taken_bytes_ += bytes;
}

std::optional<wire::Credit> EarlyInbox::due() {
  if (taken_count_ < kEarlyCountMax / 2 && taken_bytes_ < kEarlyWindowBytes / 2)
    return std::nullopt;
  return wire::Credit{{}, std::exchange(taken_bytes_, 0), std::exchange(taken_count_, 0)};
}

}  // namespace holmes::transport

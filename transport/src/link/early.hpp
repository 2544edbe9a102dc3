#pragma once

// Payloads of collectives that are so short that waiting for a credit would take longer than
// sending them: they go early, without one. A window bounds what a sender may have sent that its
// receiver has not yet taken; the receiver keeps it until it is reserved for.

#include <map>
#include <optional>

#include "holmes/base/buffer.hpp"
#include "wire/codec.hpp"

namespace holmes::transport {

constexpr std::size_t kEarlyBytesMax = 16 * kKiB;
constexpr std::uint32_t kEarlyCountMax = 256;
constexpr std::size_t kEarlyWindowBytes = 1 * kMiB;

/// Both ends know tag and size, so both know this.
inline bool goes_early(const BulkTag& tag, std::uint64_t bytes) {
  return tag.kind == BulkKind::kCollective && bytes <= kEarlyBytesMax;
}

/// The sender's side.
class EarlyWindow {
 public:
  /// False: there is no room now.
  bool take(std::size_t bytes);
  /// False: more than was taken.
  bool give_back(std::uint32_t count, std::uint64_t bytes);

 private:
  std::uint32_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

/// The receiver's side.
class EarlyInbox {
 public:
  struct Kept {
    TensorShape shape;
    Buffer payload;
  };

  /// Memory for a payload that comes before its reservation; kCorrupt: beyond the window.
  Result<Buffer> memory(std::size_t bytes);
  void keep(const BulkTag& tag, Kept payload) { kept_.insert_or_assign(tag, std::move(payload)); }
  bool contains(const BulkTag& tag) const { return kept_.contains(tag); }
  std::optional<Kept> take(const BulkTag& tag);
  /// Drops what belongs to older generations.
  void drop_below(Generation generation);
  void clear() { kept_.clear(); }

  /// A payload that came early is where it belongs, or was dropped.
  void taken(std::size_t bytes);
  /// What to tell the sender, once it is worth a frame.
  std::optional<wire::Credit> due();

 private:
  BufferPool pool_{2 * kEarlyCountMax * kEarlyBytesMax};
  std::map<BulkTag, Kept> kept_;
  std::uint32_t taken_count_ = 0;
  std::uint64_t taken_bytes_ = 0;
};

}  // namespace holmes::transport

#include "tokenizer/bpe_model.hpp"

#include <bit>
#include <limits>
#include <queue>

#include "holmes/base/assert.hpp"
#include "holmes/base/random.hpp"
#include "tokenizer/byte_alphabet.hpp"

namespace holmes::model {
namespace {

constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kNoPair = std::numeric_limits<std::uint64_t>::max();
/// Ids beyond this are a mistake in the file, and would only cost memory.
constexpr std::uint32_t kIdMax = 16'000'000;
/// Up to this many bytes looking through all pairs is faster than a heap.
constexpr std::size_t kShort = 64;

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

Error corrupt(const std::string& what) {
  return Error(ErrorCode::kCorrupt, what);
}

}  // namespace

Status BpeModel::add_token(std::string bytes, std::uint32_t id) {
  const std::string shown = "token \"" + to_byte_alphabet(bytes) + "\"";
  if (id > kIdMax)
    return corrupt(shown + " has the id " + std::to_string(id) + ", which is too large");
  if (bytes.empty()) return corrupt("token " + std::to_string(id) + " is empty");
  if (id >= tokens_.size()) tokens_.resize(id + 1);
  if (!tokens_[id].empty()) return corrupt("id " + std::to_string(id) + " is given twice");
  if (!ids_.emplace(bytes, static_cast<std::int32_t>(id)).second) {
    return corrupt(shown + " is given twice");
  }
  tokens_[id] = std::move(bytes);
  return {};
}

Status BpeModel::add_merge(std::string_view left, std::string_view right) {
  const std::string whole = std::string(left) + std::string(right);
  const auto first = ids_.find(std::string(left));
  const auto second = ids_.find(std::string(right));
  const auto both = ids_.find(whole);
  const auto named = [](std::string_view bytes) {
    return "\"" + to_byte_alphabet(bytes) + "\" is no token of the vocabulary";
  };
  if (first == ids_.end()) return corrupt(named(left));
  if (second == ids_.end()) return corrupt(named(right));
  if (both == ids_.end()) return corrupt(named(whole));
  merges_.push_back({pair_of(first->second, second->second),
                     static_cast<std::uint32_t>(merges_.size()), both->second});
  return {};
}

Status BpeModel::finish() {
  for (unsigned byte = 0; byte < byte_ids_.size(); ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    const auto found = ids_.find(bytes);
    if (found == ids_.end()) {
      return corrupt("byte " + std::to_string(byte) + " (\"" + to_byte_alphabet(bytes) +
                     "\") has no token: a byte-level vocabulary has one for each of the 256");
    }
    byte_ids_[byte] = found->second;
  }
  const std::vector<Merge> ordered = std::move(merges_);
  const std::uint64_t slots = std::bit_ceil(2 * ordered.size() + 2);
  mask_ = slots - 1;
  merges_.assign(slots, {kNoPair, 0, 0});
  for (const Merge& merge : ordered) {
    std::uint64_t at = mix64(merge.pair) & mask_;
    while (merges_[at].pair != kNoPair && merges_[at].pair != merge.pair) at = (at + 1) & mask_;
    if (merges_[at].pair == kNoPair) merges_[at] = merge;  // of equal pairs the first counts
  }
  if (!ignore_merges_) ids_.clear();
  return {};
}

const BpeModel::Merge* BpeModel::find(std::int32_t left, std::int32_t right) const {
  const std::uint64_t pair = pair_of(left, right);
  for (std::uint64_t at = mix64(pair) & mask_;; at = (at + 1) & mask_) {
    if (merges_[at].pair == pair) return &merges_[at];
    if (merges_[at].pair == kNoPair) return nullptr;
  }
}

void BpeModel::encode(std::string_view piece, std::vector<std::int32_t>& ids) const {
  HOLMES_DCHECK(!piece.empty());
  if (ignore_merges_) {
    if (const auto whole = ids_.find(std::string(piece)); whole != ids_.end()) {
      return ids.push_back(whole->second);
    }
  }
  if (piece.size() <= kShort) return encode_short(piece, ids);
  encode_long(piece, ids);
}

void BpeModel::encode_short(std::string_view piece, std::vector<std::int32_t>& ids) const {
  std::array<std::int32_t, kShort + 1> parts;     // NOLINT: filled up to `count` below
  std::array<const Merge*, kShort + 1> merge_at;  // NOLINT: of part i with part i + 1
  std::size_t count = piece.size();
  for (std::size_t i = 0; i < count; ++i)
    parts[i] = byte_ids_[static_cast<unsigned char>(piece[i])];
  for (std::size_t i = 0; i + 1 < count; ++i) merge_at[i] = find(parts[i], parts[i + 1]);
  while (count > 1) {
    std::size_t best = count;
    std::uint32_t rank = kNoRank;
    for (std::size_t i = 0; i + 1 < count; ++i) {
      if (merge_at[i] == nullptr || merge_at[i]->rank >= rank) continue;
      rank = merge_at[i]->rank;
      best = i;
    }
    if (best == count) break;
    parts[best] = merge_at[best]->id;
    --count;
    for (std::size_t i = best + 1; i < count; ++i) parts[i] = parts[i + 1];
    for (std::size_t i = best + 1; i + 1 < count; ++i) merge_at[i] = merge_at[i + 1];
    if (best > 0) merge_at[best - 1] = find(parts[best - 1], parts[best]);
    if (best + 1 < count) merge_at[best] = find(parts[best], parts[best + 1]);
  }
  ids.insert(ids.end(), parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count));
}

/// A part of a long piece; parts are a linked list, merged ones stay as holes.
struct BpeModel::Part {
  std::int32_t id = 0;
  std::uint32_t previous = 0;
  std::uint32_t next = 0;
  bool merged = false;
};

void BpeModel::encode_long(std::string_view piece, std::vector<std::int32_t>& ids) const {
  // Runs longer than this are cut: positions are 32 bits, and nobody's text has such words.
  constexpr std::size_t kPieceMax = std::size_t{1} << 30;
  constexpr std::uint32_t kEnd = kNoRank;
  while (piece.size() > kPieceMax) {
    encode_long(piece.substr(0, kPieceMax), ids);
    piece.remove_prefix(kPieceMax);
  }
  const auto count = static_cast<std::uint32_t>(piece.size());
  std::vector<Part> parts(count);
  struct Candidate {
    std::uint32_t rank;
    std::uint32_t at;
    std::int32_t left;
    std::int32_t right;
    bool operator<(const Candidate& other) const {  // the queue gives the greatest first
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  std::priority_queue<Candidate> queue;
  const auto consider = [&](std::uint32_t at) {
    if (at == kEnd || parts[at].next == kEnd) return;
    const std::int32_t left = parts[at].id;
    const std::int32_t right = parts[parts[at].next].id;
    if (const auto* merge = find(left, right)) queue.push({merge->rank, at, left, right});
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    parts[i] = {byte_ids_[static_cast<unsigned char>(piece[i])], i == 0 ? kEnd : i - 1,
                i + 1 == count ? kEnd : i + 1, false};
  }
  for (std::uint32_t i = 0; i < count; ++i) consider(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Part& left = parts[best.at];
    // What has been merged meanwhile no longer counts.
    if (left.merged || left.id != best.left || left.next == kEnd) continue;
    Part& right = parts[left.next];
    if (right.id != best.right) continue;
    left.id = find(best.left, best.right)->id;
    right.merged = true;
    left.next = right.next;
    if (left.next != kEnd) parts[left.next].previous = best.at;
    consider(left.previous);
    consider(best.at);
  }
  for (std::uint32_t i = 0; i != kEnd; i = parts[i].next) ids.push_back(parts[i].id);
}

}  // namespace holmes::model

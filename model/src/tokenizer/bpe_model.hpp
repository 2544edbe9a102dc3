#pragma once

// Byte-level BPE of single pieces: the vocabulary, and which pairs are merged in which order.
// It knows nothing of special tokens or of how text is cut into pieces. Any thread.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "holmes/base/result.hpp"

namespace holmes::model {

class BpeModel {
 public:
  /// Adds a token of these bytes. kCorrupt when its id or its bytes are given twice.
  Status add_token(std::string bytes, std::uint32_t id);
  /// Adds the next merge. kCorrupt when a part, or both together, are no tokens.
  Status add_merge(std::string_view left, std::string_view right);
  /// After the last token and merge. kCorrupt when a byte has no token: text could be lost.
  Status finish();
  /// A piece that is a token as a whole is that token, whatever the merges say.
  void ignore_merges() { ignore_merges_ = true; }

  std::uint32_t vocabulary() const { return static_cast<std::uint32_t>(tokens_.size()); }
  /// Of an id below vocabulary(); no bytes where the ids have a hole.
  const std::string& bytes(std::uint32_t id) const { return tokens_[id]; }

  /// Appends the ids of one piece, which is not empty.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;

 private:
  struct Merge {
    std::uint64_t pair = 0;
    std::uint32_t rank = 0;
    std::int32_t id = 0;
  };
  struct Part;

  const Merge* find(std::int32_t left, std::int32_t right) const;
  void encode_short(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void encode_long(std::string_view piece, std::vector<std::int32_t>& ids) const;

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<Merge> merges_;  ///< In order; after finish(): a hash table.
  std::uint64_t mask_ = 0;
  bool ignore_merges_ = false;
};

}  // namespace holmes::model

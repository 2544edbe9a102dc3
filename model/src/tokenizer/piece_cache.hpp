#pragma once

// Ids of short pieces that were encoded before. A table of fixed size in which each piece has one
// place; a new piece takes it over. For one thread.

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "holmes/base/random.hpp"

namespace holmes::model {

class PieceCache {
 public:
  static constexpr std::size_t kBytesMax = 16;

  struct Entry {
    std::uint64_t low = 0;   ///< The piece's first bytes ...
    std::uint64_t high = 0;  ///< ... and its last ones.
    std::uint8_t bytes = 0;  ///< 0: nobody's place.
    std::uint8_t count = 0;
    std::array<std::int32_t, 9> ids{};
  };

  PieceCache() : entries_(kEntries) {}

  /// The piece's place, which is its own when found; null for a piece that is too long.
  Entry* find(std::string_view piece, bool& found) {
    if (piece.size() > kBytesMax) return nullptr;
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    read(piece, low, high);
    Entry& entry = entries_[mix64(low ^ mix64(high + piece.size())) % kEntries];
    found = entry.bytes == piece.size() && entry.low == low && entry.high == high;
    if (!found) entry = {low, high, 0, 0, {}};
    return &entry;
  }

  /// Fills the place that find() gave for this piece.
  static void keep(Entry& entry, std::string_view piece, const std::int32_t* ids,
                   std::size_t count) {
    if (count > entry.ids.size()) return;
    std::memcpy(entry.ids.data(), ids, count * sizeof(*ids));
    entry.count = static_cast<std::uint8_t>(count);
    entry.bytes = static_cast<std::uint8_t>(piece.size());
  }

 private:
  static constexpr std::size_t kEntries = std::size_t{1} << 15;

  /// Two words that, with the length, tell any two pieces apart; they overlap in the middle.
  static void read(std::string_view piece, std::uint64_t& low, std::uint64_t& high) {
    const char* data = piece.data();
    const std::size_t size = piece.size();
    if (size >= sizeof(low)) {
      std::memcpy(&low, data, sizeof(low));
      std::memcpy(&high, data + size - sizeof(high), sizeof(high));
    } else if (size >= 4) {
      std::memcpy(&low, data, 4);
      std::memcpy(&high, data + size - 4, 4);
    } else {
      for (std::size_t i = 0; i < size; ++i) low = low << 8 | static_cast<unsigned char>(data[i]);
    }
  }

  std::vector<Entry> entries_;
};

}  // namespace holmes::model

#pragma once

// Causal attention without a T x T matrix in memory, forward and backward. A team has a tile of
// queries (or keys) and walks over tiles of the other kind; scores exist for one pair of tiles, in
// shared memory, and backward computes them again from two numbers that forward kept for each query
// and head. Backward is two kernels, one for the queries' gradients and one for those of keys and
// values, so that each number has one team that adds it up, in a fixed order.
//
// The 256 threads are a 16 x 16 square. Thread (down, across) has rows down + 16 i of the team's
// own tile, and columns across + 16 j of what it computes for them: i < kRows, j < kWide. A head
// has at most 16 kWide channels.

#include "cuda/kernels/math.hpp"
#include "cuda/team.hpp"

namespace holmes::model::cuda {

/// Where heads lie. Query, key and value rows are parts of the rows of one array, as are gradients.
struct AttentionShape {
  std::size_t samples;
  std::size_t tokens;
  std::size_t heads;
  std::size_t kv_heads;  ///< heads / kv_heads consecutive heads share keys and values.
  std::size_t width;     ///< Channels of a head.
  float scale;           ///< Of scores.

  HOLMES_ON_TEAM std::size_t qkv_stride() const { return (heads + 2 * kv_heads) * width; }
  HOLMES_ON_TEAM std::size_t out_stride() const { return heads * width; }
  HOLMES_ON_TEAM std::size_t query(std::size_t sample, std::size_t head) const {
    return sample * tokens * qkv_stride() + head * width;
  }
  HOLMES_ON_TEAM std::size_t key(std::size_t sample, std::size_t kv_head) const {
    return sample * tokens * qkv_stride() + (heads + kv_head) * width;
  }
  HOLMES_ON_TEAM std::size_t value(std::size_t sample, std::size_t kv_head) const {
    return key(sample, kv_head) + kv_heads * width;
  }
  HOLMES_ON_TEAM std::size_t output(std::size_t sample, std::size_t head) const {
    return sample * tokens * out_stride() + head * width;
  }
  HOLMES_ON_TEAM std::size_t statistic(std::size_t sample, std::size_t head) const {
    return (sample * heads + head) * tokens;
  }
};

constexpr int kSide = 16;         ///< Of the square of threads.
constexpr int kWalk = 2 * kSide;  ///< Rows of the tiles that a team walks over.

/// Sizes of a team's tiles, for heads of up to 16 * kWide channels.
template <int kWideOf>
struct AttentionTile {
  static constexpr int kWide = kWideOf;
  static constexpr int kRows = kWide <= 8 ? 4 : 2;  ///< Larger ones would not fit.
  static constexpr int kOwn = kSide * kRows;        ///< Rows of the team's own tile.
  static constexpr int kScoreStride = kWalk + 1;    ///< Odd: columns lie in different banks.
  static constexpr std::size_t kScores = std::size_t{kOwn} * kScoreStride;
};

/// Rows [first, first + tile_rows) of some heads' channels into shared memory, zeros beyond `rows`.
template <int kThreads>
HOLMES_ON_TEAM inline void load_tile(int thread, const float* from, std::size_t stride,
                                     std::size_t first, std::size_t rows, int tile_rows,
                                     std::size_t width, float* to) {
  const std::size_t count = static_cast<std::size_t>(tile_rows) * width;
  for (std::size_t i = static_cast<std::size_t>(thread); i < count; i += kThreads) {
    const std::size_t row = i / width;
    const std::size_t c = i % width;
    to[row * (width + 1) + c] = first + row < rows ? from[(first + row) * stride + c] : 0.0F;
  }
}

/// What one thread has of a product of its own tile's rows and a walked tile's rows.
template <int kRows>
struct Scores {
  float of[kRows][2];
};

/// Rows of `own` times rows of `walked`, for the thread's kRows x 2 pairs.
template <int kRows>
HOLMES_ON_TEAM inline Scores<kRows> row_products(int down, int across, std::size_t width,
                                                 const float* own, const float* walked) {
  Scores<kRows> sums = {};
  for (std::size_t c = 0; c < width; ++c) {
    const float right[2] = {walked[static_cast<std::size_t>(across) * (width + 1) + c],
                            walked[static_cast<std::size_t>(across + kSide) * (width + 1) + c]};
    HOLMES_UNROLLED
    for (int i = 0; i < kRows; ++i) {
      const float left = own[static_cast<std::size_t>(down + kSide * i) * (width + 1) + c];
      sums.of[i][0] += left * right[0];
      sums.of[i][1] += left * right[1];
    }
  }
  return sums;
}

/// A thread's part of the output: kRows rows, kWide columns.
template <int kRows, int kWide>
struct Part {
  float of[kRows][kWide];
};

/// part += factors (own x walked, in shared memory) times the walked tile's rows.
template <class Tile>
HOLMES_ON_TEAM inline void add_weighted_rows(int down, int across, std::size_t width,
                                             const float* factors, const float* walked,
                                             Part<Tile::kRows, Tile::kWide>& part) {
  for (int k = 0; k < kWalk; ++k) {
    float factor[Tile::kRows];
    HOLMES_UNROLLED
    for (int i = 0; i < Tile::kRows; ++i)
      factor[i] = factors[(down + kSide * i) * Tile::kScoreStride + k];
    HOLMES_UNROLLED
    for (int j = 0; j < Tile::kWide; ++j) {
      const int column = across + kSide * j;
      const auto c = static_cast<std::size_t>(column);
      if (c >= width) continue;
      const float value = walked[static_cast<std::size_t>(k) * (width + 1) + c];
      HOLMES_UNROLLED
      for (int i = 0; i < Tile::kRows; ++i) part.of[i][j] += factor[i] * value;
    }
  }
}

/// Writes a thread's part to rows [first, ...) of an array.
template <class Tile>
HOLMES_ON_TEAM inline void store_part(int down, int across, std::size_t width, std::size_t first,
                                      std::size_t rows, std::size_t stride,
                                      const Part<Tile::kRows, Tile::kWide>& part, float* to) {
  HOLMES_UNROLLED
  for (int i = 0; i < Tile::kRows; ++i) {
    const std::size_t row = first + static_cast<std::size_t>(down + kSide * i);
    if (row >= rows) continue;
    HOLMES_UNROLLED
    for (int j = 0; j < Tile::kWide; ++j) {
      const int column = across + kSide * j;
      const auto c = static_cast<std::size_t>(column);
      if (c < width) to[row * stride + c] = part.of[i][j];
    }
  }
}

/// Shared memory of the forward kernel, in floats.
template <class Tile>
struct ForwardTiles {
  float* queries;
  float* keys;
  float* values;
  float* scores;
  float* largest;
  float* sum;
  float* factor;

  HOLMES_ON_TEAM ForwardTiles(float* memory, std::size_t width) {
    queries = memory;
    keys = queries + Tile::kOwn * (width + 1);
    values = keys + kWalk * (width + 1);
    scores = values + kWalk * (width + 1);
    largest = scores + Tile::kScores;
    sum = largest + Tile::kOwn;
    factor = sum + Tile::kOwn;
  }
  static std::size_t count(std::size_t width) {
    return (Tile::kOwn + 2 * kWalk) * (width + 1) + Tile::kScores + 3 * Tile::kOwn;
  }
};

/// The running softmax: `largest` and `sum` of each row change from tile to tile, and what has been
/// added up so far is scaled along.
template <int kWide>
struct AttentionForwardKernel {
  static constexpr int kThreads = kSide * kSide;
  using Tile = AttentionTile<kWide>;
  AttentionShape shape;
  const float* qkv;
  float* largest;  ///< Kept for backward: samples x heads x tokens, as is inverse_sum.
  float* inverse_sum;
  float* y;

  Teams teams() const {
    return {.x = groups_of(shape.tokens, Tile::kOwn),
            .y = static_cast<std::uint32_t>(shape.heads),
            .z = static_cast<std::uint32_t>(shape.samples)};
  }
  std::size_t shared_bytes() const {
    return sizeof(float) * ForwardTiles<Tile>::count(shape.width);
  }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    const ForwardTiles<Tile> tiles(team.template shared<float>(), shape.width);
    const std::size_t head = team.y();
    const std::size_t sample = team.z();
    const std::size_t kv_head = head / (shape.heads / shape.kv_heads);
    const std::size_t first = team.x() * Tile::kOwn;
    typename Team::template Local<Part<Tile::kRows, kWide>> parts;
    team.each([&](int thread) {
      load_tile<kThreads>(thread, qkv + shape.query(sample, head), shape.qkv_stride(), first,
                          shape.tokens, Tile::kOwn, shape.width, tiles.queries);
      parts[thread] = {};
      if (thread >= Tile::kOwn) return;
      tiles.largest[thread] = -INFINITY;
      tiles.sum[thread] = 0;
    });
    const std::size_t last = first + Tile::kOwn < shape.tokens ? first + Tile::kOwn : shape.tokens;
    for (std::size_t key = 0; key < last; key += kWalk) {
      team.each([&](int thread) {
        load_tile<kThreads>(thread, qkv + shape.key(sample, kv_head), shape.qkv_stride(), key,
                            shape.tokens, kWalk, shape.width, tiles.keys);
        load_tile<kThreads>(thread, qkv + shape.value(sample, kv_head), shape.qkv_stride(), key,
                            shape.tokens, kWalk, shape.width, tiles.values);
      });
      team.each([&](int thread) { put_scores(tiles, thread, first, key); });
      team.each([&](int thread) {
        if (thread < Tile::kOwn) raise_largest(tiles, thread);
      });
      team.each([&](int thread) { weigh(tiles, thread, parts[thread]); });
      team.each([&](int thread) {
        if (thread < Tile::kOwn) add_to_sum(tiles, thread);
        add_weighted_rows<Tile>(thread / kSide, thread % kSide, shape.width, tiles.scores,
                                tiles.values, parts[thread]);
      });
    }
    team.each([&](int thread) { finish(tiles, thread, first, sample, head, parts[thread]); });
  }

 private:
  HOLMES_ON_TEAM void put_scores(const ForwardTiles<Tile>& tiles, int thread, std::size_t first,
                                 std::size_t key) const {
    const int down = thread / kSide;
    const int across = thread % kSide;
    const auto products =
        row_products<Tile::kRows>(down, across, shape.width, tiles.queries, tiles.keys);
    HOLMES_UNROLLED
    for (int i = 0; i < Tile::kRows; ++i) {
      HOLMES_UNROLLED
      for (int j = 0; j < 2; ++j) {
        const int row = down + kSide * i;
        const int column = across + kSide * j;
        const std::size_t query = first + static_cast<std::size_t>(row);
        const std::size_t at = key + static_cast<std::size_t>(column);
        const bool sees = at <= query && at < shape.tokens;
        tiles.scores[row * Tile::kScoreStride + column] =
            sees ? products.of[i][j] * shape.scale : -INFINITY;
      }
    }
  }
  HOLMES_ON_TEAM void raise_largest(const ForwardTiles<Tile>& tiles, int row) const {
    float most = tiles.largest[row];
    for (int k = 0; k < kWalk; ++k) {
      const float score = tiles.scores[row * Tile::kScoreStride + k];
      most = score > most ? score : most;
    }
    tiles.factor[row] = exponential(tiles.largest[row] - most);
    tiles.largest[row] = most;
  }
  /// Scores become weights, and what was added up before is scaled to the new largest.
  HOLMES_ON_TEAM void weigh(const ForwardTiles<Tile>& tiles, int thread,
                            Part<Tile::kRows, kWide>& part) const {
    const int down = thread / kSide;
    const int across = thread % kSide;
    HOLMES_UNROLLED
    for (int i = 0; i < Tile::kRows; ++i) {
      const int row = down + kSide * i;
      HOLMES_UNROLLED
      for (int j = 0; j < 2; ++j) {
        float& score = tiles.scores[row * Tile::kScoreStride + across + kSide * j];
        score = exponential(score - tiles.largest[row]);
      }
      HOLMES_UNROLLED
      for (int j = 0; j < kWide; ++j) part.of[i][j] *= tiles.factor[row];
    }
  }
  HOLMES_ON_TEAM void add_to_sum(const ForwardTiles<Tile>& tiles, int row) const {
    float sum = 0;
    for (int k = 0; k < kWalk; ++k) sum += tiles.scores[row * Tile::kScoreStride + k];
    tiles.sum[row] = tiles.sum[row] * tiles.factor[row] + sum;
  }
  HOLMES_ON_TEAM void finish(const ForwardTiles<Tile>& tiles, int thread, std::size_t first,
                             std::size_t sample, std::size_t head,
                             Part<Tile::kRows, kWide>& part) const {
    const int down = thread / kSide;
    HOLMES_UNROLLED
    for (int i = 0; i < Tile::kRows; ++i) {
      const float inverse = 1.0F / tiles.sum[down + kSide * i];
      HOLMES_UNROLLED
      for (int j = 0; j < kWide; ++j) part.of[i][j] *= inverse;
    }
    store_part<Tile>(down, thread % kSide, shape.width, first, shape.tokens, shape.out_stride(),
                     part, y + shape.output(sample, head));
    const std::size_t query = first + static_cast<std::size_t>(thread);
    if (thread >= Tile::kOwn || query >= shape.tokens) return;
    largest[shape.statistic(sample, head) + query] = tiles.largest[thread];
    inverse_sum[shape.statistic(sample, head) + query] = 1.0F / tiles.sum[thread];
  }
};

}  // namespace holmes::model::cuda

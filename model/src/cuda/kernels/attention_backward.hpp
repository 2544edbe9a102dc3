#pragma once

// Backward of attention.hpp. Of a query's output y and its gradient g, and weights p of its keys:
//   delta = g . y,   dscore = p (g . value - delta) scale,
//   dquery = sum of dscore key,   dkey = sum of dscore query,   dvalue = sum of p g.

#include "cuda/kernels/attention.hpp"

namespace holmes::model::cuda {

/// What forward kept of each query and head, and delta; samples x heads x tokens of each.
struct AttentionRows {
  const float* largest;
  const float* inverse_sum;
  const float* delta;
};

/// delta of each query and head: a thread for each.
struct AttentionDeltaKernel {
  static constexpr int kThreads = 256;
  AttentionShape shape;
  const float* y;
  const float* dy;
  float* delta;

  std::size_t count() const { return shape.samples * shape.heads * shape.tokens; }
  Teams teams() const { return {.x = groups_of(count(), kThreads)}; }
  std::size_t shared_bytes() const { return 0; }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    team.each([&](int thread) {
      const std::size_t i = team.x() * kThreads + static_cast<std::size_t>(thread);
      if (i >= shape.samples * shape.heads * shape.tokens) return;
      // Heads of one token are neighbours in memory, so they go to neighbouring threads.
      const std::size_t head = i % shape.heads;
      const std::size_t query = i / shape.heads % shape.tokens;
      const std::size_t sample = i / shape.heads / shape.tokens;
      const std::size_t at = shape.output(sample, head) + query * shape.out_stride();
      float sum = 0;
      for (std::size_t c = 0; c < shape.width; ++c) sum += y[at + c] * dy[at + c];
      delta[shape.statistic(sample, head) + query] = sum;
    });
  }
};

/// Weight and score gradient of a pair of query and key.
struct PairGradient {
  float weight;
  float dscore;
};

HOLMES_ON_TEAM inline PairGradient pair_gradient(const AttentionShape& shape,
                                                 const AttentionRows& rows, std::size_t statistic,
                                                 std::size_t query, std::size_t key, float score,
                                                 float dweight) {
  if (key > query || query >= shape.tokens || key >= shape.tokens) return {0.0F, 0.0F};
  const std::size_t at = statistic + query;
  const float weight = exponential(score * shape.scale - rows.largest[at]) * rows.inverse_sum[at];
  return {weight, weight * (dweight - rows.delta[at]) * shape.scale};
}

/// Shared memory of both kernels, in floats. Products of the first own and walked tiles are scores,
/// those of the second ones gradients of weights.
template <class Tile>
struct BackwardTiles {
  float* own[2];
  float* walked[2];
  float* dscores;
  float* weights;

  HOLMES_ON_TEAM BackwardTiles(float* memory, std::size_t width) {
    own[0] = memory;
    own[1] = own[0] + Tile::kOwn * (width + 1);
    walked[0] = own[1] + Tile::kOwn * (width + 1);
    walked[1] = walked[0] + kWalk * (width + 1);
    dscores = walked[1] + kWalk * (width + 1);
    weights = dscores + Tile::kScores;
  }
  static std::size_t count(std::size_t width) {
    return 2 * (Tile::kOwn + kWalk) * (width + 1) + 2 * Tile::kScores;
  }
};

/// Calls body(place, row, column, score, dweight) for the thread's pairs of own and walked rows.
template <class Tile, class Body>
HOLMES_ON_TEAM inline void each_pair(const BackwardTiles<Tile>& tiles, int thread,
                                     std::size_t width, const Body& body) {
  const int down = thread / kSide;
  const int across = thread % kSide;
  const auto scores = row_products<Tile::kRows>(down, across, width, tiles.own[0], tiles.walked[0]);
  const auto dweights =
      row_products<Tile::kRows>(down, across, width, tiles.own[1], tiles.walked[1]);
  HOLMES_UNROLLED
  for (int i = 0; i < Tile::kRows; ++i) {
    HOLMES_UNROLLED
    for (int j = 0; j < 2; ++j) {
      const int row = down + kSide * i;
      const int column = across + kSide * j;
      body(row * Tile::kScoreStride + column, static_cast<std::size_t>(row),
           static_cast<std::size_t>(column), scores.of[i][j], dweights.of[i][j]);
    }
  }
}

/// Gradients of queries: a team for each tile of queries of a head.
template <int kWide>
struct AttentionQueriesKernel {
  static constexpr int kThreads = kSide * kSide;
  using Tile = AttentionTile<kWide>;
  AttentionShape shape;
  const float* qkv;
  const float* dy;
  AttentionRows rows;
  float* dqkv;

  Teams teams() const {
    return {.x = groups_of(shape.tokens, Tile::kOwn),
            .y = static_cast<std::uint32_t>(shape.heads),
            .z = static_cast<std::uint32_t>(shape.samples)};
  }
  std::size_t shared_bytes() const {
    return sizeof(float) * BackwardTiles<Tile>::count(shape.width);
  }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    const BackwardTiles<Tile> tiles(team.template shared<float>(), shape.width);
    const std::size_t head = team.y();
    const std::size_t sample = team.z();
    const std::size_t kv_head = head / (shape.heads / shape.kv_heads);
    const std::size_t first = team.x() * Tile::kOwn;
    typename Team::template Local<Part<Tile::kRows, kWide>> parts;
    team.each([&](int thread) {
      parts[thread] = {};
      load_tile<kThreads>(thread, qkv + shape.query(sample, head), shape.qkv_stride(), first,
                          shape.tokens, Tile::kOwn, shape.width, tiles.own[0]);
      load_tile<kThreads>(thread, dy + shape.output(sample, head), shape.out_stride(), first,
                          shape.tokens, Tile::kOwn, shape.width, tiles.own[1]);
    });
    const std::size_t last = first + Tile::kOwn < shape.tokens ? first + Tile::kOwn : shape.tokens;
    for (std::size_t key = 0; key < last; key += kWalk) {
      team.each([&](int thread) {
        load_tile<kThreads>(thread, qkv + shape.key(sample, kv_head), shape.qkv_stride(), key,
                            shape.tokens, kWalk, shape.width, tiles.walked[0]);
        load_tile<kThreads>(thread, qkv + shape.value(sample, kv_head), shape.qkv_stride(), key,
                            shape.tokens, kWalk, shape.width, tiles.walked[1]);
      });
      team.each([&](int thread) {
        each_pair(tiles, thread, shape.width,
                  [&](int place, std::size_t row, std::size_t column, float score, float dweight) {
                    tiles.dscores[place] = pair_gradient(shape, rows, shape.statistic(sample, head),
                                                         first + row, key + column, score, dweight)
                                               .dscore;
                  });
      });
      team.each([&](int thread) {
        add_weighted_rows<Tile>(thread / kSide, thread % kSide, shape.width, tiles.dscores,
                                tiles.walked[0], parts[thread]);
      });
    }
    team.each([&](int thread) {
      store_part<Tile>(thread / kSide, thread % kSide, shape.width, first, shape.tokens,
                       shape.qkv_stride(), parts[thread], dqkv + shape.query(sample, head));
    });
  }
};

/// Gradients of keys and values: a team for each tile of keys of a head of keys. It walks over the
/// heads that share them, first to last, and over the queries that see them.
template <int kWide>
struct AttentionKeysKernel {
  static constexpr int kThreads = kSide * kSide;
  using Tile = AttentionTile<kWide>;
  using OwnPart = Part<Tile::kRows, kWide>;
  AttentionShape shape;
  const float* qkv;
  const float* dy;
  AttentionRows rows;
  float* dqkv;

  Teams teams() const {
    return {.x = groups_of(shape.tokens, Tile::kOwn),
            .y = static_cast<std::uint32_t>(shape.kv_heads),
            .z = static_cast<std::uint32_t>(shape.samples)};
  }
  std::size_t shared_bytes() const {
    return sizeof(float) * BackwardTiles<Tile>::count(shape.width);
  }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    const BackwardTiles<Tile> tiles(team.template shared<float>(), shape.width);
    const std::size_t kv_head = team.y();
    const std::size_t sample = team.z();
    const std::size_t first = team.x() * Tile::kOwn;
    const std::size_t shared_by = shape.heads / shape.kv_heads;
    typename Team::template Local<OwnPart> dkeys;
    typename Team::template Local<OwnPart> dvalues;
    team.each([&](int thread) {
      dkeys[thread] = {};
      dvalues[thread] = {};
      load_tile<kThreads>(thread, qkv + shape.key(sample, kv_head), shape.qkv_stride(), first,
                          shape.tokens, Tile::kOwn, shape.width, tiles.own[0]);
      load_tile<kThreads>(thread, qkv + shape.value(sample, kv_head), shape.qkv_stride(), first,
                          shape.tokens, Tile::kOwn, shape.width, tiles.own[1]);
    });
    for (std::size_t head = kv_head * shared_by; head < (kv_head + 1) * shared_by; ++head)
      for (std::size_t query = first; query < shape.tokens; query += kWalk) {
        load_and_compare(team, tiles, sample, head, first, query);
        team.each([&](int thread) {
          const int down = thread / kSide;
          const int across = thread % kSide;
          add_weighted_rows<Tile>(down, across, shape.width, tiles.weights, tiles.walked[1],
                                  dvalues[thread]);
          add_weighted_rows<Tile>(down, across, shape.width, tiles.dscores, tiles.walked[0],
                                  dkeys[thread]);
        });
      }
    team.each([&](int thread) {
      store(thread, first, dkeys[thread], dqkv + shape.key(sample, kv_head));
      store(thread, first, dvalues[thread], dqkv + shape.value(sample, kv_head));
    });
  }

 private:
  /// Weights and score gradients of the own keys and a tile of queries of a head.
  template <class Team>
  HOLMES_ON_TEAM void load_and_compare(Team& team, const BackwardTiles<Tile>& tiles,
                                       std::size_t sample, std::size_t head, std::size_t first,
                                       std::size_t query) const {
    team.each([&](int thread) {
      load_tile<kThreads>(thread, qkv + shape.query(sample, head), shape.qkv_stride(), query,
                          shape.tokens, kWalk, shape.width, tiles.walked[0]);
      load_tile<kThreads>(thread, dy + shape.output(sample, head), shape.out_stride(), query,
                          shape.tokens, kWalk, shape.width, tiles.walked[1]);
    });
    team.each([&](int thread) {
      each_pair(tiles, thread, shape.width,
                [&](int place, std::size_t row, std::size_t column, float score, float dweight) {
                  const PairGradient pair =
                      pair_gradient(shape, rows, shape.statistic(sample, head), query + column,
                                    first + row, score, dweight);
                  tiles.weights[place] = pair.weight;
                  tiles.dscores[place] = pair.dscore;
                });
    });
  }
  HOLMES_ON_TEAM void store(int thread, std::size_t first, const OwnPart& part, float* to) const {
    store_part<Tile>(thread / kSide, thread % kSide, shape.width, first, shape.tokens,
                     shape.qkv_stride(), part, to);
  }
};

}  // namespace holmes::model::cuda

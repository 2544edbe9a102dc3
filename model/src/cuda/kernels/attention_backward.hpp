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
    return sizeof(float) * (2 * (Tile::kOwn + kWalk) * (shape.width + 1) + Tile::kScores);
  }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    const std::size_t line = shape.width + 1;
    float* queries = team.template shared<float>();
    float* gradients = queries + Tile::kOwn * line;
    float* keys = gradients + Tile::kOwn * line;
    float* values = keys + kWalk * line;
    float* dscores = values + kWalk * line;
    const std::size_t head = team.y();
    const std::size_t sample = team.z();
    const std::size_t kv_head = head / (shape.heads / shape.kv_heads);
    const std::size_t first = team.x() * Tile::kOwn;
    typename Team::template Local<Part<Tile::kRows, kWide>> parts;
    team.each([&](int thread) {
      parts[thread] = {};
      load_tile<kThreads>(thread, qkv + shape.query(sample, head), shape.qkv_stride(), first,
                          shape.tokens, Tile::kOwn, shape.width, queries);
      load_tile<kThreads>(thread, dy + shape.output(sample, head), shape.out_stride(), first,
                          shape.tokens, Tile::kOwn, shape.width, gradients);
    });
    const std::size_t last = first + Tile::kOwn < shape.tokens ? first + Tile::kOwn : shape.tokens;
    for (std::size_t key = 0; key < last; key += kWalk) {
      team.each([&](int thread) {
        load_tile<kThreads>(thread, qkv + shape.key(sample, kv_head), shape.qkv_stride(), key,
                            shape.tokens, kWalk, shape.width, keys);
        load_tile<kThreads>(thread, qkv + shape.value(sample, kv_head), shape.qkv_stride(), key,
                            shape.tokens, kWalk, shape.width, values);
      });
      team.each([&](int thread) {
        const int down = thread / kSide;
        const int across = thread % kSide;
        const auto scores = row_products<Tile::kRows>(down, across, shape.width, queries, keys);
        const auto dweights =
            row_products<Tile::kRows>(down, across, shape.width, gradients, values);
        for (int i = 0; i < Tile::kRows; ++i)
          for (int j = 0; j < 2; ++j) {
            const int row = down + kSide * i;
            const int column = across + kSide * j;
            dscores[row * Tile::kScoreStride + column] =
                pair_gradient(shape, rows, shape.statistic(sample, head),
                              first + static_cast<std::size_t>(row),
                              key + static_cast<std::size_t>(column), scores.of[i][j],
                              dweights.of[i][j])
                    .dscore;
          }
      });
      team.each([&](int thread) {
        add_weighted_rows<Tile>(thread / kSide, thread % kSide, shape.width, dscores, keys,
                                parts[thread]);
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
    return sizeof(float) * (2 * (Tile::kOwn + kWalk) * (shape.width + 1) + 2 * Tile::kScores);
  }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    const std::size_t line = shape.width + 1;
    float* keys = team.template shared<float>();
    float* values = keys + Tile::kOwn * line;
    float* queries = values + Tile::kOwn * line;
    float* gradients = queries + kWalk * line;
    float* weights = gradients + kWalk * line;
    float* dscores = weights + Tile::kScores;
    const std::size_t kv_head = team.y();
    const std::size_t sample = team.z();
    const std::size_t first = team.x() * Tile::kOwn;
    const std::size_t shared_by = shape.heads / shape.kv_heads;
    typename Team::template Local<Part<Tile::kRows, kWide>> dkeys;
    typename Team::template Local<Part<Tile::kRows, kWide>> dvalues;
    team.each([&](int thread) {
      dkeys[thread] = {};
      dvalues[thread] = {};
      load_tile<kThreads>(thread, qkv + shape.key(sample, kv_head), shape.qkv_stride(), first,
                          shape.tokens, Tile::kOwn, shape.width, keys);
      load_tile<kThreads>(thread, qkv + shape.value(sample, kv_head), shape.qkv_stride(), first,
                          shape.tokens, Tile::kOwn, shape.width, values);
    });
    for (std::size_t head = kv_head * shared_by; head < (kv_head + 1) * shared_by; ++head)
      for (std::size_t query = first; query < shape.tokens; query += kWalk) {
        team.each([&](int thread) {
          load_tile<kThreads>(thread, qkv + shape.query(sample, head), shape.qkv_stride(), query,
                              shape.tokens, kWalk, shape.width, queries);
          load_tile<kThreads>(thread, dy + shape.output(sample, head), shape.out_stride(), query,
                              shape.tokens, kWalk, shape.width, gradients);
        });
        team.each([&](int thread) {
          const int down = thread / kSide;
          const int across = thread % kSide;
          const auto scores = row_products<Tile::kRows>(down, across, shape.width, keys, queries);
          const auto dweights =
              row_products<Tile::kRows>(down, across, shape.width, values, gradients);
          for (int i = 0; i < Tile::kRows; ++i)
            for (int j = 0; j < 2; ++j) {
              const int row = down + kSide * i;
              const int column = across + kSide * j;
              const PairGradient pair = pair_gradient(shape, rows, shape.statistic(sample, head),
                                                      query + static_cast<std::size_t>(column),
                                                      first + static_cast<std::size_t>(row),
                                                      scores.of[i][j], dweights.of[i][j]);
              weights[row * Tile::kScoreStride + column] = pair.weight;
              dscores[row * Tile::kScoreStride + column] = pair.dscore;
            }
        });
        team.each([&](int thread) {
          const int down = thread / kSide;
          const int across = thread % kSide;
          add_weighted_rows<Tile>(down, across, shape.width, weights, gradients, dvalues[thread]);
          add_weighted_rows<Tile>(down, across, shape.width, dscores, queries, dkeys[thread]);
        });
      }
    team.each([&](int thread) {
      const int down = thread / kSide;
      const int across = thread % kSide;
      store_part<Tile>(down, across, shape.width, first, shape.tokens, shape.qkv_stride(),
                       dkeys[thread], dqkv + shape.key(sample, kv_head));
      store_part<Tile>(down, across, shape.width, first, shape.tokens, shape.qkv_stride(),
                       dvalues[thread], dqkv + shape.value(sample, kv_head));
    });
  }
};

}  // namespace holmes::model::cuda

#include "cpu/attention.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/gemm.hpp"
#include "cpu/workspace.hpp"
#include "kernels/kernels.hpp"

namespace holmes::model::cpu {
namespace {

constexpr std::size_t kQueryBlock = 64;

std::size_t score_count(const Dims& d) {
  return std::min(kQueryBlock, d.T) * d.T;
}

/// One head of one sample, and one block of its queries.
struct Block {
  std::size_t first_row;  ///< Of the sample in B x T.
  std::size_t query;      ///< Column of the head's queries, and of its output.
  std::size_t key;        ///< Column of its keys.
  std::size_t value;
  bool first;             ///< Sets the gradients of its keys and values; the others add.
  std::size_t statistic;  ///< Of the head in B x H x T.
  std::size_t begin;      ///< Queries [begin, end), which see keys [0, end).
  std::size_t end;

  std::size_t size() const { return end - begin; }
};

/// Blocks from the last to the first: the last sees all keys, so that in backward, of the first
/// head that has them, it sets the keys' gradients and the others add.
template <class Body>
void each_block(const Dims& d, const Body& body) {
  for (std::size_t b = 0; b < d.B; ++b)
    for (std::size_t h = 0; h < d.H; ++h)
      for (std::size_t end = d.T; end > 0;) {
        const std::size_t begin = (end - 1) / kQueryBlock * kQueryBlock;
        body(Block{.first_row = b * d.T,
                   .query = h * d.D,
                   .key = d.key_column(h),
                   .value = d.value_column(h),
                   .first = end == d.T && h % (d.H / d.G) == 0,
                   .statistic = (b * d.H + h) * d.T,
                   .begin = begin,
                   .end = end});
        end = begin;
      }
}

kernels::CausalScores causal(const Dims& d, const Block& block, float* scores) {
  return {.rows = block.size(),
          .columns = block.end,
          .stride = block.end,
          .first_length = block.begin + 1,
          .scale = 1.0F / std::sqrt(static_cast<float>(d.D)),
          .scores = scores};
}

/// Column `column` of row `row` (of the sample) in arrays with `width` columns.
template <class T>
T* at(T* array, const Block& block, std::size_t row, std::size_t width, std::size_t column) {
  return array + (block.first_row + row) * width + column;
}

}  // namespace

std::size_t attention_scratch(const Dims& d) {
  return 2 * Carver<float>::rounded(score_count(d)) + Carver<float>::rounded(kQueryBlock);
}

void attention(const Dims& d, const float* qkv, AttentionStatistics statistics, float* scratch,
               float* y) {
  const auto& kernel = kernels::best();
  const std::size_t D = d.D;
  const std::size_t width = d.qkv_width();
  const std::size_t wide = d.attended_width();
  each_block(d, [&](const Block& block) {
    const float* q = at(qkv, block, block.begin, width, block.query);
    const float* k = at(qkv, block, 0, width, block.key);
    const float* v = at(qkv, block, 0, width, block.value);
    float* out = at(y, block, block.begin, wide, block.query);
    float* inverse_sum = statistics.inverse_sum + block.statistic + block.begin;
    const Target scores{scratch, block.end};
    multiply({block.size(), block.end, D}, {q, width}, {k, width, true}, scores);
    kernel.causal_softmax(causal(d, block, scratch),
                          statistics.largest + block.statistic + block.begin, inverse_sum);
    multiply({block.size(), D, block.end}, {scratch, block.end}, {v, width}, {out, wide});
    kernel.scale_rows(block.size(), D, wide, inverse_sum, out);
  });
}

void attention_backward(const Dims& d, const float* qkv, ConstAttentionStatistics statistics,
                        const float* y, const float* dy, float* scratch, float* dqkv) {
  const auto& kernel = kernels::best();
  const std::size_t D = d.D;
  const std::size_t width = d.qkv_width();
  const std::size_t wide = d.attended_width();
  Carver<float> carve(scratch);
  float* p = carve.take(score_count(d));
  float* dp = carve.take(score_count(d));
  float* delta = carve.take(kQueryBlock);
  each_block(d, [&](const Block& block) {
    const float* q = at(qkv, block, block.begin, width, block.query);
    const float* k = at(qkv, block, 0, width, block.key);
    const float* v = at(qkv, block, 0, width, block.value);
    const float* g = at(dy, block, block.begin, wide, block.query);
    float* dq = at(dqkv, block, block.begin, width, block.query);
    float* dk = at(dqkv, block, 0, width, block.key);
    float* dv = at(dqkv, block, 0, width, block.value);
    const std::size_t rows = block.size();
    const std::size_t keys = block.end;
    const std::size_t statistic = block.statistic + block.begin;

    kernel.row_dots(rows, D, wide, at(y, block, block.begin, wide, block.query), g, delta);
    multiply({rows, keys, D}, {q, width}, {k, width, true}, {p, keys});
    multiply({rows, keys, D}, {g, wide}, {v, width, true}, {dp, keys});
    kernel.causal_softmax_backward(causal(d, block, p), statistics.largest + statistic,
                                   statistics.inverse_sum + statistic, delta, dp);
    const auto accumulate = block.first ? multiply : multiply_add;
    accumulate({keys, D, rows}, {p, keys, true}, {g, wide}, {dv, width}, 1);
    accumulate({keys, D, rows}, {dp, keys, true}, {q, width}, {dk, width}, 1);
    multiply({rows, D, keys}, {dp, keys}, {k, width}, {dq, width});
  });
}

}  // namespace holmes::model::cpu

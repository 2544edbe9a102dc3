// Goal: the GPU's kernels compute what the plain operators do, on shapes that end in the middle of
// tiles, and do not depend on the order of threads within a phase. Method: the kernels' own source,
// run as loops over teams and threads, in three orders that must give the same bits; a barrier too
// few shows as a difference. What is not initialised is NaN.
#include <cstring>

#include <gtest/gtest.h>

#include "cuda/host_team.hpp"
#include "cuda/kernels/all.hpp"
#include "holmes/base/random.hpp"
#include "holmes/model/optimizer.hpp"
#include "optimizer/factors.hpp"
#include "reference/llama_ops.hpp"
#include "reference/ops.hpp"

namespace holmes::model::cuda {
namespace {

std::vector<float> random_floats(std::size_t count, std::uint64_t seed, double size = 1) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(size * (2 * random.uniform() - 1));
  return values;
}

constexpr float kUnset = std::numeric_limits<float>::quiet_NaN();

/// Runs the kernel that `make` makes for its outputs, in every order of threads, each time on the
/// outputs as they were; leaves one run's results there.
template <class Make>
void run_in_every_order(const std::vector<std::vector<float>*>& outputs, const Make& make) {
  std::vector<std::vector<float>> before;
  for (const auto* each : outputs) before.push_back(*each);
  std::vector<std::vector<float>> first;
  for (const auto order :
       {ThreadOrder::kAscending, ThreadOrder::kDescending, ThreadOrder::kShuffled}) {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      std::copy(before[i].begin(), before[i].end(), outputs[i]->begin());
    run_on_host(make(), order);
    if (first.empty())
      for (const auto* each : outputs) first.push_back(*each);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      EXPECT_EQ(std::memcmp(outputs[i]->data(), first[i].data(), first[i].size() * sizeof(float)),
                0)
          << "output " << i << " depends on the order of threads";
  }
}

/// The largest difference, as a share of the largest value.
double difference(const std::vector<float>& actual, const std::vector<float>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double largest = 1e-30;
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(double{expected[i]}));
    const double off = std::abs(double{actual[i]} - expected[i]);
    worst = off > worst || std::isnan(off) ? off : worst;
  }
  return worst / largest;
}

// --- norms ---

struct NormShape {
  std::size_t rows;
  std::size_t columns;
  bool is_rms;
};

class NormKernels : public testing::TestWithParam<NormShape> {};

TEST_P(NormKernels, GiveWhatThePlainOperatorsGive) {
  const auto [rows, C, is_rms] = GetParam();
  const auto x = random_floats(rows * C, 1, 3);
  const auto weight = random_floats(C, 2);
  const auto bias = random_floats(C, 3);
  const auto dy = random_floats(rows * C, 4);
  const auto residual = random_floats(rows * C, 5);
  const float epsilon = kNormEpsilon;
  std::vector<float> y(rows * C, kUnset), mean(rows, kUnset), inverse(rows, kUnset);
  const float* b = is_rms ? nullptr : bias.data();
  float* m = is_rms ? nullptr : mean.data();
  run_in_every_order({&y, &mean, &inverse}, [&] {
    return NormKernel{rows, C, x.data(), weight.data(), b, m, inverse.data(), epsilon, y.data()};
  });
  std::vector<float> again(rows * C, kUnset);
  run_in_every_order({&again}, [&] {
    return NormAgainKernel{rows, C, x.data(), weight.data(), b, m, inverse.data(), again.data()};
  });
  EXPECT_EQ(again, y);

  const std::size_t runs = groups_of(rows, kRunRows);
  auto dx = residual;  // in place, as layers use it
  std::vector<float> sums(runs * C, kUnset), normal_sums(runs * C, kUnset);
  auto dweight = random_floats(C, 6);
  auto dbias = random_floats(C, 7);
  auto expected_dweight = dweight;
  auto expected_dbias = dbias;
  run_in_every_order({&dx}, [&] {
    return NormBackwardKernel{rows,           C,         x.data(),  weight.data(), m,
                              inverse.data(), dy.data(), dx.data(), dx.data()};
  });
  run_in_every_order({&sums, &normal_sums}, [&] {
    return ColumnRunsKernel{rows,           C,           dy.data(),         x.data(), m,
                            inverse.data(), sums.data(), normal_sums.data()};
  });
  run_in_every_order({&dweight}, [&] {
    return AddRunsKernel{runs, C, normal_sums.data(), dweight.data()};
  });
  run_in_every_order({&dbias}, [&] { return AddRunsKernel{runs, C, sums.data(), dbias.data()}; });

  std::vector<float> expected_y(rows * C);
  auto expected_dx = residual;
  if (is_rms) {
    reference::rms_norm(rows, C, x.data(), weight.data(), epsilon, expected_y.data());
    reference::rms_norm_backward(rows, C, x.data(), weight.data(), epsilon, dy.data(),
                                 expected_dx.data(), expected_dweight.data());
    expected_dbias = dbias;
  } else {
    reference::layer_norm(rows, C, x.data(), weight.data(), bias.data(), expected_y.data());
    reference::layer_norm_backward(rows, C, x.data(), weight.data(), dy.data(), expected_dx.data(),
                                   expected_dweight.data(), expected_dbias.data());
  }
  EXPECT_LT(difference(y, expected_y), 1e-6);
  EXPECT_LT(difference(dx, expected_dx), 1e-6);
  EXPECT_LT(difference(dweight, expected_dweight), 2e-6);
  EXPECT_LT(difference(dbias, expected_dbias), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, NormKernels,
                         testing::Values(NormShape{1, 1, true}, NormShape{3, 35, false},
                                         NormShape{3, 35, true}, NormShape{65, 256, false},
                                         NormShape{130, 257, true}, NormShape{2, 1000, false}));

// --- attention ---

struct AttentionCase {
  std::size_t B, T, H, G, D;
};

class AttentionKernels : public testing::TestWithParam<AttentionCase> {};

Dims dims_of(const AttentionCase& c) {
  GptConfig config;
  config.family = Family::kLlama;
  config.heads = static_cast<std::uint32_t>(c.H);
  config.kv_heads = static_cast<std::uint32_t>(c.G);
  config.head_channels = static_cast<std::uint32_t>(c.D);
  return {config, {static_cast<std::uint32_t>(c.B), static_cast<std::uint32_t>(c.T)}};
}

template <class Forward, class Queries, class Keys>
void compare_attention(const AttentionCase& c) {
  const Dims d = dims_of(c);
  const AttentionShape shape = {c.B, c.T, c.H, c.G, c.D, 1.0F / std::sqrt(static_cast<float>(c.D))};
  const auto qkv = random_floats(d.rows() * d.qkv_width(), 1, 2);
  const auto dy = random_floats(d.rows() * d.attended_width(), 2);
  const std::size_t kept = d.rows() * d.H;
  std::vector<float> largest(kept, kUnset), inverse_sum(kept, kUnset), delta(kept, kUnset);
  std::vector<float> y(d.rows() * d.attended_width(), kUnset);
  run_in_every_order({&largest, &inverse_sum, &y}, [&] {
    return Forward{shape, qkv.data(), largest.data(), inverse_sum.data(), y.data()};
  });
  run_in_every_order({&delta}, [&] {
    return AttentionDeltaKernel{shape, y.data(), dy.data(), delta.data()};
  });
  std::vector<float> dqkv(qkv.size(), kUnset);
  const AttentionRows rows{largest.data(), inverse_sum.data(), delta.data()};
  run_in_every_order({&dqkv}, [&] {
    return Queries{shape, qkv.data(), dy.data(), rows, dqkv.data()};
  });
  run_in_every_order({&dqkv}, [&] {
    return Keys{shape, qkv.data(), dy.data(), rows, dqkv.data()};
  });

  std::vector<float> probabilities(d.rows() * d.H * d.T), expected_y(y.size());
  std::vector<float> expected_dqkv(qkv.size());
  reference::attention(d, qkv.data(), probabilities.data(), expected_y.data());
  reference::attention_backward(d, qkv.data(), probabilities.data(), dy.data(),
                                expected_dqkv.data());
  EXPECT_LT(difference(y, expected_y), 2e-6);
  EXPECT_LT(difference(dqkv, expected_dqkv), 5e-6);
}

TEST_P(AttentionKernels, GiveWhatThePlainOperatorsGive) {
  const AttentionCase& c = GetParam();
  if (c.D <= 64) compare_attention<AttentionForward64, AttentionQueries64, AttentionKeys64>(c);
  if (c.D <= 128) compare_attention<AttentionForward128, AttentionQueries128, AttentionKeys128>(c);
  compare_attention<AttentionForward256, AttentionQueries256, AttentionKeys256>(c);
}

// One token; a tile's end in the middle; several tiles; heads that share keys and values.
INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionKernels,
    testing::Values(AttentionCase{1, 1, 1, 1, 2}, AttentionCase{2, 33, 3, 3, 7},
                    AttentionCase{1, 64, 2, 1, 64}, AttentionCase{1, 131, 4, 2, 16},
                    AttentionCase{1, 70, 2, 2, 100}, AttentionCase{1, 66, 1, 1, 200}));

// Scores far apart: the running softmax must scale down what it had, and must not overflow.
TEST(AttentionKernels, KeepLargeScoresFinite) {
  const AttentionCase c = {1, 97, 1, 1, 8};
  const Dims d = dims_of(c);
  auto qkv = random_floats(d.rows() * d.qkv_width(), 9, 30);
  const AttentionShape shape = {c.B, c.T, c.H, c.G, c.D, 1.0F / std::sqrt(8.0F)};
  std::vector<float> largest(d.T), inverse_sum(d.T), y(d.T * c.D);
  run_in_every_order({&largest, &inverse_sum, &y}, [&] {
    return AttentionForward64{shape, qkv.data(), largest.data(), inverse_sum.data(), y.data()};
  });
  std::vector<float> probabilities(d.T * d.T), expected(y.size());
  reference::attention(d, qkv.data(), probabilities.data(), expected.data());
  // A score of 1000 has an error of 1e-4, and so has its weight.
  EXPECT_LT(difference(y, expected), 1e-3);
}

// What fits a block of the architectures that are built for.
TEST(AttentionKernels, FitIntoSharedMemory) {
  constexpr std::size_t kSm80Bytes = 163 * 1024;
  for (const std::size_t width : {64, 128, 256}) {
    const AttentionShape shape = {1, 1024, 1, 1, width, 1};
    const auto check = [&](const auto& forward, const auto& queries, const auto& keys) {
      EXPECT_LE(forward.shared_bytes(), kSm80Bytes) << width;
      EXPECT_LE(queries.shared_bytes(), kSm80Bytes) << width;
      EXPECT_LE(keys.shared_bytes(), kSm80Bytes) << width;
    };
    const AttentionRows none{};
    if (width == 64)
      check(AttentionForward64{shape, {}, {}, {}, {}}, AttentionQueries64{shape, {}, {}, none, {}},
            AttentionKeys64{shape, {}, {}, none, {}});
    if (width == 128)
      check(AttentionForward128{shape, {}, {}, {}, {}},
            AttentionQueries128{shape, {}, {}, none, {}},
            AttentionKeys128{shape, {}, {}, none, {}});
    check(AttentionForward256{shape, {}, {}, {}, {}}, AttentionQueries256{shape, {}, {}, none, {}},
          AttentionKeys256{shape, {}, {}, none, {}});
  }
}

// --- tokens ---

std::vector<std::int32_t> random_tokens(std::size_t count, std::size_t below, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::int32_t> tokens(count);
  for (auto& token : tokens) token = static_cast<std::int32_t>(random.below(below));
  return tokens;
}

TEST(CrossEntropyKernels, GiveWhatThePlainOperatorGives) {
  const std::size_t rows = 5;
  const std::size_t stride = 1024;
  for (const std::size_t V : {1, 17, 256, 1000}) {
    const auto targets = random_tokens(rows, V, 3);
    const auto logits = random_floats(rows * stride, V, 20);
    auto values = logits;
    std::vector<float> losses(rows, kUnset);
    run_in_every_order({&values, &losses}, [&] {
      return CrossEntropyKernel{rows,
                                V,
                                stride,
                                targets.data(),
                                values.data(),
                                losses.data(),
                                0.3F / static_cast<float>(rows)};
    });
    std::vector<float> packed(rows * V), gradient(rows * V);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t v = 0; v < V; ++v) {
        packed[row * V + v] = logits[row * stride + v];
        gradient[row * V + v] = values[row * stride + v];
      }
    const double loss =
        reference::cross_entropy(rows, V, targets.data(), packed.data(), double{0.3F});
    double mean = 0;
    for (const float each : losses) mean += each / static_cast<double>(rows);
    EXPECT_NEAR(mean, loss, 2e-6 * std::max(1.0, loss));
    EXPECT_LT(difference(gradient, packed), V == 1 ? 1e30 : 3e-6);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t v = V; v < stride; ++v)
        EXPECT_EQ(values[row * stride + v], logits[row * stride + v]);

    auto kept = logits;
    run_in_every_order({&kept, &losses}, [&] {
      return CrossEntropyKernel{rows, V, stride, targets.data(), kept.data(), losses.data(), 0};
    });
    EXPECT_EQ(kept, logits);
  }
}

// Bits, not nearly: where a token occurs several times its rows are added first to last.
TEST(EmbeddingKernels, AddTokensInTheOrderOfPositions) {
  const std::size_t B = 3;
  const std::size_t T = 131;
  const std::size_t C = 70;
  const std::size_t V = 11;
  auto tokens = random_tokens(B * T, V, 1);
  const auto dy = random_floats(B * T * C, 2);
  auto table = random_floats(V * C, 3);
  auto positions = random_floats(T * C, 4);
  auto expected_table = table;
  auto expected_positions = positions;
  std::vector<float> y(B * T * C, kUnset);
  run_in_every_order({&y}, [&] {
    return EmbedKernel{B * T, C, T, tokens.data(), table.data(), positions.data(), y.data()};
  });
  for (std::size_t row = 0; row < B * T; ++row)
    for (std::size_t c = 0; c < C; ++c)
      ASSERT_EQ(y[row * C + c],
                table[static_cast<std::size_t>(tokens[row]) * C + c] + positions[row % T * C + c]);
  run_in_every_order({&table}, [&] {
    return EmbedBackwardKernel{B * T, C, tokens.data(), dy.data(), table.data()};
  });
  run_in_every_order({&positions}, [&] {
    return PositionsBackwardKernel{B, T, C, dy.data(), positions.data()};
  });
  for (std::size_t row = 0; row < B * T; ++row)
    for (std::size_t c = 0; c < C; ++c) {
      expected_table[static_cast<std::size_t>(tokens[row]) * C + c] += dy[row * C + c];
      expected_positions[row % T * C + c] += dy[row * C + c];
    }
  EXPECT_EQ(table, expected_table);
  EXPECT_EQ(positions, expected_positions);
}

// --- element-wise ---

TEST(ElementwiseKernels, GiveWhatThePlainOperatorsGive) {
  const std::size_t rows = 7;
  const std::size_t F = 331;
  const auto x = random_floats(rows * 2 * F, 1, 5);
  const auto dy = random_floats(rows * F, 2);
  const std::size_t count = rows * F;
  std::vector<float> y(count, kUnset), expected_y(count), expected_dx(count);
  auto gradient = dy;
  run_in_every_order({&y}, [&] { return GeluKernel{count, x.data(), y.data()}; });
  reference::gelu(count, x.data(), expected_y.data());
  EXPECT_LT(difference(y, expected_y), 1e-6);
  run_in_every_order({&gradient, &y}, [&] {
    return GeluBackwardKernel{count, x.data(), gradient.data(), y.data()};
  });
  reference::gelu_backward(count, x.data(), dy.data(), expected_dx.data());
  EXPECT_LT(difference(y, expected_y), 1e-6);
  EXPECT_LT(difference(gradient, expected_dx), 1e-6);

  run_in_every_order({&y}, [&] { return SwigluKernel{rows, F, x.data(), y.data()}; });
  reference::swiglu(rows, F, x.data(), expected_y.data());
  EXPECT_LT(difference(y, expected_y), 1e-6);
  std::vector<float> dx(2 * count, kUnset), again(count, kUnset), expected(2 * count);
  run_in_every_order({&dx, &again}, [&] {
    return SwigluBackwardKernel{rows, F, x.data(), dy.data(), again.data(), dx.data()};
  });
  reference::swiglu_backward(rows, F, x.data(), dy.data(), expected.data());
  EXPECT_EQ(again, y);
  EXPECT_LT(difference(dx, expected), 1e-6);
}

TEST(ElementwiseKernels, RotateThereAndBack) {
  const AttentionCase c = {2, 19, 3, 1, 14};
  const Dims d = dims_of(c);
  const Rope rope = {.theta = 100, .factor = 8, .original_sequence = 32};
  const RotaryTable table(rope, d.D, d.T);
  for (const bool back : {false, true}) {
    auto x = random_floats(d.rows() * d.qkv_width(), 1);
    auto expected = x;
    run_in_every_order({&x}, [&] {
      return RotateKernel{d.rows(),           d.H + d.G, d.D / 2,
                          d.qkv_width(),      d.T,       table.cosines.data(),
                          table.sines.data(), back,      x.data()};
    });
    reference::rotate(d, rope, back, expected.data());
    EXPECT_LT(difference(x, expected), 1e-6);
  }
}

TEST(OptimizerKernels, UpdateLikeTheCpu) {
  const std::size_t count = 3001;
  const AdamW config;
  const auto gradients = random_floats(count, 1);
  for (const bool decay : {false, true}) {
    auto parameters = random_floats(count, 2);
    auto exp_avg = random_floats(count, 3);
    auto exp_avg_sq = random_floats(count, 4);
    for (float& value : exp_avg_sq) value = std::abs(value);
    auto expected_parameters = parameters;
    auto expected_avg = exp_avg;
    auto expected_sq = exp_avg_sq;
    const AdamWStep step{5, 1e-2F, 0.7F, decay};
    run_in_every_order({&parameters, &exp_avg, &exp_avg_sq}, [&] {
      return AdamWKernel{adamw_factors(config, step),
                         count,
                         parameters.data(),
                         gradients.data(),
                         exp_avg.data(),
                         exp_avg_sq.data()};
    });
    adamw(config, step.step, step.learning_rate, step.gradient_scale, decay, expected_parameters,
          gradients, expected_avg, expected_sq);
    EXPECT_LT(difference(parameters, expected_parameters), 1e-7);
    EXPECT_LT(difference(exp_avg, expected_avg), 1e-7);
    EXPECT_LT(difference(exp_avg_sq, expected_sq), 1e-7);
  }
}

TEST(OptimizerKernels, SumChunks) {
  const auto values = random_floats(70000, 1);
  const ChunkSumsKernel::Range chunks[] = {{0, 65536}, {65536, 1}, {65537, 300}};
  for (const bool squares : {false, true}) {
    double sums[3];
    run_on_host(ChunkSumsKernel{3, chunks, values.data(), squares, sums}, ThreadOrder::kAscending);
    double other[3];
    run_on_host(ChunkSumsKernel{3, chunks, values.data(), squares, other}, ThreadOrder::kShuffled);
    for (int i = 0; i < 3; ++i) {
      double expected = 0;
      for (std::size_t k = 0; k < chunks[i].count; ++k) {
        const double value = values[chunks[i].offset + k];
        expected += squares ? value * value : value;
      }
      EXPECT_NEAR(sums[i], expected, 1e-12 * static_cast<double>(chunks[i].count) + 1e-14);
      EXPECT_EQ(other[i], sums[i]);
    }
  }
}

TEST(OptimizerKernels, Add) {
  auto destination = random_floats(5000, 1);
  const auto source = random_floats(5000, 2);
  auto expected = destination;
  add(expected, source);
  run_in_every_order({&destination}, [&] {
    return AddKernel{5000, destination.data(), source.data()};
  });
  EXPECT_EQ(destination, expected);
}

}  // namespace
}  // namespace holmes::model::cuda

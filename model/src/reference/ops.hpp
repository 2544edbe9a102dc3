#pragma once

// The operators as plain loops, written for reading: the oracle for the fast ones. T is float in
// the reference engine and double where tests check gradients by finite differences. Sums are taken
// in double. Shapes as in layer.hpp; backward operators add to parameter gradients and overwrite
// the gradient of their input.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "gpt/parameters.hpp"
#include "gpt/shape.hpp"

namespace holmes::model::reference {

struct RowStatistics {
  double mean = 0;
  double inverse_deviation = 0;
};

template <class T>
RowStatistics row_statistics(std::size_t count, const T* x) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double variance = squares / static_cast<double>(count);
  return {mean, 1 / std::sqrt(variance + double{kNormEpsilon})};
}

template <class T>
void layer_norm(std::size_t rows, std::size_t C, const T* x, const T* weight, const T* bias, T* y) {
  for (std::size_t row = 0; row < rows; ++row, x += C, y += C) {
    const RowStatistics s = row_statistics(C, x);
    for (std::size_t c = 0; c < C; ++c)
      y[c] = static_cast<T>((x[c] - s.mean) * s.inverse_deviation * weight[c] + bias[c]);
  }
}

/// Adds to dx, since the residual path has its own part of it.
template <class T>
void layer_norm_backward(std::size_t rows, std::size_t C, const T* x, const T* weight, const T* dy,
                         T* dx, T* dweight, T* dbias) {
  const auto n = static_cast<double>(C);
  for (std::size_t row = 0; row < rows; ++row, x += C, dy += C, dx += C) {
    const RowStatistics s = row_statistics(C, x);
    double sum_g = 0;
    double sum_gx = 0;
    for (std::size_t c = 0; c < C; ++c) {
      const double normal = (x[c] - s.mean) * s.inverse_deviation;
      const double g = double{dy[c]} * weight[c];
      sum_g += g;
      sum_gx += g * normal;
      dweight[c] += static_cast<T>(dy[c] * normal);
      dbias[c] += dy[c];
    }
    for (std::size_t c = 0; c < C; ++c) {
      const double normal = (x[c] - s.mean) * s.inverse_deviation;
      const double g = double{dy[c]} * weight[c];
      dx[c] += static_cast<T>(s.inverse_deviation * (g - sum_g / n - normal * sum_gx / n));
    }
  }
}

/// y = x * weight + bias, weight being in x out.
template <class T>
void linear(std::size_t rows, std::size_t in, std::size_t out, const T* x, const T* weight,
            const T* bias, T* y) {
  std::vector<double> sums(out);
  for (std::size_t row = 0; row < rows; ++row, x += in, y += out) {
    std::copy(bias, bias + out, sums.begin());
    for (std::size_t i = 0; i < in; ++i)
      for (std::size_t o = 0; o < out; ++o) sums[o] += double{x[i]} * weight[i * out + o];
    for (std::size_t o = 0; o < out; ++o) y[o] = static_cast<T>(sums[o]);
  }
}

template <class T>
void linear_backward(std::size_t rows, std::size_t in, std::size_t out, const T* x, const T* weight,
                     const T* dy, T* dx, T* dweight, T* dbias) {
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < in; ++i) {
      double sum = 0;
      for (std::size_t o = 0; o < out; ++o) sum += double{dy[row * out + o]} * weight[i * out + o];
      dx[row * in + i] = static_cast<T>(sum);
    }
  std::vector<double> sums(out);
  for (std::size_t i = 0; i < in; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t o = 0; o < out; ++o) sums[o] += double{x[row * in + i]} * dy[row * out + o];
    for (std::size_t o = 0; o < out; ++o) dweight[i * out + o] += static_cast<T>(sums[o]);
  }
  std::fill(sums.begin(), sums.end(), 0.0);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t o = 0; o < out; ++o) sums[o] += dy[row * out + o];
  for (std::size_t o = 0; o < out; ++o) dbias[o] += static_cast<T>(sums[o]);
}

// GELU in its tanh form.
constexpr double kGeluScale = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kGeluCubic = 0.044715;

template <class T>
void gelu(std::size_t count, const T* x, T* y) {
  for (std::size_t i = 0; i < count; ++i) {
    const double v = x[i];
    y[i] = static_cast<T>(0.5 * v * (1 + std::tanh(kGeluScale * (v + kGeluCubic * v * v * v))));
  }
}

template <class T>
void gelu_backward(std::size_t count, const T* x, const T* dy, T* dx) {
  for (std::size_t i = 0; i < count; ++i) {
    const double v = x[i];
    const double t = std::tanh(kGeluScale * (v + kGeluCubic * v * v * v));
    const double inner = kGeluScale * (1 + 3 * kGeluCubic * v * v);
    dx[i] = static_cast<T>(dy[i] * (0.5 * (1 + t) + 0.5 * v * (1 - t * t) * inner));
  }
}

/// Where the rows of one head of one sample lie in a B x T x qkv_width() array.
template <class T>
struct HeadRows {
  T* q;
  T* k;
  T* v;
  std::size_t stride;

  HeadRows(const Dims& d, T* qkv, std::size_t sample, std::size_t head)
      : q(qkv + sample * d.T * d.qkv_width() + head * d.D),
        k(qkv + sample * d.T * d.qkv_width() + d.key_column(head)),
        v(qkv + sample * d.T * d.qkv_width() + d.value_column(head)),
        stride(d.qkv_width()) {}
};

/// Causal attention. `probabilities` (B x H x T x T) is kept for backward.
template <class T>
void attention(const Dims& d, const T* qkv, T* probabilities, T* y) {
  const std::size_t D = d.D;
  const double scale = 1 / std::sqrt(static_cast<double>(D));
  for (std::size_t b = 0; b < d.B; ++b)
    for (std::size_t h = 0; h < d.H; ++h) {
      const HeadRows<const T> rows(d, qkv, b, h);
      for (std::size_t t = 0; t < d.T; ++t) {
        T* p = probabilities + ((b * d.H + h) * d.T + t) * d.T;
        std::vector<double> scores(t + 1);
        for (std::size_t s = 0; s <= t; ++s) {
          for (std::size_t c = 0; c < D; ++c)
            scores[s] += double{rows.q[t * rows.stride + c]} * rows.k[s * rows.stride + c];
          scores[s] *= scale;
        }
        const double largest = *std::max_element(scores.begin(), scores.end());
        double sum = 0;
        for (double& score : scores) sum += score = std::exp(score - largest);
        for (std::size_t s = 0; s < d.T; ++s)
          p[s] = s <= t ? static_cast<T>(scores[s] / sum) : T(0);
        for (std::size_t c = 0; c < D; ++c) {
          double value = 0;
          for (std::size_t s = 0; s <= t; ++s) value += double{p[s]} * rows.v[s * rows.stride + c];
          y[(b * d.T + t) * d.attended_width() + h * D + c] = static_cast<T>(value);
        }
      }
    }
}

template <class T>
void attention_backward(const Dims& d, const T* qkv, const T* probabilities, const T* dy, T* dqkv) {
  const std::size_t D = d.D;
  const double scale = 1 / std::sqrt(static_cast<double>(D));
  std::fill(dqkv, dqkv + d.rows() * d.qkv_width(), T(0));
  for (std::size_t b = 0; b < d.B; ++b)
    for (std::size_t h = 0; h < d.H; ++h) {
      const HeadRows<const T> in(d, qkv, b, h);
      const HeadRows<T> out(d, dqkv, b, h);
      for (std::size_t t = 0; t < d.T; ++t) {
        const T* p = probabilities + ((b * d.H + h) * d.T + t) * d.T;
        const T* g = dy + (b * d.T + t) * d.attended_width() + h * D;
        std::vector<double> dp(t + 1);
        double weighted = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          for (std::size_t c = 0; c < D; ++c) dp[s] += double{g[c]} * in.v[s * in.stride + c];
          weighted += p[s] * dp[s];
        }
        for (std::size_t s = 0; s <= t; ++s) {
          const double dscore = p[s] * (dp[s] - weighted) * scale;
          for (std::size_t c = 0; c < D; ++c) {
            out.v[s * out.stride + c] += static_cast<T>(double{p[s]} * g[c]);
            out.q[t * out.stride + c] += static_cast<T>(dscore * in.k[s * in.stride + c]);
            out.k[s * out.stride + c] += static_cast<T>(dscore * in.q[t * in.stride + c]);
          }
        }
      }
    }
}

/// Mean cross-entropy of `logits` (rows x V), which become its gradient times `loss_scale`.
template <class T>
double cross_entropy(std::size_t rows, std::size_t V, const std::int32_t* targets, T* logits,
                     double loss_scale) {
  double total = 0;
  for (std::size_t row = 0; row < rows; ++row, logits += V) {
    const auto target = static_cast<std::size_t>(targets[row]);
    const double largest = *std::max_element(logits, logits + V);
    double sum = 0;
    for (std::size_t v = 0; v < V; ++v) sum += std::exp(logits[v] - largest);
    total += std::log(sum) + largest - logits[target];
    for (std::size_t v = 0; v < V; ++v) {
      const double p = std::exp(logits[v] - largest) / sum;
      logits[v] =
          static_cast<T>((p - (v == target ? 1 : 0)) * loss_scale / static_cast<double>(rows));
    }
  }
  return total / static_cast<double>(rows);
}

}  // namespace holmes::model::reference

#pragma once

// Llama's operators as plain loops. As in ops.hpp: T is float or, for gradient checks, double; sums
// are taken in double; backward operators add to parameter gradients.

#include "gpt/rotary.hpp"
#include "reference/ops.hpp"

namespace holmes::model::reference {

template <class T>
double inverse_rms(std::size_t count, const T* x, double epsilon) {
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) squares += double{x[i]} * x[i];
  return 1 / std::sqrt(squares / static_cast<double>(count) + epsilon);
}

template <class T>
void rms_norm(std::size_t rows, std::size_t C, const T* x, const T* weight, double epsilon, T* y) {
  for (std::size_t row = 0; row < rows; ++row, x += C, y += C) {
    const double inverse = inverse_rms(C, x, epsilon);
    for (std::size_t c = 0; c < C; ++c) y[c] = static_cast<T>(x[c] * inverse * weight[c]);
  }
}

/// Adds to dx, since the residual path has its own part of it.
template <class T>
void rms_norm_backward(std::size_t rows, std::size_t C, const T* x, const T* weight, double epsilon,
                       const T* dy, T* dx, T* dweight) {
  for (std::size_t row = 0; row < rows; ++row, x += C, dy += C, dx += C) {
    const double inverse = inverse_rms(C, x, epsilon);
    double sum_gx = 0;
    for (std::size_t c = 0; c < C; ++c) {
      sum_gx += double{dy[c]} * weight[c] * x[c] * inverse;
      dweight[c] += static_cast<T>(dy[c] * x[c] * inverse);
    }
    const double mean = sum_gx / static_cast<double>(C);
    for (std::size_t c = 0; c < C; ++c)
      dx[c] += static_cast<T>(inverse * (double{dy[c]} * weight[c] - x[c] * inverse * mean));
  }
}

/// y = x weight^T, weight being out x in.
template <class T>
void linear_transposed(std::size_t rows, std::size_t in, std::size_t out, const T* x,
                       const T* weight, T* y) {
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t o = 0; o < out; ++o) {
      double sum = 0;
      for (std::size_t i = 0; i < in; ++i) sum += double{x[row * in + i]} * weight[o * in + i];
      y[row * out + o] = static_cast<T>(sum);
    }
}

template <class T>
void linear_transposed_backward(std::size_t rows, std::size_t in, std::size_t out, const T* x,
                                const T* weight, const T* dy, T* dx, T* dweight) {
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < in; ++i) {
      double sum = 0;
      for (std::size_t o = 0; o < out; ++o) sum += double{dy[row * out + o]} * weight[o * in + i];
      dx[row * in + i] = static_cast<T>(sum);
    }
  for (std::size_t o = 0; o < out; ++o)
    for (std::size_t i = 0; i < in; ++i) {
      double sum = 0;
      for (std::size_t row = 0; row < rows; ++row)
        sum += double{dy[row * out + o]} * x[row * in + i];
      dweight[o * in + i] += static_cast<T>(sum);
    }
}

/// Turns queries and keys of a B x T x qkv_width() array by their positions, or back.
template <class T>
void rotate(const Dims& d, const Rope& rope, bool back, T* qkv) {
  const std::size_t pairs = d.D / 2;
  for (std::size_t row = 0; row < d.rows(); ++row)
    for (std::size_t head = 0; head < d.H + d.G; ++head) {
      T* x = qkv + row * d.qkv_width() + head * d.D;
      for (std::size_t i = 0; i < pairs; ++i) {
        const double turn =
            static_cast<double>(row % d.T) * rotary_frequency(rope, i, pairs) * (back ? -1 : 1);
        const double low = x[i];
        const double high = x[i + pairs];
        x[i] = static_cast<T>(low * std::cos(turn) - high * std::sin(turn));
        x[i + pairs] = static_cast<T>(high * std::cos(turn) + low * std::sin(turn));
      }
    }
}

/// x: rows of F gates and the F values that go through them.
template <class T>
void swiglu(std::size_t rows, std::size_t F, const T* x, T* y) {
  for (std::size_t row = 0; row < rows; ++row, x += 2 * F, y += F)
    for (std::size_t f = 0; f < F; ++f) {
      const double gate = x[f];
      y[f] = static_cast<T>(gate / (1 + std::exp(-gate)) * x[F + f]);
    }
}

template <class T>
void swiglu_backward(std::size_t rows, std::size_t F, const T* x, const T* dy, T* dx) {
  for (std::size_t row = 0; row < rows; ++row, x += 2 * F, dx += 2 * F, dy += F)
    for (std::size_t f = 0; f < F; ++f) {
      const double gate = x[f];
      const double s = 1 / (1 + std::exp(-gate));
      dx[f] = static_cast<T>(double{dy[f]} * x[F + f] * (s + gate * s * (1 - s)));
      dx[F + f] = static_cast<T>(double{dy[f]} * gate * s);
    }
}

}  // namespace holmes::model::reference

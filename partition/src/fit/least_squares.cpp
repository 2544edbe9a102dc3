#include "fit/least_squares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace holmes::partition {
namespace {

using Point = std::vector<double>;

double sum_of_squares(const Residuals& residuals, const Point& point) {
  double sum = 0;
  for (const double residual : residuals(point)) sum += residual * residual;
  return sum;
}

struct Best {
  Point point;
  double value = 0;
};

/// Steps along each axis and along the last gain; half as long when none helps.
Best search_from(const Residuals& residuals, Point start, double low, double high) {
  constexpr double kStep = 0.5;
  constexpr double kStepMin = 5e-4;
  Best best{std::move(start), 0};
  best.value = sum_of_squares(residuals, best.point);
  const auto try_point = [&](Point point) {
    for (double& at : point) at = std::clamp(at, low, high);
    const double value = sum_of_squares(residuals, point);
    if (value >= best.value * (1 - 1e-9)) return false;
    best = {std::move(point), value};
    return true;
  };
  for (double step = kStep; step > kStepMin;) {
    const Point before = best.point;
    for (std::size_t i = 0; i < best.point.size(); ++i) {
      for (const double sign : {1.0, -1.0}) {
        Point point = best.point;
        point[i] += sign * step;
        if (try_point(std::move(point))) break;
      }
    }
    if (best.point == before) {
      step /= 2;
      continue;
    }
    Point further = best.point;
    for (std::size_t i = 0; i < further.size(); ++i) further[i] += best.point[i] - before[i];
    try_point(std::move(further));
  }
  return best;
}

/// Gauss-Jordan; false when the matrix has no inverse to speak of.
bool invert(std::vector<Point>& matrix) {
  const std::size_t n = matrix.size();
  for (std::size_t i = 0; i < n; ++i) {
    matrix[i].resize(2 * n, 0);
    matrix[i][n + i] = 1;
  }
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column; row < n; ++row) {
      if (std::abs(matrix[row][column]) > std::abs(matrix[pivot][column])) pivot = row;
    }
    if (std::abs(matrix[pivot][column]) < 1e-12) return false;
    std::swap(matrix[pivot], matrix[column]);
    const double scale = matrix[column][column];
    for (double& value : matrix[column]) value /= scale;
    for (std::size_t row = 0; row < n; ++row) {
      const double factor = matrix[row][column];
      if (row == column || factor == 0) continue;
      for (std::size_t i = 0; i < 2 * n; ++i) matrix[row][i] -= factor * matrix[column][i];
    }
  }
  for (Point& row : matrix) row.erase(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(n));
  return true;
}

/// Two-sided 95 % of Student's distribution.
double student(std::size_t degrees) {
  constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                               2.447,  2.365, 2.306, 2.262, 2.228};
  if (degrees <= std::size(kTable)) return kTable[degrees - 1];
  return 1.96 + 2.5 / static_cast<double>(degrees);
}

}  // namespace

std::vector<double> least_squares(const Residuals& residuals, const std::vector<Point>& starts,
                                  double low, double high) {
  Best best;
  best.value = std::numeric_limits<double>::infinity();
  for (const Point& start : starts) {
    Best found = search_from(residuals, start, low, high);
    if (found.value < best.value) best = std::move(found);
  }
  return best.point;
}

std::vector<double> half_widths(const Residuals& residuals, const std::vector<double>& best) {
  constexpr double kStep = 0.02;
  const std::size_t n = best.size();
  Point widths(n, std::numeric_limits<double>::infinity());
  const auto at_best = residuals(best);
  if (at_best.size() <= n) return widths;
  std::vector<Point> slopes;  // by unknown, then residual
  for (std::size_t i = 0; i < n; ++i) {
    Point more = best;
    Point less = best;
    more[i] += kStep;
    less[i] -= kStep;
    const auto above = residuals(more);
    const auto below = residuals(less);
    auto& slope = slopes.emplace_back();
    for (std::size_t r = 0; r < above.size(); ++r) {
      slope.push_back((above[r] - below[r]) / (2 * kStep));
    }
  }
  std::vector<Point> matrix(n, Point(n, 0));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t r = 0; r < at_best.size(); ++r) matrix[i][j] += slopes[i][r] * slopes[j][r];
    }
  }
  if (!invert(matrix)) return widths;
  const std::size_t degrees = at_best.size() - n;
  double sum = 0;
  for (const double residual : at_best) sum += residual * residual;
  for (std::size_t i = 0; i < n; ++i) {
    widths[i] = student(degrees) *
                std::sqrt(std::max(0.0, matrix[i][i]) * sum / static_cast<double>(degrees));
  }
  return widths;
}

}  // namespace holmes::partition

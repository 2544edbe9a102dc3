// Goal: calibration finds the constants that made the measurements, says how sure it is, leaves
// alone what no cell depends on, and refuses nonsense. Method: cells that the simulator itself made
// with known constants, without and with noise.
#include "holmes/partition/fit.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clusters.hpp"
#include "fit/least_squares.hpp"

namespace holmes::partition {
namespace {

ModelCost model() {
  ModelCost model = small_model(8);
  model.block_flops = 2e9;
  model.edge_bytes = 1 << 20;
  model.block_parameters = 1 << 20;
  return model;
}

/// `hosts` hosts on one fabric of `kind`.
Cluster alike(NicKind kind, std::uint32_t hosts) {
  Cluster cluster;
  cluster.fabrics = {{"net", kind, 1, 20}};
  for (std::uint32_t h = 0; h < hosts; ++h) {
    Host host{"h" + std::to_string(h), "c", "", {Device{}}, {}};
    host.nics = {{"n0", FabricId(0), 1, 20}};
    cluster.hosts.push_back(host);
  }
  return cluster;
}

std::vector<Cell> cells(double compute, double infiniband, double ethernet) {
  std::vector<Cell> cells;
  for (const NicKind kind : {NicKind::kInfiniBand, NicKind::kEthernet}) {
    for (const std::uint32_t hosts : {2U, 4U, 6U}) {
      Cell cell;
      cell.name = std::to_string(hosts);
      cell.cluster = alike(kind, hosts);
      cell.model = model();
      cell.job = {8, 1, 8};
      cell.how.plan.pipeline = 2;
      SearchOptions truth = cell.how;
      truth.cost.compute_efficiency = compute;
      truth.cost.network_efficiency = {infiniband, 1, ethernet, 1};
      cell.measured_step_s = predict(cell.cluster, cell.model, cell.job, truth)->predicted.step_s;
      cells.push_back(cell);
    }
  }
  return cells;
}

TEST(Fit, FindsTheConstantsThatMadeTheCells) {
  const auto found = fit(cells(0.45, 0.8, 0.3));
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_NEAR(found->compute->value, 0.45, 0.005);
  EXPECT_NEAR(found->network[0]->value, 0.8, 0.02);
  EXPECT_NEAR(found->network[2]->value, 0.3, 0.01);
  EXPECT_FALSE(found->network[1]);
  EXPECT_FALSE(found->network[3]);
  EXPECT_LT(found->rms_error, 0.002);
  for (const CellFit& cell : found->cells) {
    EXPECT_LT(std::abs(cell.error), 0.005);
    EXPECT_LT(std::abs(cell.left_out_error), 0.02);
  }
  const CostOptions applied = found->applied({});
  EXPECT_EQ(applied.compute_efficiency, found->compute->value);
  EXPECT_EQ(applied.network_efficiency[1], 1);
  EXPECT_TRUE(calibrated(applied));
  EXPECT_FALSE(calibrated({}));
}

TEST(Fit, NoiseWidensTheIntervals) {
  auto noisy = cells(0.45, 0.8, 0.3);
  const auto exact = fit(noisy);
  double sign = 1;
  for (Cell& cell : noisy) {
    cell.measured_step_s *= 1 + 0.05 * sign;
    sign = -sign;
  }
  const auto found = fit(noisy);
  ASSERT_TRUE(found && exact);
  EXPECT_GT(found->compute->half_width, exact->compute->half_width);
  EXPECT_GT(found->rms_error, 0.01);
  EXPECT_LE(found->compute->low, found->compute->value);
  EXPECT_GE(found->compute->high, found->compute->value);
}

TEST(Fit, SaysWhatNothingIsKnownOf) {
  auto few = cells(0.45, 0.8, 0.3);
  few = {few[1], few[4]};  // one cell of each kind of NIC
  const auto found = fit(few);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->cells[0].left_out_known);
  EXPECT_TRUE(std::isinf(found->compute->half_width));
}

TEST(Fit, RefusesNonsense) {
  EXPECT_FALSE(fit({}));
  auto broken = cells(1, 1, 1);
  broken[2].name = "third";
  broken[2].measured_step_s = 0;
  const auto found = fit(broken);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message(), testing::HasSubstr("'third'"));
}

TEST(LeastSquares, FindsTheMinimumInsideAndAtTheEdge) {
  const auto near = [](double x, double y) {
    return [x, y](const std::vector<double>& at) {
      return std::vector<double>{at[0] - x, 3 * (at[1] - y) + (at[0] - x)};
    };
  };
  auto best = least_squares(near(-1, -2), {{0, 0}, {-3, -3}}, -5, 0);
  EXPECT_NEAR(best[0], -1, 1e-2);
  EXPECT_NEAR(best[1], -2, 1e-2);
  best = least_squares(near(3, -2), {{-1, -1}}, -5, 0);
  EXPECT_NEAR(best[0], 0, 1e-9);
}

TEST(LeastSquares, IntervalsAreThoseOfALine) {
  // y = a x at x = 1, 2, 3 with residuals 0.1, -0.1, 0.1 / 3: the textbook's standard error.
  const std::vector<double> noise = {0.1, -0.1, 0.1 / 3};
  const auto residuals = [&](const std::vector<double>& at) {
    std::vector<double> result;
    for (int i = 0; i < 3; ++i)
      result.push_back(at[0] * (i + 1) + noise[static_cast<std::size_t>(i)]);
    return result;
  };
  double sum = 0;
  for (const double value : noise) sum += value * value;
  EXPECT_NEAR(half_widths(residuals, {0})[0], 4.303 * std::sqrt(sum / 2 / 14), 1e-6);
}

}  // namespace
}  // namespace holmes::partition

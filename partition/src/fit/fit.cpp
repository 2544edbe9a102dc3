#include "holmes/partition/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fit/least_squares.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

constexpr std::size_t kConstants = 5;  // compute, then the kinds of NIC

using Point = std::vector<double>;  // logarithms of the constants that are free

/// A cell with its plan, which does not depend on the constants.
struct Planned {
  const Cell* cell = nullptr;
  Plan plan;
  CostOptions cost;
};

double& constant(CostOptions& cost, std::size_t index) {
  return index == 0 ? cost.compute_efficiency : cost.network_efficiency[index - 1];
}

class Fitter {
 public:
  explicit Fitter(const std::vector<Cell>& cells) : cells_(cells) {}

  Result<Fit> run() {
    HOLMES_TRY(plan_cells());
    find_free();
    const std::vector<bool> all(planned_.size(), true);
    std::vector<Point> starts;
    for (const double share : {0.0, 0.35, 0.7}) {
      starts.emplace_back(free_.size(), share * std::log(kEfficiencyMin));
    }
    const Point best = minimise(all, starts);
    Fit fit;
    describe(best, fit);
    leave_out(best, fit);
    fit.simulations = simulations_;
    return fit;
  }

 private:
  Status plan_cells() {
    if (cells_.empty()) return Error(ErrorCode::kInvalidArgument, "fit: no measured cells");
    for (const Cell& cell : cells_) {
      if (!(cell.measured_step_s > 0 && cell.measured_step_s < 1e9)) {
        return Error(ErrorCode::kInvalidArgument, "fit: cell '" + cell.name + "' has a step of " +
                                                      number(cell.measured_step_s) + " s");
      }
      auto found = predict(cell.cluster, cell.model, cell.job, cell.how);
      if (!found) return found.error().in("fit: cell '" + cell.name + "'");
      planned_.push_back({&cell, std::move(found->plan), found->cost});
    }
    return {};
  }

  CostOptions with(const Planned& planned, const Point& point) const {
    CostOptions cost = planned.cost;
    for (std::size_t i = 0; i < free_.size(); ++i) constant(cost, free_[i]) = std::exp(point[i]);
    return cost;
  }

  double step_s(const Planned& planned, const CostOptions& cost) {
    ++simulations_;
    SimulateOptions how;
    how.cost = cost;
    const auto simulated = simulate(planned.plan, planned.cell->cluster, planned.cell->model, how);
    return simulated ? simulated->step_s : std::numeric_limits<double>::infinity();
  }

  double log_error(std::size_t cell, const Point& point) {
    const Planned& planned = planned_[cell];
    return std::log(step_s(planned, with(planned, point)) / planned.cell->measured_step_s);
  }

  /// Constants on which a cell's step depends at all.
  void find_free() {
    sensitive_.assign(planned_.size(), {});
    for (std::size_t index = 0; index < kConstants; ++index) {
      bool any = false;
      for (std::size_t cell = 0; cell < planned_.size(); ++cell) {
        CostOptions slow = planned_[cell].cost;
        constant(slow, index) = kEfficiencyMin;
        const double whole_s = step_s(planned_[cell], planned_[cell].cost);
        sensitive_[cell][index] = step_s(planned_[cell], slow) > whole_s * (1 + 1e-6);
        any = any || sensitive_[cell][index];
      }
      if (any) free_.push_back(index);
    }
  }

  Point minimise(const std::vector<bool>& used, const std::vector<Point>& starts) {
    const auto errors = [&](const Point& point) {
      std::vector<double> result;
      for (std::size_t cell = 0; cell < planned_.size(); ++cell) {
        if (used[cell]) result.push_back(log_error(cell, point));
      }
      return result;
    };
    return least_squares(errors, starts, std::log(kEfficiencyMin), 0);
  }

  void describe(const Point& best, Fit& fit) {
    double sum = 0;
    std::vector<double> errors;
    for (std::size_t cell = 0; cell < planned_.size(); ++cell) {
      errors.push_back(log_error(cell, best));
      sum += errors.back() * errors.back();
      CellFit of;
      of.error = std::exp(errors.back()) - 1;
      of.simulated_step_s = planned_[cell].cell->measured_step_s * std::exp(errors.back());
      fit.cells.push_back(of);
    }
    fit.rms_error = std::sqrt(sum / static_cast<double>(errors.size()));
    const auto widths = half_widths(
        [&](const Point& point) {
          std::vector<double> result;
          for (std::size_t cell = 0; cell < planned_.size(); ++cell) {
            result.push_back(log_error(cell, point));
          }
          return result;
        },
        best);
    for (std::size_t i = 0; i < free_.size(); ++i) {
      Fit::Constant found;
      found.value = found.low = found.high = std::exp(best[i]);
      found.half_width = widths[i];
      constexpr double kNear = 1e-3;
      found.at_bound = best[i] > -kNear || best[i] < std::log(kEfficiencyMin) + kNear;
      slot(fit, free_[i]) = found;
    }
  }

  static std::optional<Fit::Constant>& slot(Fit& fit, std::size_t index) {
    return index == 0 ? fit.compute : fit.network[index - 1];
  }

  void leave_out(const Point& best, Fit& fit) {
    for (std::size_t out = 0; out < planned_.size(); ++out) {
      std::vector<bool> used(planned_.size(), true);
      used[out] = false;
      bool known = planned_.size() > 1;
      for (const std::size_t index : free_) {
        bool others = false;
        for (std::size_t cell = 0; cell < planned_.size(); ++cell) {
          others = others || (cell != out && sensitive_[cell][index]);
        }
        known = known && (others || !sensitive_[out][index]);
      }
      fit.cells[out].left_out_known = known;
      if (!known) continue;
      const Point without = minimise(used, {best});
      fit.cells[out].left_out_error = std::exp(log_error(out, without)) - 1;
      for (std::size_t i = 0; i < free_.size(); ++i) {
        Fit::Constant& found = *slot(fit, free_[i]);
        found.low = std::min(found.low, std::exp(without[i]));
        found.high = std::max(found.high, std::exp(without[i]));
      }
    }
  }

  const std::vector<Cell>& cells_;
  std::vector<Planned> planned_;
  std::vector<std::size_t> free_;
  std::vector<std::array<bool, kConstants>> sensitive_;
  std::size_t simulations_ = 0;
};

}  // namespace

CostOptions Fit::applied(CostOptions base) const {
  if (compute) base.compute_efficiency = compute->value;
  for (std::size_t kind = 0; kind < network.size(); ++kind) {
    if (network[kind]) base.network_efficiency[kind] = network[kind]->value;
  }
  return base;
}

Result<Fit> fit(const std::vector<Cell>& cells) {
  return Fitter(cells).run();
}

}  // namespace holmes::partition

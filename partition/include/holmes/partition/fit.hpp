#pragma once

// Calibration: the few free constants of the cost model (compute efficiency, goodput efficiency of
// each kind of NIC) that bring simulated steps nearest to measured ones. One set of constants for
// all cells: none is tuned by itself, and what is left over is reported.
//
// Least squares of log(simulated / measured), by coordinate search from several starts. Each
// constant stays within [kEfficiencyMin, 1]: nothing is faster than what was declared.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "holmes/partition/search.hpp"

namespace holmes::partition {

constexpr double kEfficiencyMin = 0.005;

/// One measured run.
struct Cell {
  std::string name = {};
  Cluster cluster;
  ModelCost model;
  JobShape job;
  SearchOptions how;  ///< Its plan, and the constants that are not free.
  double measured_step_s = 0;
};

struct CellFit {
  double simulated_step_s = 0;
  double error = 0;            ///< simulated / measured - 1.
  double left_out_error = 0;   ///< The same by constants that were fitted without this cell.
  bool left_out_known = true;  ///< False: without it nothing says how fast its NICs are.
};

struct Fit {
  /// Compute, then by NicKind; nothing where no cell depends on it.
  struct Constant {
    double value = 1;
    double low = 0;  ///< Lowest and highest when any one cell is left out.
    double high = 0;
    double half_width = 0;  ///< Of a 95 % interval of log(value) by the linearised model; infinite
                            ///< where there are no more cells than constants.
    bool at_bound = false;
  };
  std::optional<Constant> compute;
  std::array<std::optional<Constant>, 4> network;
  std::vector<CellFit> cells;  ///< In the order given.
  double rms_error = 0;        ///< Of log(simulated / measured).
  std::size_t simulations = 0;

  CostOptions applied(CostOptions base) const;
};

/// kInvalidArgument: no cells, times that are not positive, or a cell that cannot be planned.
Result<Fit> fit(const std::vector<Cell>& cells);

}  // namespace holmes::partition

#include "holmes/partition/search.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "connect.hpp"
#include "holmes/partition/order.hpp"
#include "holmes/partition/reach.hpp"
#include "holmes/partition/schedule.hpp"
#include "holmes/partition/split.hpp"
#include "search/candidates.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

/// Passes that all simulations of one search may run; the first candidates are always simulated.
constexpr double kPassesMax = 400000;
constexpr std::size_t kSimulationsMin = 2;
/// A bound this near to the best step is not looked into.
constexpr double kNearEnough = 0.998;
/// Steps that differ by less are alike; then the fullest device decides.
constexpr double kAlike = 1e-9;

struct Candidate {
  std::size_t layout = 0;
  std::vector<std::uint32_t> counts;
  ScheduleKind schedule = ScheduleKind::k1F1B;
  double bound_s = 0;
};

struct Tried {
  Candidate candidate;
  double step_s = 0;
};

class Search {
 public:
  Search(const Cluster& cluster, const ModelCost& model, const JobShape& job,
         const SearchOptions& options)
      : cluster_(cluster),
        model_(model),
        job_(job),
        options_(options),
        hosts_(hosts_by_device(cluster)),
        devices_(devices_by_rank(cluster)) {}

  Result<Searched> run() {
    layouts_ = layouts(cluster_, model_, job_, options_.plan);
    make_candidates();
    try_strategy(Strategy::kHolmes);
    try_strategy(Strategy::kMegatron);
    try_candidates();
    if (options_.order) order_best();
    if (found_) return finish();
    if (short_) return *short_;
    return Error(ErrorCode::kInvalidArgument,
                 "strategy auto finds no plan: no stages of the cluster's devices have a common "
                 "fabric, at most train.reduction_leaves replicas and a block each");
  }

 private:
  std::vector<ScheduleKind> schedules() const {
    if (options_.executable) return {ScheduleKind::k1F1B, ScheduleKind::kGPipe};
    return {ScheduleKind::k1F1B, ScheduleKind::kZeroBubble, ScheduleKind::kInterleaved,
            ScheduleKind::kGPipe};
  }

  Plan base(std::size_t layout, ScheduleKind schedule) const {
    Plan plan;
    plan.strategy = Strategy::kAuto;
    plan.schedule = schedule;
    plan.job = job_;
    plan.tensor = options_.plan.tensor;
    if (schedule == ScheduleKind::kInterleaved) plan.chunks = options_.plan.chunks;
    plan.stages = deal_shares(layouts_[layout], devices_, job_.reduction_leaves);
    return plan;
  }

  void make_candidates() {
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      Plan plan = base(i, ScheduleKind::k1F1B);
      const bool every = cluster_.device_count() <= kExhaustiveUnitsMax * plan.tensor;
      auto found = splits(plan, model_, devices_, options_.cost, every);
      if (options_.plan.split == SplitRule::kEqual && !found.empty()) {
        found = {split_equal(model_.blocks, static_cast<std::uint32_t>(plan.stages.size()))};
      }
      for (auto& counts : found) {
        put_blocks(counts, plan);
        for (const ScheduleKind schedule : schedules()) {
          // One stage has nothing to order.
          if (plan.stages.size() == 1 && schedule != ScheduleKind::k1F1B) continue;
          plan.schedule = schedule;
          plan.chunks = schedule == ScheduleKind::kInterleaved ? options_.plan.chunks : 1;
          if (!check_schedule(plan)) continue;
          candidates_.push_back(
              {i, counts, schedule, lower_bound_s(plan, model_, devices_, options_.cost)});
        }
      }
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const auto& a, const auto& b) { return a.bound_s < b.bound_s; });
  }

  double passes(const Plan& plan) const {
    return 4.0 * static_cast<double>(plan.stages.size()) * job_.micro_batch_count() * plan.chunks;
  }

  /// What a published strategy plans is a candidate too, so that auto is never slower.
  void try_strategy(Strategy strategy) {
    PlanOptions options = options_.plan;
    options.strategy = strategy;
    if (options_.executable && !executed_by_runtime(options.schedule)) {
      options.schedule = ScheduleKind::k1F1B;
    }
    auto made = plan(cluster_, model_, job_, options);
    if (!made) return;
    made->strategy = Strategy::kAuto;
    consider(*std::move(made), nullptr);
  }

  void try_candidates() {
    double done = 0;
    std::size_t count = 0;
    for (const Candidate& candidate : candidates_) {
      if (found_ && candidate.bound_s >= kNearEnough * found_->predicted.step_s) break;
      Plan plan = base(candidate.layout, candidate.schedule);
      put_blocks(candidate.counts, plan);
      done += passes(plan);
      if (done > kPassesMax && count >= kSimulationsMin) break;
      ++count;
      if (!connect(cluster_, hosts_, model_.tied_head, plan)) continue;
      consider(std::move(plan), &candidate);
    }
  }

  struct Fit {
    CostOptions cost;
    double held = 0;  ///< Bytes on the fullest device.
  };

  /// The options with the least recompute with which the plan fits.
  std::optional<Fit> fitting(const Plan& plan) {
    CostOptions cost = options_.cost;
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      if (recompute < options_.cost.recompute) continue;
      if (recompute != options_.cost.recompute && !options_.any_recompute) break;
      cost.recompute = recompute;
      const MemoryShort worst = tightest(plan, cluster_, model_, cost);
      if (worst.missing() <= 0) return Fit{cost, worst.use.total()};
      if (!short_ || worst.missing() < missing_) {
        missing_ = worst.missing();
        short_ = check_memory(plan, cluster_, model_, cost).error();
      }
    }
    return std::nullopt;
  }

  void consider(Plan plan, const Candidate* candidate) {
    const auto fit = fitting(plan);
    if (!fit) return;
    SimulateOptions how;
    how.cost = fit->cost;
    auto simulated = simulate(plan, cluster_, model_, how);
    if (!simulated) return;
    ++simulated_;
    tried_.push_back({candidate != nullptr ? *candidate : described(plan), simulated->step_s});
    const bool best = better(simulated->step_s, fit->held);
    fastest_s_ = std::min(fastest_s_, simulated->step_s);
    if (!best) return;
    best_ = tried_.size() - 1;
    held_ = fit->held;
    found_ = Searched{std::move(plan), fit->cost, *std::move(simulated), {}, 0, 0};
  }

  /// Than the best so far: faster, or as fast and with less on the fullest device.
  bool better(double step_s, double held) const {
    if (step_s < fastest_s_ * (1 - kAlike)) return true;
    return !found_ || (step_s <= fastest_s_ * (1 + kAlike) && held < held_);
  }

  /// Gives the best plan an order of its own.
  void order_best() {
    if (!found_ || found_->plan.stages.size() < 2) return;
    OrderOptions how = options_.plan.order;
    how.split_backward = !options_.executable;
    how.chunks = options_.executable ? 1 : options_.plan.chunks;
    Plan ordered = found_->plan;
    if (!order_passes(cluster_, model_, found_->cost, how, ordered)) return;
    Candidate candidate = tried_[best_].candidate;
    candidate.schedule = ScheduleKind::kNetworkAware;
    consider(std::move(ordered), &candidate);
  }

  Candidate described(const Plan& plan) const {
    Candidate candidate;
    Layout layout;
    for (const StagePlan& stage : plan.stages) {
      auto& units = layout.emplace_back();
      for (const Share& share : stage.shares) units.push_back(share.devices());
      candidate.counts.push_back(stage.last_block - stage.first_block + 1);
    }
    candidate.schedule = plan.schedule;
    const auto known = std::find(layouts_.begin(), layouts_.end(), layout);
    candidate.layout = known != layouts_.end() ? static_cast<std::size_t>(known - layouts_.begin())
                                               : layouts_.size() + tried_.size();  // like no other
    return candidate;
  }

  /// In which way a candidate differs from the best, most visible first; empty: in none.
  std::string difference(const Candidate& other) const {
    const Candidate& best = tried_[best_].candidate;
    if (other.counts.size() != best.counts.size()) return counted(other.counts.size(), "stage");
    if (other.counts != best.counts) {
      std::vector<std::string> counts;
      for (const std::uint32_t count : other.counts) counts.push_back(std::to_string(count));
      return "blocks " + joined(counts);
    }
    if (other.layout != best.layout) return "other devices in its stages";
    if (other.schedule != best.schedule)
      return "schedule " + std::string(to_string(other.schedule));
    return {};
  }

  Result<Searched> finish() {
    const auto best = tried_.begin() + static_cast<std::ptrdiff_t>(best_);
    std::rotate(tried_.begin(), best, best + 1);
    best_ = 0;
    std::stable_sort(tried_.begin() + 1, tried_.end(),
                     [](const auto& a, const auto& b) { return a.step_s < b.step_s; });
    std::vector<std::string> kinds;
    for (std::size_t i = 1; i < tried_.size(); ++i) {
      const std::string what = difference(tried_[i].candidate);
      if (what.empty()) continue;
      const std::string kind = what.substr(0, what.find_first_of("0123456789 "));
      if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
      kinds.push_back(kind);
      found_->runners_up.push_back({what, tried_[i].step_s});
    }
    found_->considered = candidates_.size();
    found_->simulated = simulated_;
    return *std::move(found_);
  }

  const Cluster& cluster_;
  const ModelCost& model_;
  const JobShape job_;
  const SearchOptions& options_;
  const std::vector<HostId> hosts_;
  const std::vector<const Device*> devices_;
  std::vector<Layout> layouts_;
  std::vector<Candidate> candidates_;
  std::vector<Tried> tried_;
  std::size_t best_ = 0;
  std::size_t simulated_ = 0;
  double fastest_s_ = std::numeric_limits<double>::infinity();
  double held_ = 0;  ///< Bytes on the fullest device of the best plan.
  double missing_ = 0;
  std::optional<Error> short_;
  std::optional<Searched> found_;
};

}  // namespace

CostOptions execution_of(Strategy strategy, CostOptions base) {
  switch (strategy) {
    case Strategy::kMegatronLm:
      base.optimizer = OptimizerKind::kReplicated;
      break;
    case Strategy::kMegatronDeepspeed:
      base.optimizer = OptimizerKind::kSharded;
      break;
    case Strategy::kMegatronLlama:
      break;
    default:
      return base;
  }
  base.nic_selection = false;
  base.collective = Collective::kRing;
  base.element_bytes = 2;
  base.exact = false;
  return base;
}

Result<Searched> search(const Cluster& cluster, const ModelCost& model, const JobShape& job,
                        const SearchOptions& options) {
  HOLMES_TRY(validate(cluster));
  HOLMES_TRY(validate(options.cost));
  HOLMES_TRY_ASSIGN(const JobShape shape, checked_shape(job));
  // What no strategy can plan is said as plan() says it.
  PlanOptions first = options.plan;
  first.strategy = Strategy::kHolmes;
  first.pipeline = 1;
  first.data = 1;
  first.schedule = ScheduleKind::k1F1B;
  first.split = SplitRule::kEqual;
  if (model.blocks == 0 || options.plan.pipeline > model.blocks) {
    first.pipeline = options.plan.pipeline;
    HOLMES_TRY(plan(cluster, model, job, first));
  }
  return Search(cluster, model, shape, options).run();
}

Result<Searched> predict(const Cluster& cluster, const ModelCost& model, const JobShape& job,
                         const SearchOptions& options) {
  if (options.plan.strategy == Strategy::kAuto) return search(cluster, model, job, options);
  Searched result;
  HOLMES_TRY_ASSIGN(result.plan, plan(cluster, model, job, options.plan));
  result.cost = execution_of(options.plan.strategy, options.cost);
  if (result.plan.schedule == ScheduleKind::kNetworkAware) {
    OrderOptions order = options.plan.order;
    order.split_backward = !options.executable;
    HOLMES_TRY(order_passes(cluster, model, result.cost, order, result.plan));
  }
  SimulateOptions how;
  how.cost = result.cost;
  HOLMES_TRY_ASSIGN(result.predicted, simulate(result.plan, cluster, model, how));
  if (result.plan.schedule == ScheduleKind::kNetworkAware) {
    Plan usual = result.plan;
    usual.schedule = ScheduleKind::k1F1B;
    usual.chunks = 1;
    HOLMES_TRY_ASSIGN(const auto other, simulate(usual, cluster, model, how));
    result.runners_up.push_back({"schedule 1f1b", other.step_s});
  }
  result.considered = result.simulated = 1;
  return result;
}

}  // namespace holmes::partition

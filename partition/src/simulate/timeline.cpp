#include "holmes/partition/timeline.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "holmes/partition/reach.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

bool trains_on(const Plan& plan, const Cluster& cluster, HostId host) {
  const auto hosts = hosts_by_device(cluster);
  const auto members = plan.members();
  return std::any_of(members.begin(), members.end(),
                     [&](DeviceId device) { return hosts[device.index()] == host; });
}

/// Hosts and links as they were numbered at first, beside a cluster that loses some.
class Survivors {
 public:
  explicit Survivors(const Cluster& all) : cluster_(all), links_(all.links) {
    for (std::size_t h = 0; h < all.hosts.size(); ++h) names_.push_back(all.hosts[h].name);
  }
  const Cluster& cluster() const { return cluster_; }
  const std::string& name(std::size_t first_index) const { return names_[first_index]; }

  /// Where the host is now; nothing when it is dead.
  std::optional<std::size_t> find(std::size_t first_index) const {
    for (std::size_t h = 0; h < cluster_.hosts.size(); ++h) {
      if (cluster_.hosts[h].name == names_[first_index]) return h;
    }
    return std::nullopt;
  }
  std::optional<std::size_t> find_link(std::size_t first_index) const {
    const auto at = std::find(cluster_.links.begin(), cluster_.links.end(), links_[first_index]);
    if (at == cluster_.links.end()) return std::nullopt;
    return static_cast<std::size_t>(at - cluster_.links.begin());
  }
  /// Links of a cluster go with its last host.
  void remove(std::size_t first_index) {
    if (const auto at = find(first_index)) {
      cluster_.hosts.erase(cluster_.hosts.begin() + static_cast<std::ptrdiff_t>(*at));
    }
    std::erase_if(cluster_.links,
                  [&](const Link& link) { return !is_there(link.from) || !is_there(link.to); });
  }

 private:
  bool is_there(const std::string& end) const {
    return std::any_of(cluster_.fabrics.begin(), cluster_.fabrics.end(),
                       [&](const Fabric& fabric) { return fabric.name == end; }) ||
           std::any_of(cluster_.hosts.begin(), cluster_.hosts.end(),
                       [&](const Host& host) { return host.cluster == end; });
  }

  Cluster cluster_;
  std::vector<Link> links_;
  std::vector<std::string> names_;
};

class Run {
 public:
  Run(const Cluster& cluster, const ModelCost& model, const JobShape& job,
      const TimelineOptions& options)
      : survivors_(cluster), model_(model), job_(job), options_(options) {
    for (const Change& change : options.changes) {
      if (change.dies) deaths_.push_back(change.speed);
    }
    std::stable_sort(deaths_.begin(), deaths_.end(),
                     [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
  }

  Result<Timeline> run() {
    HOLMES_TRY_ASSIGN(Searched planned,
                      predict(survivors_.cluster(), model_, job_, options_.search));
    for (;;) {
      HOLMES_TRY(simulate_segment(std::move(planned)));
      if (timeline_.segments.back().ended_by.empty()) break;
      auto next = plan_anew();
      if (!next) {
        timeline_.stopped = next.error().message();
        break;
      }
      planned = *std::move(next);
    }
    return std::move(timeline_);
  }

 private:
  Status simulate_segment(Searched planned) {
    Segment segment;
    segment.cluster = survivors_.cluster();
    segment.planned = std::move(planned);
    segment.start_s = start_s_;
    SimulateOptions how;
    how.cost = segment.planned.cost;
    how.steps = options_.steps - static_cast<std::uint32_t>(timeline_.commits_s.size());
    how.record = options_.record;
    how.changes = changes_now();
    HOLMES_TRY_ASSIGN(segment.simulated,
                      simulate(segment.planned.plan, segment.cluster, model_, how));
    const double end_s = start_s_ + segment.simulated.commits_s.back();
    const auto death = next_death(segment.planned.plan, end_s);
    double last_s = start_s_;
    for (const double commit_s : segment.simulated.commits_s) {
      if (death && start_s_ + commit_s > death->at_s) break;
      last_s = start_s_ + commit_s;
      timeline_.commits_s.push_back(last_s);
      ++segment.steps;
    }
    if (death) {
      const double at_s = std::max(death->at_s, start_s_);
      segment.ended_by =
          "host " + survivors_.name(death->index) + " died at " + number(death->at_s) + " s";
      segment.lost_s = at_s - last_s;
      start_s_ = at_s + options_.recovery_s;
      survivors_.remove(death->index);
    }
    timeline_.segments.push_back(std::move(segment));
    return {};
  }

  /// Changes of speed as they are for this segment: what came before its start holds from it on.
  std::vector<SpeedChange> changes_now() const {
    std::vector<SpeedChange> changes;
    for (const Change& change : options_.changes) {
      if (change.dies) continue;
      SpeedChange now = change.speed;
      now.at_s = std::max(0.0, now.at_s - start_s_);
      if (now.what == SpeedChange::What::kHost) {
        const auto host = survivors_.find(now.index);
        if (!host) continue;
        now.index = *host;
      } else if (now.what == SpeedChange::What::kLink) {
        const auto link = survivors_.find_link(now.index);
        if (!link) continue;
        now.index = *link;
      }
      changes.push_back(now);
    }
    return changes;
  }

  /// The first death before `end_s` of a host that trains. Of others nobody takes notice.
  std::optional<SpeedChange> next_death(const Plan& plan, double end_s) {
    while (!deaths_.empty() && deaths_.front().at_s < end_s) {
      const SpeedChange death = deaths_.front();
      deaths_.erase(deaths_.begin());
      const auto host = survivors_.find(death.index);
      if (!host) continue;
      if (trains_on(plan, survivors_.cluster(), HostId(static_cast<std::uint32_t>(*host)))) {
        return death;
      }
    }
    return std::nullopt;
  }

  /// Degrees that no longer divide what is left are given up.
  Result<Searched> plan_anew() {
    if (survivors_.cluster().hosts.empty()) {
      return Error(ErrorCode::kInvalidArgument, "no host is left");
    }
    auto planned = predict(survivors_.cluster(), model_, job_, options_.search);
    if (planned) return planned;
    SearchOptions free = options_.search;
    free.plan.pipeline = free.plan.data = 0;
    auto again = predict(survivors_.cluster(), model_, job_, free);
    return again ? again : planned;
  }

  Survivors survivors_;
  const ModelCost& model_;
  const JobShape job_;
  const TimelineOptions& options_;
  std::vector<SpeedChange> deaths_;
  double start_s_ = 0;
  Timeline timeline_;
};

}  // namespace

std::vector<double> Timeline::step_times_s() const {
  std::vector<double> times;
  double before_s = 0;
  for (const double commit_s : commits_s) {
    times.push_back(commit_s - before_s);
    before_s = commit_s;
  }
  return times;
}

Result<Timeline> run_timeline(const Cluster& cluster, const ModelCost& model, const JobShape& job,
                              const TimelineOptions& options) {
  if (!(options.recovery_s >= 0 && options.recovery_s < 1e9)) {
    return Error(ErrorCode::kInvalidArgument,
                 "simulate: a recovery of " + number(options.recovery_s) + " s makes no sense");
  }
  TimelineOptions sorted = options;
  std::stable_sort(sorted.changes.begin(), sorted.changes.end(),
                   [](const Change& a, const Change& b) { return a.speed.at_s < b.speed.at_s; });
  return Run(cluster, model, job, sorted).run();
}

}  // namespace holmes::partition

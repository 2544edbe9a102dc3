#include "schedule/generate.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "holmes/base/random.hpp"
#include "schedule/seeds.hpp"

namespace holmes::partition {
namespace {

/// How a free station chooses. Backwards free memory and let the stages before go on, forwards feed
/// the stages behind; weight passes are for times in which neither can run.
struct Rule {
  bool forward_first = false;
  /// Waits for a pass of the preferred kind that comes within so much of the other's time.
  double patience = 0;
  /// Split: a weight pass starts when nothing is due within so much of its time ...
  double fit = 0;
  /// ... or when more than these are owed.
  std::uint32_t owed_max = ~std::uint32_t{0};
};

class Greedy {
 public:
  Greedy(const Pipeline& pipeline, const PipelineRun& run, const Rule& rule,
         const std::vector<std::uint32_t>& caps)
      : pipeline_(pipeline), run_(run), rule_(rule), caps_(caps) {}

  PipelineRun::Choice operator()(std::uint32_t station, double now_s) const {
    const Pass backward = run_.split() ? Pass::kBackwardInput : Pass::kBackward;
    PipelineRun::Choice b{backward, run_.ready_s(station, backward)};
    PipelineRun::Choice f{Pass::kForward, run_.ready_s(station, Pass::kForward)};
    if (run_.held(station) >= caps_[station]) f.start_s = kNever;
    const PassTimes& times = pipeline_.stations[station].chunks.front();
    const std::uint32_t owed = run_.owed(station);
    if (owed > rule_.owed_max) return {Pass::kBackwardWeight, now_s};

    const auto& first = rule_.forward_first ? f : b;
    const auto& second = rule_.forward_first ? b : f;
    const double wait_s = rule_.patience * times.of(second.pass);
    PipelineRun::Choice next = second;
    if (first.start_s <= now_s || first.start_s <= std::max(now_s, second.start_s) + wait_s) {
      next = first;
    }
    next.start_s = std::max(next.start_s, now_s);
    if (owed > 0 && next.start_s > now_s && next.start_s >= now_s + rule_.fit * times.weight_s) {
      return {Pass::kBackwardWeight, now_s};
    }
    return next;
  }

 private:
  const Pipeline& pipeline_;
  const PipelineRun& run_;
  const Rule& rule_;
  const std::vector<std::uint32_t>& caps_;
};

std::vector<Rule> rules_for(bool split) {
  std::vector<Rule> rules;
  for (const double patience : {0.0, 1.0, 0.5}) {
    for (const bool forward_first : {false, true}) {
      if (!split) {
        rules.push_back({forward_first, patience});
        continue;
      }
      for (const double fit : {0.0, 1.0, 0.5}) rules.push_back({forward_first, patience, fit});
      rules.push_back({forward_first, patience, 1, 0});
      rules.push_back({forward_first, patience, 1, 2});
    }
  }
  return rules;
}

class Generator {
 public:
  Generator(const Pipeline& pipeline, const GenerateOptions& options)
      : pipeline_(pipeline),
        options_(options),
        run_(pipeline),
        cost_(pipeline.pass_count()),
        tries_(std::max<std::size_t>(options.passes_max / std::max<std::size_t>(cost_, 1), 6)) {}

  std::vector<Ordered> go() {
    const std::size_t seeds_max = std::max<std::size_t>(tries_ / 3, 3);
    for (Orders& orders : all_seeds(pipeline_, options_.split, seeds_max)) {
      const double end_s = run_.play(orders);
      keep(end_s, std::move(orders));
      ++tried_;
    }
    const std::size_t rules_end = std::max(tried_ + 3, tries_ * 2 / 3);
    list(false, options_.split ? (tried_ + rules_end) / 2 : rules_end);
    if (options_.split) list(true, rules_end);
    sort();
    improve();
    sort();
    return std::move(found_);
  }

 private:
  void keep(double end_s, Orders orders) {
    if (end_s < kNever) found_.push_back({std::move(orders), end_s});
  }

  /// Nothing beyond what may be held; as little as round trips need, and some more.
  std::vector<std::vector<std::uint32_t>> caps() const {
    std::vector<std::vector<std::uint32_t>> result(1);
    for (const auto& station : pipeline_.stations) result[0].push_back(station.held_max);
    const auto trip = round_trip_depths(pipeline_);
    for (const std::uint32_t more : {0U, 1U, 2U, 4U}) {
      auto& caps = result.emplace_back(result.front());
      for (std::size_t i = 0; i < caps.size(); ++i) {
        caps[i] = std::min(caps[i], trip[i] + more * pipeline_.chunks);
      }
      if (caps == result.front()) result.pop_back();
    }
    return result;
  }

  void list(bool split, std::size_t end) {
    for (const Rule& rule : rules_for(split)) {
      for (const auto& caps : caps()) {
        if (tried_++ >= end) return;
        const double end_s = run_.run(split, kNever, Greedy(pipeline_, run_, rule, caps));
        keep(end_s, run_.words());
      }
    }
  }

  void sort() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Ordered& a, const Ordered& b) { return a.end_s < b.end_s; });
    std::vector<Ordered> distinct;
    for (Ordered& each : found_) {
      const bool known = std::any_of(distinct.begin(), distinct.end(), [&](const Ordered& other) {
        return other.end_s == each.end_s && other.orders == each.orders;
      });
      if (!known) distinct.push_back(std::move(each));
    }
    found_ = std::move(distinct);
  }

  /// Stations that are alike keep the same word.
  std::vector<std::vector<std::uint32_t>> alike(const Orders& orders) const {
    std::map<std::pair<std::uint32_t, std::string>, std::vector<std::uint32_t>> by_word;
    for (std::uint32_t i = 0; i < orders.size(); ++i) {
      by_word[{pipeline_.stations[i].stage, orders[i]}].push_back(i);
    }
    std::vector<std::vector<std::uint32_t>> result;
    for (auto& [word, stations] : by_word) result.push_back(std::move(stations));
    return result;
  }

  /// Moves a pass over a few others at stations that are alike; keeps what is no worse. From the
  /// two best starts.
  void improve() {
    Random random(1);
    const std::size_t starts = std::min<std::size_t>(found_.size(), 2);
    for (std::size_t s = 0; s < starts; ++s) {
      Ordered best = found_[s];
      const std::size_t left = tries_ > tried_ ? (tries_ - tried_) / (starts - s) : 0;
      const auto groups = alike(best.orders);
      for (std::size_t i = 0; i < left; ++i) {
        ++tried_;
        Orders next = best.orders;
        if (!move(random, groups[random.below(groups.size())], next)) continue;
        const double end_s = run_.play(next, best.end_s);
        if (end_s <= best.end_s) best = {std::move(next), end_s};
      }
      found_.push_back(std::move(best));
    }
  }

  static bool move(Random& random, const std::vector<std::uint32_t>& stations, Orders& orders) {
    const std::string& word = orders[stations.front()];
    if (word.size() < 2) return false;
    const std::size_t from = random.below(word.size());
    const std::size_t reach = 1 + random.below(4);
    const std::size_t to =
        random.chance(0.5) ? std::min(from + reach, word.size() - 1) : from - std::min(from, reach);
    std::string changed = word;
    const char letter = changed[from];
    changed.erase(from, 1);
    changed.insert(to, 1, letter);
    if (changed == word) return false;
    for (const std::uint32_t station : stations) orders[station] = changed;
    return true;
  }

  const Pipeline& pipeline_;
  const GenerateOptions options_;
  PipelineRun run_;
  const std::size_t cost_;
  const std::size_t tries_;
  std::size_t tried_ = 0;
  std::vector<Ordered> found_;
};

}  // namespace

std::vector<Ordered> generate(const Pipeline& pipeline, const GenerateOptions& options) {
  return Generator(pipeline, options).go();
}

}  // namespace holmes::partition

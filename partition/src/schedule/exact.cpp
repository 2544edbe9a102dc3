#include "schedule/exact.hpp"

#include <algorithm>
#include <map>

#include "holmes/base/assert.hpp"

namespace holmes::partition {
namespace {

constexpr double kSooner = 1e-9;
/// States kept for each set of counts, to see that another is no better.
constexpr std::size_t kKnownMax = 64;

struct Node {
  struct At {
    std::uint32_t forwards = 0;
    std::uint32_t backwards = 0;
    std::uint32_t weights = 0;
    double free_s = 0;
  };
  std::vector<At> stations;
  std::vector<double> activations_s;
  std::vector<double> gradients_s;
  std::vector<double> channels_s;
  Orders orders;
  double end_s = 0;
};

struct Next {
  Pass pass = Pass::kForward;
  double start_s = kNever;
  double end_s = kNever;
};

class Exact {
 public:
  Exact(const Pipeline& pipeline, bool split, double within_s, std::size_t nodes_max)
      : pipeline_(pipeline), split_(split), best_s_(within_s), nodes_left_(nodes_max) {}

  std::optional<Ordered> run(bool* complete) {
    HOLMES_ASSERT(pipeline_.overlapped && pipeline_.chunks == 1, "not a pipeline that it knows");
    Node root;
    root.stations.resize(pipeline_.stations.size());
    root.orders.resize(pipeline_.stations.size());
    const std::size_t places = std::size_t{pipeline_.stages} * pipeline_.micro_batches;
    root.activations_s.assign(places, kNever);
    root.gradients_s.assign(places, kNever);
    std::fill_n(root.activations_s.begin(), pipeline_.micro_batches, 0);
    std::fill_n(root.gradients_s.end() - pipeline_.micro_batches, pipeline_.micro_batches, 0);
    root.channels_s.assign(pipeline_.channel_count, 0);
    visit(root);
    *complete = nodes_left_ > 0;
    return found_;
  }

 private:
  std::size_t place(std::uint32_t station, std::uint32_t index) const {
    const Pipeline::Station& at = pipeline_.stations[station];
    return std::size_t{at.stage} * pipeline_.micro_batches + at.first + index;
  }

  Next next(const Node& node, std::uint32_t station, Pass pass) const {
    const Node::At& at = node.stations[station];
    const Pipeline::Station& of = pipeline_.stations[station];
    double ready_s = kNever;
    if (pass == Pass::kForward) {
      const std::uint32_t held = at.forwards - (split_ ? at.weights : at.backwards);
      if (at.forwards < of.count && held < of.held_max) {
        ready_s = node.activations_s[place(station, at.forwards)];
      }
    } else if (pass == Pass::kBackwardWeight) {
      if (at.weights < at.backwards) ready_s = 0;
    } else if (at.backwards < std::min(at.forwards, of.count)) {
      ready_s = node.gradients_s[place(station, at.backwards)];
    }
    const double start_s = std::max(ready_s, at.free_s);
    return {pass, start_s, start_s + of.chunks[0].of(pass)};
  }

  std::vector<Next> nexts(const Node& node, std::uint32_t station) const {
    std::vector<Next> result{next(node, station, split_ ? Pass::kBackwardInput : Pass::kBackward),
                             next(node, station, Pass::kForward)};
    if (split_) result.push_back(next(node, station, Pass::kBackwardWeight));
    return result;
  }

  /// Work that is left at a station, and then the way of its last gradient to the first stage.
  double bound_s(const Node& node) const {
    double bound_s = node.end_s;
    for (std::uint32_t i = 0; i < node.stations.size(); ++i) {
      const Node::At& at = node.stations[i];
      const Pipeline::Station& of = pipeline_.stations[i];
      double start_s = kNever;
      for (const Next& each : nexts(node, i)) start_s = std::min(start_s, each.start_s);
      if (start_s == kNever) start_s = at.free_s;
      const PassTimes& t = of.chunks[0];
      const double here_s = start_s + (of.count - at.forwards) * t.forward_s +
                            (of.count - at.backwards) * (split_ ? t.input_s : t.backward_s);
      if (split_) bound_s = std::max(bound_s, here_s + (of.count - at.weights) * t.weight_s);
      if (at.backwards < of.count) bound_s = std::max(bound_s, here_s + tail_s(i));
    }
    return bound_s;
  }

  double tail_s(std::uint32_t station) const {
    const std::uint32_t last =
        pipeline_.stations[station].first + pipeline_.stations[station].count - 1;
    double tail_s = 0;
    for (std::uint32_t s = pipeline_.stations[station].stage; s > 0; --s) {
      tail_s += pipeline_.ways[pipeline_.back[place_of(s, last)]].latency_s;
      const PassTimes& t = pipeline_.stations[pipeline_.owner[place_of(s - 1, last)]].chunks[0];
      tail_s += split_ ? t.input_s + t.weight_s : t.backward_s;
    }
    return tail_s;
  }
  std::size_t place_of(std::uint32_t stage, std::uint32_t micro_batch) const {
    return std::size_t{stage} * pipeline_.micro_batches + micro_batch;
  }

  Node after(const Node& node, std::uint32_t station, const Next& next) const {
    Node result = node;
    Node::At& at = result.stations[station];
    at.free_s = next.end_s;
    result.end_s = std::max(result.end_s, next.end_s);
    result.orders[station] += letter_of(next.pass);
    if (next.pass == Pass::kBackwardWeight) {
      ++at.weights;
      return result;
    }
    const bool forward = next.pass == Pass::kForward;
    std::uint32_t& count = forward ? at.forwards : at.backwards;
    const std::size_t from = place(station, count++);
    const std::uint32_t stage = pipeline_.stations[station].stage;
    if (forward ? stage + 1 == pipeline_.stages : stage == 0) return result;
    const auto& way = pipeline_.ways[(forward ? pipeline_.forth : pipeline_.back)[from]];
    double arrives_s = next.end_s;
    for (const auto& part : way.parts) {
      double& free_s = result.channels_s[part.channel];
      free_s = std::max(free_s, next.end_s) + part.busy_s;
      arrives_s = std::max(arrives_s, free_s);
    }
    auto& arrivals = forward ? result.activations_s : result.gradients_s;
    arrivals[forward ? from + pipeline_.micro_batches : from - pipeline_.micro_batches] =
        arrives_s + way.latency_s;
    return result;
  }

  /// Another way to the same counts left every station, channel and payload no later.
  bool dominated(const Node& node) {
    std::vector<std::uint32_t> counts;
    std::vector<double> times = node.channels_s;
    for (std::uint32_t i = 0; i < node.stations.size(); ++i) {
      const Node::At& at = node.stations[i];
      counts.insert(counts.end(), {at.forwards, at.backwards, at.weights});
      times.push_back(at.free_s);
      for (std::uint32_t k = at.forwards; k < pipeline_.stations[i].count; ++k) {
        times.push_back(std::max(at.free_s, node.activations_s[place(i, k)]));
      }
      for (std::uint32_t k = at.backwards; k < pipeline_.stations[i].count; ++k) {
        times.push_back(std::max(at.free_s, node.gradients_s[place(i, k)]));
      }
    }
    auto& known = known_[counts];
    for (const auto& other : known) {
      bool no_later = true;
      for (std::size_t i = 0; i < times.size() && no_later; ++i) no_later = other[i] <= times[i];
      if (no_later) return true;
    }
    if (known.size() < kKnownMax) known.push_back(std::move(times));
    return false;
  }

  void visit(const Node& node) {
    if (nodes_left_ == 0) return;
    --nodes_left_;
    if (bound_s(node) >= best_s_ * (1 - kSooner) || dominated(node)) return;
    Next soonest;
    std::uint32_t at = 0;
    for (std::uint32_t i = 0; i < node.stations.size(); ++i) {
      for (const Next& each : nexts(node, i)) {
        if (each.end_s >= soonest.end_s) continue;
        soonest = each;
        at = i;
      }
    }
    if (soonest.end_s == kNever) {
      best_s_ = node.end_s;  // all done: a word with the fewest passes always can go on
      found_ = Ordered{node.orders, node.end_s};
      return;
    }
    for (const Next& each : nexts(node, at)) {
      if (each.start_s < soonest.end_s) visit(after(node, at, each));
    }
  }

  const Pipeline& pipeline_;
  const bool split_;
  double best_s_;
  std::size_t nodes_left_;
  std::optional<Ordered> found_;
  std::map<std::vector<std::uint32_t>, std::vector<std::vector<double>>> known_;
};

}  // namespace

std::optional<Ordered> exact(const Pipeline& pipeline, bool split, double within_s,
                             std::size_t nodes_max, bool* complete) {
  return Exact(pipeline, split, within_s, nodes_max).run(complete);
}

}  // namespace holmes::partition

// Which clusters become one stage, and in which order stages follow one another.

#include <algorithm>
#include <set>
#include <tuple>

#include "holmes/partition/reach.hpp"
#include "layout.hpp"
#include "network.hpp"
#include "paths.hpp"

namespace holmes::partition {
namespace {

/// Beyond this many clusters the order of the description is kept: pairs are too many.
constexpr std::size_t kOrderedMembersMax = 128;

void merge(ClusterMembers& into, ClusterMembers& other) {
  into.name += " and " + other.name;
  into.hosts.insert(into.hosts.end(), other.hosts.begin(), other.hosts.end());
  into.units.insert(into.units.end(), std::make_move_iterator(other.units.begin()),
                    std::make_move_iterator(other.units.end()));
  other.hosts.clear();  // marks it as gone
}

/// Members that `fabric` joins whole, and how fast it joins the first two.
struct Joined {
  double gbit_s = 0;
  FabricId fabric;
  std::vector<std::size_t> members;
};

Joined joined_by(const Cluster& cluster, FabricId fabric,
                 const std::vector<ClusterMembers>& members) {
  Joined result{0, fabric, {}};
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto& hosts = members[i].hosts;
    if (hosts.empty() || rails(cluster, hosts.front(), fabric).empty()) continue;
    if (joins(cluster, fabric, hosts)) result.members.push_back(i);
  }
  for (std::size_t i = 1; i < result.members.size() && result.gbit_s == 0; ++i) {
    const auto between = route(cluster, members[result.members[0]].hosts.front(),
                               members[result.members[i]].hosts.front(), fabric);
    if (between) result.gbit_s = between->gbit_s;
  }
  return result;
}

bool can_merge(const Cluster& cluster, FabricId fabric, const ClusterMembers& a,
               const ClusterMembers& b) {
  std::vector<HostId> both = a.hosts;
  both.insert(both.end(), b.hosts.begin(), b.hosts.end());
  return joins(cluster, fabric, both);
}

/// Merges the smallest of `joined` with the next smallest again and again; returns how many are
/// left of all.
std::size_t merge_joined(const Cluster& cluster, const Joined& joined, std::size_t left,
                         std::size_t count, std::vector<ClusterMembers>& members) {
  using Size = std::pair<std::size_t, std::size_t>;  // of units, then position
  std::set<Size> smallest;
  for (const std::size_t i : joined.members) smallest.emplace(members[i].units.size(), i);
  while (left > count && smallest.size() > 1) {
    const std::size_t first = smallest.begin()->second;
    smallest.erase(smallest.begin());
    // Facts that contradict keep members apart: then the next one.
    const auto partner = std::find_if(smallest.begin(), smallest.end(), [&](const Size& other) {
      return can_merge(cluster, joined.fabric, members[first], members[other.second]);
    });
    if (partner == smallest.end()) continue;
    const std::size_t a = std::min(first, partner->second);
    const std::size_t b = std::max(first, partner->second);
    smallest.erase(partner);
    merge(members[a], members[b]);
    smallest.emplace(members[a].units.size(), a);
    --left;
  }
  return left;
}

/// Time that a byte takes over all edges between neighbours; infinite where nothing joins two.
double edge_cost(const std::vector<std::vector<double>>& gbit_s,
                 const std::vector<std::size_t>& order) {
  double cost = 0;
  for (std::size_t i = 1; i < order.size(); ++i) cost += 1 / gbit_s[order[i - 1]][order[i]];
  return cost;
}

/// From the first member on always the nearest that is left.
std::vector<std::size_t> nearest_order(const std::vector<std::vector<double>>& gbit_s) {
  std::vector<std::size_t> order{0};
  std::vector<bool> placed(gbit_s.size(), false);
  placed[0] = true;
  while (order.size() < gbit_s.size()) {
    std::size_t best = gbit_s.size();
    for (std::size_t i = 0; i < gbit_s.size(); ++i) {
      if (placed[i]) continue;
      if (best == gbit_s.size() || gbit_s[order.back()][i] > gbit_s[order.back()][best]) best = i;
    }
    placed[best] = true;
    order.push_back(best);
  }
  return order;
}

}  // namespace

void merge_to(const Cluster& cluster, std::size_t count, std::vector<ClusterMembers>& members) {
  std::size_t left = members.size();
  if (left <= count) return;
  std::vector<Joined> fabrics;
  for (std::uint32_t i = 0; i < cluster.fabrics.size(); ++i) {
    Joined joined = joined_by(cluster, FabricId(i), members);
    if (joined.members.size() > 1) fabrics.push_back(std::move(joined));
  }
  std::sort(fabrics.begin(), fabrics.end(), [](const Joined& a, const Joined& b) {
    return std::tuple(-a.gbit_s, a.fabric) < std::tuple(-b.gbit_s, b.fabric);
  });
  for (const Joined& fabric : fabrics) {
    if (left == count) break;
    // Earlier merges may have taken members off this fabric.
    left = merge_joined(cluster, joined_by(cluster, fabric.fabric, members), left, count, members);
  }
  // No fabric joins what is left: merged all the same, and the error will name the hosts.
  for (std::size_t i = members.size(); left > count && i-- > 1;) {
    if (members[i].hosts.empty()) continue;
    std::size_t into = i - 1;
    while (into > 0 && members[into].hosts.empty()) --into;
    merge(members[into], members[i]);
    --left;
  }
  std::erase_if(members, [](const ClusterMembers& m) { return m.hosts.empty(); });
}

void order_for_edges(const Cluster& cluster, std::vector<ClusterMembers>& members) {
  if (members.size() < 3 || members.size() > kOrderedMembersMax) return;
  std::vector<std::vector<double>> gbit_s(members.size(), std::vector<double>(members.size(), 0));
  for (std::size_t a = 0; a < members.size(); ++a) {
    for (std::size_t b = a + 1; b < members.size(); ++b) {
      gbit_s[a][b] = gbit_s[b][a] =
          best_gbit_s(cluster, {members[a].hosts.front(), members[b].hosts.front()});
    }
  }
  std::vector<std::size_t> described(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) described[i] = i;
  const auto order = nearest_order(gbit_s);
  if (!(edge_cost(gbit_s, order) < edge_cost(gbit_s, described) * (1 - 1e-9))) return;
  std::vector<ClusterMembers> ordered;
  for (const std::size_t i : order) ordered.push_back(std::move(members[i]));
  members = std::move(ordered);
}

}  // namespace holmes::partition

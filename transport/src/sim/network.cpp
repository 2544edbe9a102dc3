#include <algorithm>

#include "sim/pipe.hpp"

namespace holmes::transport {

namespace sim {

std::optional<std::size_t> NetworkState::find_nic(const std::string& name) const {
  const auto found =
      std::find_if(nics.begin(), nics.end(), [&](const Nic& nic) { return nic.name == name; });
  if (found == nics.end()) return {};
  return static_cast<std::size_t>(found - nics.begin());
}

std::size_t NetworkState::nic_index(const std::string& name) const {
  const auto found = find_nic(name);
  HOLMES_ASSERT(found.has_value(), ("the simulated network has no NIC " + name).c_str());
  return *found;
}

bool NetworkState::is_cut(std::size_t from, std::size_t to) const {
  return nics[from].cut || nics[to].cut || nics[from].dead || nics[to].dead ||
         cuts.contains({from, to});
}

Duration NetworkState::latency(std::size_t from, std::size_t to) {
  const auto& fabric = fabrics[nics[from].fabric];
  const auto jitter =
      fabric.jitter > Duration::zero()
          ? Duration(random.below(static_cast<std::uint64_t>(fabric.jitter.count()) + 1))
          : Duration::zero();
  return fabric.latency + jitter + nics[from].extra_latency + nics[to].extra_latency;
}

void NetworkState::note(std::size_t from, std::size_t to, std::uint64_t what) {
  loop.note(mix64(from * 65537 + to) ^ what);
}

void NetworkState::release_held() {
  for (const auto& pipe : std::vector(pipes)) pipe->release();
}

}  // namespace sim

SimNetwork::SimNetwork(SimLoop& loop, std::uint64_t seed)
    : state_(std::make_shared<sim::NetworkState>(loop, seed)) {}

SimNetwork::~SimNetwork() {
  state_->pipes.clear();
  state_->acceptors.clear();
}

void SimNetwork::add_fabric(const std::string& name, double gbit_s, Duration latency,
                            Duration jitter) {
  HOLMES_ASSERT(gbit_s > 0, "a fabric needs a rate");
  state_->fabrics.push_back({name, gbit_s, latency, jitter});
}

void SimNetwork::add_nic(const std::string& nic, const std::string& fabric,
                         std::optional<double> gbit_s) {
  const auto& fabrics = state_->fabrics;
  const auto found = std::find_if(fabrics.begin(), fabrics.end(),
                                  [&](const auto& candidate) { return candidate.name == fabric; });
  HOLMES_ASSERT(found != fabrics.end(), ("no fabric " + fabric).c_str());
  HOLMES_ASSERT(!state_->find_nic(nic), ("two NICs named " + nic).c_str());
  sim::Nic added;
  added.name = nic;
  added.host = nic.substr(0, nic.find('/'));
  added.fabric = static_cast<std::size_t>(found - fabrics.begin());
  added.gbit_s = gbit_s.value_or(found->gbit_s);
  state_->nics.push_back(std::move(added));
}

std::unique_ptr<Context> SimNetwork::make_context(const std::string& nic, Executor& executor) {
  return sim::make_sim_context(state_, state_->nic_index(nic), executor);
}

void SimNetwork::cut(const std::string& from_nic, const std::string& to_nic) {
  state_->cuts.insert({state_->nic_index(from_nic), state_->nic_index(to_nic)});
}

void SimNetwork::heal(const std::string& from_nic, const std::string& to_nic) {
  state_->cuts.erase({state_->nic_index(from_nic), state_->nic_index(to_nic)});
  state_->release_held();
}

void SimNetwork::cut_nic(const std::string& nic) {
  state_->nics[state_->nic_index(nic)].cut = true;
}

void SimNetwork::heal_nic(const std::string& nic) {
  state_->nics[state_->nic_index(nic)].cut = false;
  state_->release_held();
}

void SimNetwork::heal_all() {
  state_->cuts.clear();
  for (auto& nic : state_->nics) {
    nic.cut = false;
    nic.extra_latency = {};
  }
  state_->release_held();
}

void SimNetwork::delay(const std::string& nic, Duration extra) {
  state_->nics[state_->nic_index(nic)].extra_latency = extra;
}

void SimNetwork::set_rate(const std::string& nic, double gbit_s) {
  HOLMES_ASSERT(gbit_s > 0, "a NIC needs a rate; cut it to stop it");
  state_->nics[state_->nic_index(nic)].gbit_s = gbit_s;
}

void SimNetwork::reset(const std::string& nic_a, const std::string& nic_b) {
  const auto a = state_->nic_index(nic_a);
  const auto b = state_->nic_index(nic_b);
  for (const auto& pipe : std::vector(state_->pipes))
    if ((pipe->from() == a && pipe->to() == b) || (pipe->from() == b && pipe->to() == a))
      pipe->reset(Error(ErrorCode::kClosed, "the connection broke: reset by the network"));
}

void SimNetwork::kill_host(const std::string& host, bool silent) {
  const auto at_host = [&](std::size_t nic) { return state_->nics[nic].host == host; };
  std::erase_if(state_->acceptors, [&](const auto& entry) { return at_host(entry.second->nic); });
  for (const auto& pipe : std::vector(state_->pipes))
    if (at_host(pipe->from())) pipe->kill(silent);
  if (!silent) return;
  for (auto& nic : state_->nics)
    if (nic.host == host) nic.dead = true;
}

void SimNetwork::revive_host(const std::string& host) {
  for (auto& nic : state_->nics)
    if (nic.host == host) nic.dead = false;
}

}  // namespace holmes::transport

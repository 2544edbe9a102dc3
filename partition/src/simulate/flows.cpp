#include "simulate/flows.hpp"

#include <algorithm>

#include "holmes/base/assert.hpp"

namespace holmes::partition {

Flows::Id Flows::begin(double now_s, double bytes, const std::vector<std::uint32_t>& channels,
                       const std::vector<double>& bytes_s, std::vector<End>& ends) {
  HOLMES_ASSERT(!channels.empty() && channels.size() == bytes_s.size(), "a speed for each channel");
  if (unused_.empty()) {
    unused_.push_back(static_cast<Id>(flows_.size()));
    flows_.emplace_back();
  }
  const Id id = unused_.back();
  unused_.pop_back();
  flows_[id] = {bytes, 0, now_s, ++versions_, true, channels};
  for (std::size_t i = 0; i < channels.size(); ++i) {
    if (channels_.size() <= channels[i]) channels_.resize(channels[i] + 1);
    channels_[channels[i]].bytes_s = bytes_s[i];
    channels_[channels[i]].flows.push_back(id);
  }
  settle(id, now_s, ends);
  return id;
}

bool Flows::finish(const End& end, std::vector<End>& ends) {
  Flow& flow = flows_[end.flow];
  if (!flow.active || flow.version != end.version) return false;
  flow.active = false;
  for (const std::uint32_t channel : flow.channels) std::erase(channels_[channel].flows, end.flow);
  settle(end.flow, end.at_s, ends);
  unused_.push_back(end.flow);
  return true;
}

double Flows::fair_rate(const Flow& flow) const {
  double rate = 0;
  for (const std::uint32_t id : flow.channels) {
    const Channel& channel = channels_[id];
    const double part = channel.bytes_s / static_cast<double>(channel.flows.size());
    rate = rate == 0 ? part : std::min(rate, part);
  }
  return rate;
}

void Flows::settle(Id changed, double now_s, std::vector<End>& ends) {
  const std::vector<std::uint32_t> touched = flows_[changed].channels;
  for (const std::uint32_t channel : touched) {
    for (const Id id : channels_[channel].flows) {
      Flow& flow = flows_[id];
      const double rate = fair_rate(flow);
      if (rate == flow.rate) continue;
      flow.left = std::max(0.0, flow.left - flow.rate * (now_s - flow.since_s));
      flow.rate = rate;
      flow.since_s = now_s;
      flow.version = ++versions_;
      ends.push_back({id, flow.version, now_s + flow.left / rate});
    }
  }
}

}  // namespace holmes::partition

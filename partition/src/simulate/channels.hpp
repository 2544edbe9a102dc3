#pragma once

// The queues that transfers pass: each host's NICs on a fabric in each direction (all rails
// together), trunks and links. A channel serves bytes first come, first served, at a speed that may
// change at known times; a transfer has arrived when its last channel has served it.

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "holmes/partition/simulate.hpp"

namespace holmes::partition {

/// Factors of a speed over time, ascending; 1 before the first.
struct SpeedProfile {
  struct Part {
    double from_s = 0;
    double factor = 1;
  };
  std::vector<Part> parts;

  /// When work of `seconds` at full speed ends that begins at `start_s`.
  double finish(double start_s, double seconds) const;
};
SpeedProfile profile_of(const std::vector<SpeedChange>& changes, SpeedChange::What what,
                        std::size_t index);

using ChannelId = std::uint32_t;

class Channels {
 public:
  /// Routes are found when they are first asked for. The arguments must outlive it.
  Channels(const Cluster& cluster, const SimulateOptions& options);

  /// What a transfer between two hosts on a fabric passes.
  struct Way {
    std::vector<ChannelId> shared;  ///< Trunks and links.
    ChannelId send = 0;
    ChannelId receive = 0;
    double latency_s = 0;
  };
  /// Null when the hosts do not reach each other on it.
  const Way* way(HostId from, HostId to, FabricId fabric);
  /// The first of `paths` on which they do, else the first fabric of all.
  const Way& way_on(HostId from, HostId to, const std::vector<FabricId>& paths);

  /// The time at which the channel has served `bytes` that come to it at `at_s`.
  double serve(ChannelId channel, double at_s, double bytes);
  /// The same for all channels of a way, and the latency.
  double transfer(const Way& way, double at_s, double bytes);
  /// When the sender's own NIC is done with what it was given.
  double free_at(ChannelId channel) const { return channels_[channel].free_s; }
  /// That `bytes` take it alone.
  double seconds(ChannelId channel, double bytes) const {
    return bytes / channels_[channel].bytes_s;
  }
  double bytes_s(ChannelId channel) const { return channels_[channel].bytes_s; }
  std::size_t size() const { return channels_.size(); }
  /// Of what has passed the channel without being served by it.
  void count(ChannelId channel, double bytes) {
    channels_[channel].use.bytes += bytes;
    channels_[channel].use.busy_s += seconds(channel, bytes);
  }

  /// Bytes are counted from here on.
  void begin_step();
  std::vector<ChannelUse> used() const;

  std::vector<ChannelEvent> take_records() { return std::move(records_); }

  ChannelId nic(HostId host, FabricId fabric, bool send);

 private:
  struct Channel {
    ChannelUse use;
    double bytes_s = 0;
    double free_s = 0;
    SpeedProfile profile;
  };
  ChannelId add(ChannelUse use, double gbit_s, NicKind kind, SpeedProfile profile);
  ChannelId trunk(FabricId fabric, bool forth);
  ChannelId link(std::size_t index, bool forth);
  /// Trunks and links carry so much each way: which way from one host to the other is "forth".
  bool is_forth(HostId from, HostId to, FabricId fabric) const;
  double nic_gbit_s(HostId host, FabricId fabric) const;

  const Cluster& cluster_;
  const SimulateOptions& options_;
  std::vector<Channel> channels_;
  std::vector<ChannelEvent> records_;
  std::vector<ChannelId> nics_;  // by (host, fabric, direction); kNone: not made yet
  std::map<std::pair<FabricId, bool>, ChannelId> trunks_;
  std::map<std::pair<std::size_t, bool>, ChannelId> links_;
  std::map<std::tuple<HostId, HostId, FabricId>, std::optional<Way>> ways_;
};

}  // namespace holmes::partition

#pragma once

// Payloads on links that they share evenly, as connections of TCP do: all that are on their way
// move at once, each with an equal part of the narrowest of its channels. (Channels serves one
// after the other.) The owner advances it in time and asks what ends next.

#include <cstdint>
#include <vector>

namespace holmes::partition {

class Flows {
 public:
  using Id = std::uint32_t;
  /// A flow and when it will have ended if nothing else comes or goes.
  struct End {
    Id flow = 0;
    std::uint32_t version = 0;
    double at_s = 0;
  };

  /// Begins to send `bytes` over channels of these speeds. Ends that have changed are added to
  /// `ends`; `now_s` never goes back.
  Id begin(double now_s, double bytes, const std::vector<std::uint32_t>& channels,
           const std::vector<double>& bytes_s, std::vector<End>& ends);
  /// Whether `end` still holds; then the flow is gone, and others are faster.
  bool finish(const End& end, std::vector<End>& ends);

 private:
  struct Flow {
    double left = 0;
    double rate = 0;
    double since_s = 0;
    std::uint32_t version = 0;
    bool active = false;
    std::vector<std::uint32_t> channels;
  };
  struct Channel {
    double bytes_s = 0;
    std::vector<Id> flows;
  };

  /// Rates of all flows that share a channel with `flow`.
  void settle(Id flow, double now_s, std::vector<End>& ends);
  double fair_rate(const Flow& flow) const;

  std::vector<Flow> flows_;
  std::vector<Id> unused_;
  std::vector<Channel> channels_;
  std::uint32_t versions_ = 0;
};

}  // namespace holmes::partition

#pragma once

// Where the actors of one host reach every member of a generation: actors of the same process by
// their handles, others through the Nic that the plan chose for the group or edge. An immutable
// value, made by the HostAgent for each generation and shared by its actors. Any thread.

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <caf/actor.hpp>

#include "holmes/base/result.hpp"
#include "holmes/partition/cluster.hpp"
#include "holmes/partition/plan.hpp"
#include "messages.hpp"

namespace holmes::actors {

struct LocalMember {
  caf::actor stage;
  caf::actor replica;
};

/// One NIC of each end, for traffic between two hosts.
struct NicPair {
  NicId own;
  NicId peer;
  friend bool operator==(const NicPair&, const NicPair&) = default;
};

/// Devices of two hosts that talk besides what the plan says: a shard's owner and its keeper, or
/// both ends of a transfer of state.
using DevicePairs = std::vector<std::pair<DeviceId, DeviceId>>;

class Routes {
 public:
  Routes(Generation generation, std::shared_ptr<const partition::Plan> plan,
         std::shared_ptr<const partition::Cluster> cluster, HostId self,
         std::map<DeviceId, LocalMember> local, std::vector<caf::actor> nics,
         DevicePairs further = {});

  Generation generation() const { return generation_; }
  const partition::Plan& plan() const { return *plan_; }

  bool is_local(DeviceId device) const { return local_.contains(device); }
  /// Whether the device is of this host, a member or not.
  bool is_here(DeviceId device) const;
  /// The actors of a device of this host.
  const LocalMember& local(DeviceId device) const { return local_.at(device); }
  /// Hands `payload` to the actor that `tag` is for, here or on another host. `sender`, if any,
  /// gets TensorTaken once it has left for another host (within the process from the receiver).
  void send_tensor(const transport::BulkTag& tag, const transport::TensorShape& shape,
                   BufferView payload, const caf::actor& sender = {}) const;
  /// Reserves `buffer` for a payload from another host. Local payloads need no reservation: call
  /// it only where is_local(tag.source) is false.
  void reserve_tensor(const transport::BulkTag& tag, const transport::TensorShape& shape,
                      Buffer buffer, const caf::actor& receiver) const;
  /// Send up or down the vote tree to the member `to` of the message.
  void send(const Vote& vote) const;
  void send(const Commit& commit) const;

  /// Peers and NICs that this host's traffic needs a link for.
  std::vector<std::pair<HostId, NicPair>> links() const;

 private:
  const caf::actor& local_receiver(const transport::BulkTag& tag) const;
  NicPair pair_for(const transport::BulkTag& tag, HostId peer) const;
  void send_control(HostId to, Buffer message) const;

  Generation generation_;
  std::shared_ptr<const partition::Plan> plan_;
  std::shared_ptr<const partition::Cluster> cluster_;
  HostId self_;
  std::map<DeviceId, LocalMember> local_;
  std::vector<caf::actor> nics_;
  DevicePairs further_;
};

/// First NICs of both hosts on the first of `paths` that both have. The plan was validated: asserts
/// that there is one.
NicPair choose_nics(const partition::Cluster& cluster, const std::vector<FabricId>& paths,
                    HostId own, HostId peer);

/// NICs of both hosts on the fastest fabric that both have, if any.
std::optional<NicPair> fastest_nics(const partition::Cluster& cluster, HostId own, HostId peer);

/// The vote tree: a heap over the plan's members with this fan-out; member 0 is the root.
constexpr std::size_t kVoteFanOut = 8;
std::optional<DeviceId> vote_parent(const partition::Plan& plan, DeviceId device);
std::vector<DeviceId> vote_children(const partition::Plan& plan, DeviceId device);

}  // namespace holmes::actors

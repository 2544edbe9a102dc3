#pragma once

// The Nic actor owns one NIC of this host: its listener and its links to NICs of other hosts.
// Others send it payloads and control messages by host; it delivers what arrives to the actor that
// reserved for it, or to the HostAgent. It reports links that come and go, and counts bytes. Both
// ends of a link say something regularly, so that a link that has gone silent is lost by a deadline
// too, though nobody closed it.
//
// It runs on its context's executor, so that no message hops between threads on the byte path.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor_actor.hpp"
#include "holmes/transport/connection.hpp"
#include "messages.hpp"
#include "pause_detector.hpp"
#include "refusal_log.hpp"

namespace holmes::actors {

struct NicSpec {
  transport::Identity self;
  std::string name;          ///< For logs: "a0/ib0".
  Duration dial_deadline{};  ///< For one link to come up.
  Duration report_every{};   ///< Between two TrafficCounted, and two signs of life on a link.
  Duration silence_max{};    ///< A link on which nothing came for so long is lost.
};

class Nic final : public ExecutorActor {
 public:
  /// `context` must outlive the actor.
  Nic(caf::actor_system& system, Logger log, NicSpec spec, transport::Context& context,
      caf::actor agent);
  ~Nic() override;

  /// Opens the NIC for peers and starts to count; returns the address to dial. Once, after start(),
  /// on the context's executor.
  Result<std::string> listen(const transport::Endpoint& at);

 protected:
  caf::behavior make_behavior() override;

 private:
  struct Link {
    std::shared_ptr<transport::Connection> connection;
    std::uint64_t bytes_heard = 0;  ///< Received when something last came.
    TimePoint heard;
  };

  void on(const OpenLink& open);
  void on(const KeepLinks& keep);
  void on(SendTensor& send);
  void on(ReserveTensor& reserve);
  void on(SendControl& send);
  void on(const Supersede& supersede);
  void add_link(std::shared_ptr<transport::Connection> link);
  /// `connection` says which link, since a later one may have taken its place.
  void lost(HostId peer, const transport::Connection* connection, const Error& error);
  /// An operation of a link has failed; without its payload no step would ever end.
  void failed(HostId peer, const Error& error);
  void tick();
  void drop_silent();

  const NicSpec spec_;
  transport::Context& context_;
  caf::actor agent_;
  std::unique_ptr<transport::Listener> listener_;
  std::map<HostId, Link> links_;
  std::map<HostId, std::string> dialling_;  // the address that is being dialled
  const BufferView sign_of_life_;           // an encoded Heartbeat
  PauseDetector pauses_;
  Generation generation_;                // what is older is superseded
  std::uint64_t bytes_sent_closed_ = 0;  // of links that are gone
  std::uint64_t bytes_received_closed_ = 0;
  RefusalLog refusals_;
  Executor::TimerId timer_ = 0;
};

}  // namespace holmes::actors

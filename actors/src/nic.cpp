#include "nic.hpp"

#include <algorithm>

#include "codec.hpp"

namespace holmes::actors {

Nic::Nic(caf::actor_system& system, Logger log, NicSpec spec, transport::Context& context,
         caf::actor agent)
    : ExecutorActor(system, context.executor(), std::move(log)),
      spec_(std::move(spec)),
      context_(context),
      agent_(std::move(agent)),
      sign_of_life_(encode(Heartbeat{})),
      pauses_(spec_.report_every, spec_.silence_max, clock().now()) {}

Nic::~Nic() {
  executor().cancel(timer_);
  for (auto& [peer, link] : links_) link.connection->close();
}

caf::behavior Nic::make_behavior() {
  return {
      [this](const OpenLink& open) { on(open); },
      [this](const KeepLinks& keep) { on(keep); },
      [this](SendTensor& send) { on(send); },
      [this](ReserveTensor& reserve) { on(reserve); },
      [this](SendControl& send) { on(send); },
      [this](const Supersede& supersede) { on(supersede); },
  };
}

Result<std::string> Nic::listen(const transport::Endpoint& at) {
  HOLMES_TRY_ASSIGN(
      listener_,
      context_.listen(
          at, spec_.self, guarded([this](std::shared_ptr<transport::Connection> link) {
            add_link(std::move(link));
          }),
          guarded([this](const Error& error) { refusals_.write(log(), clock().now(), error); })));
  tick();
  return listener_->endpoint().address;
}

void Nic::on(const OpenLink& open) {
  if (links_.contains(open.peer)) {
    caf::anon_send(agent_, LinkUp{spec_.self.nic, open.peer});
    return;
  }
  if (const auto at = dialling_.find(open.peer);
      at != dialling_.end() && at->second == open.address)
    return;  // its end will be told
  dialling_[open.peer] = open.address;
  context_.connect(
      {open.address}, spec_.self, spec_.dial_deadline,
      guarded([this, peer = open.peer,
               address = open.address](Result<std::shared_ptr<transport::Connection>> link) {
        if (const auto at = dialling_.find(peer); at != dialling_.end() && at->second == address)
          dialling_.erase(at);
        if (link) return add_link(*std::move(link));
        // What is there meanwhile is not lost because an older dial was.
        if (!links_.contains(peer))
          caf::anon_send(agent_, LinkLost{spec_.self.nic, peer, link.error()});
      }));
}

void Nic::on(const KeepLinks& keep) {
  std::vector<HostId> others;
  for (const auto& [peer, link] : links_)
    if (std::find(keep.peers.begin(), keep.peers.end(), peer) == keep.peers.end())
      others.push_back(peer);
  for (const HostId peer : others)
    lost(peer, links_.at(peer).connection.get(),
         Error(ErrorCode::kClosed, "its host is no member any more"));
}

void Nic::add_link(std::shared_ptr<transport::Connection> link) {
  const HostId peer = link->peer().host;
  if (links_.contains(peer)) {
    log().warning("a second link from host " + std::to_string(peer.value()) + " was refused");
    link->close();
    return;
  }
  link->on_control(guarded([this, peer](Buffer message) {
    caf::anon_send(agent_, ControlArrived{peer, std::move(message)});
  }));
  link->on_closed(
      guarded([this, peer, which = link.get()](const Error& error) { lost(peer, which, error); }));
  link->supersede(generation_);
  links_[peer] = {std::move(link), 0, clock().now()};
  caf::anon_send(agent_, LinkUp{spec_.self.nic, peer});
}

void Nic::lost(HostId peer, const transport::Connection* connection, const Error& error) {
  const auto at = links_.find(peer);
  if (at == links_.end() || at->second.connection.get() != connection) return;
  const auto stats = connection->stats();
  bytes_sent_closed_ += stats.bytes_sent;
  bytes_received_closed_ += stats.bytes_received;
  const auto gone = std::move(at->second.connection);
  links_.erase(at);
  caf::anon_send(agent_, LinkLost{spec_.self.nic, peer, error});
  gone->close();
}

void Nic::failed(HostId peer, const Error& error) {
  if (error.code() == ErrorCode::kSuperseded || error.code() == ErrorCode::kClosed) return;
  if (const auto at = links_.find(peer); at != links_.end())
    lost(peer, at->second.connection.get(), error);
}

// A payload whose link is gone is dropped here: the link's loss has been reported, and the
// generation that the payload belongs to ends by it.

void Nic::on(SendTensor& send) {
  const auto link = links_.find(send.to);
  if (link == links_.end()) return;
  link->second.connection->send_bulk(
      send.tag, send.shape, std::move(send.payload),
      guarded([this, peer = send.to, tag = send.tag, sender = send.sender](const Status& sent) {
        if (!sent) return failed(peer, sent.error());
        if (sender) caf::anon_send(sender, TensorTaken{tag});
      }));
}

void Nic::on(ReserveTensor& reserve) {
  const auto link = links_.find(reserve.from);
  if (link == links_.end()) return;
  link->second.connection->receive_bulk(
      reserve.tag, reserve.shape, std::move(reserve.buffer),
      guarded([this, peer = reserve.from, receiver = reserve.receiver,
               tag = reserve.tag](Result<Buffer> arrived) {
        if (!arrived) return failed(peer, arrived.error());
        caf::anon_send(receiver, TensorArrived{tag, BufferView(*std::move(arrived))});
      }));
}

void Nic::on(SendControl& send) {
  const auto link = links_.find(send.to);
  if (link == links_.end()) return;
  link->second.connection->send_control(std::move(send.message),
                                        guarded([this, peer = send.to](const Status& sent) {
                                          if (!sent) failed(peer, sent.error());
                                        }));
}

void Nic::on(const Supersede& supersede) {
  generation_ = std::max(generation_, supersede.generation);
  for (auto& [peer, link] : links_) link.connection->supersede(generation_);
  caf::anon_send(supersede.reply_to, Quiet{supersede.generation});
}

void Nic::tick() {
  drop_silent();
  TrafficCounted counted{spec_.self.nic, bytes_sent_closed_, bytes_received_closed_};
  for (const auto& [peer, link] : links_) {
    link.connection->send_control(sign_of_life_, [](const Status&) {});
    const auto stats = link.connection->stats();
    counted.bytes_sent += stats.bytes_sent;
    counted.bytes_received += stats.bytes_received;
  }
  caf::anon_send(agent_, counted);
  timer_ = executor().post_after(spec_.report_every, guarded([this] { tick(); }));
}

void Nic::drop_silent() {
  const TimePoint now = clock().now();
  const bool was_away = pauses_.tick(now);
  std::vector<HostId> silent;
  for (auto& [peer, link] : links_) {
    const auto received = link.connection->stats().bytes_received;
    if (received != link.bytes_heard || was_away) {
      link.bytes_heard = received;
      link.heard = now;
    } else if (now - link.heard > spec_.silence_max) {
      silent.push_back(peer);
    }
  }
  for (const HostId peer : silent)
    lost(peer, links_.at(peer).connection.get(),
         Error(ErrorCode::kTimeout,
               "nothing came over it for " +
                   std::to_string(spec_.silence_max / std::chrono::milliseconds(1)) +
                   " ms; check its cable, switch and firewall"));
}

}  // namespace holmes::actors

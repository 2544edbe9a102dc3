#include "nic.hpp"

namespace holmes::actors {

Nic::Nic(caf::actor_system& system, Logger log, NicSpec spec, transport::Context& context,
         caf::actor agent)
    : ExecutorActor(system, context.executor(), std::move(log)),
      spec_(std::move(spec)),
      context_(context),
      agent_(std::move(agent)) {}

Nic::~Nic() {
  executor().cancel(timer_);
  for (auto& [peer, link] : links_) link->close();
}

caf::behavior Nic::make_behavior() {
  return {
      [this](const OpenLink& open) { on(open); },
      [this](SendTensor& send) { on(send); },
      [this](ReserveTensor& reserve) { on(reserve); },
      [this](SendControl& send) { on(send); },
      [this](const Supersede& supersede) { on(supersede); },
  };
}

Result<std::string> Nic::listen(const transport::Endpoint& at) {
  HOLMES_TRY_ASSIGN(
      listener_,
      context_.listen(at, spec_.self, guarded([this](std::shared_ptr<transport::Connection> link) {
                        add_link(std::move(link));
                      }),
                      guarded([this](const Error& error) {
                        log().warning("refused a peer: " + error.message());
                      })));
  report_traffic();
  return listener_->endpoint().address;
}

void Nic::on(const OpenLink& open) {
  if (links_.contains(open.peer)) {
    caf::anon_send(agent_, LinkUp{spec_.self.nic, open.peer});
    return;
  }
  context_.connect(
      {open.address}, spec_.self, spec_.dial_deadline,
      guarded([this, peer = open.peer](Result<std::shared_ptr<transport::Connection>> link) {
        if (link)
          add_link(*std::move(link));
        else
          caf::anon_send(agent_, LinkLost{spec_.self.nic, peer, link.error()});
      }));
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
  link->on_closed(guarded([this, peer](const Error& error) { lost(peer, error); }));
  link->supersede(generation_);
  links_[peer] = std::move(link);
  caf::anon_send(agent_, LinkUp{spec_.self.nic, peer});
}

void Nic::lost(HostId peer, const Error& error) {
  const auto at = links_.find(peer);
  if (at == links_.end()) return;
  const auto stats = at->second->stats();
  bytes_sent_closed_ += stats.bytes_sent;
  bytes_received_closed_ += stats.bytes_received;
  links_.erase(at);
  caf::anon_send(agent_, LinkLost{spec_.self.nic, peer, error});
}

// A payload whose link is gone is dropped here: the link's loss has been reported, and the
// generation that the payload belongs to ends by it.

void Nic::on(SendTensor& send) {
  const auto link = links_.find(send.to);
  if (link == links_.end()) return;
  link->second->send_bulk(send.tag, send.shape, std::move(send.payload), [](const Status&) {});
}

void Nic::on(ReserveTensor& reserve) {
  const auto link = links_.find(reserve.from);
  if (link == links_.end()) return;
  link->second->receive_bulk(
      reserve.tag, reserve.shape, std::move(reserve.buffer),
      [receiver = reserve.receiver, tag = reserve.tag](Result<Buffer> arrived) {
        if (arrived) caf::anon_send(receiver, TensorArrived{tag, BufferView(*std::move(arrived))});
      });
}

void Nic::on(SendControl& send) {
  const auto link = links_.find(send.to);
  if (link == links_.end()) return;
  link->second->send_control(std::move(send.message), [](const Status&) {});
}

void Nic::on(const Supersede& supersede) {
  generation_ = std::max(generation_, supersede.generation);
  for (auto& [peer, link] : links_) link->supersede(generation_);
  caf::anon_send(supersede.reply_to, Quiet{supersede.generation});
}

void Nic::report_traffic() {
  TrafficCounted counted{spec_.self.nic, bytes_sent_closed_, bytes_received_closed_};
  for (const auto& [peer, link] : links_) {
    const auto stats = link->stats();
    counted.bytes_sent += stats.bytes_sent;
    counted.bytes_received += stats.bytes_received;
  }
  caf::anon_send(agent_, counted);
  timer_ = executor().post_after(spec_.report_every, guarded([this] { report_traffic(); }));
}

}  // namespace holmes::actors

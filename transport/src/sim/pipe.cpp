#include "sim/pipe.hpp"

#include <algorithm>

namespace holmes::transport::sim {

namespace {

// Sizes of prefix and header on a real wire.
constexpr std::size_t kControlHeadBytes = 44;
constexpr std::size_t kCreditBytes = 116;
constexpr std::size_t kChunkHeadBytes = 172;

Buffer copy_of(std::span<const std::byte> bytes) {
  auto copy = Buffer::allocate(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.mutable_bytes().begin());
  return copy;
}

/// Hands a chunk to a link the way a reader of a socket would.
void feed(Link& link, const wire::Chunk& chunk, std::span<const std::byte> bytes) {
  link.count_received(kChunkHeadBytes + bytes.size());
  link.chunk_begins(0, chunk, bytes.size());
  while (link.open() && !bytes.empty()) {
    const auto space = link.payload_space(0);
    const auto count = std::min(space.size(), bytes.size());
    std::copy_n(bytes.begin(), count, space.begin());
    bytes = bytes.subspan(count);
    link.payload_filled(0, count);
  }
}

}  // namespace

SimPipe::SimPipe(std::shared_ptr<NetworkState> network, std::shared_ptr<Executor> executor,
                 std::size_t from, std::size_t to)
    : network_(std::move(network)), executor_(std::move(executor)), from_(from), to_(to) {}

std::pair<std::shared_ptr<SimPipe>, std::shared_ptr<SimPipe>> SimPipe::make_pair(
    const std::shared_ptr<NetworkState>& network, const std::shared_ptr<Executor>& executor_from,
    const std::shared_ptr<Executor>& executor_to, std::size_t from, std::size_t to) {
  auto first = std::make_shared<SimPipe>(network, executor_from, from, to);
  auto second = std::make_shared<SimPipe>(network, executor_to, to, from);
  first->peer_ = second;
  first->peer_executor_ = executor_to;
  second->peer_ = first;
  second->peer_executor_ = executor_from;
  std::erase_if(network->pipes, [](const auto& pipe) { return pipe->finished(); });
  network->pipes.push_back(first);
  network->pipes.push_back(second);
  return {first, second};
}

bool SimPipe::finished() const {
  return closed_ && control_.in_flight == 0 && bulk_.in_flight == 0;
}

void SimPipe::send_control(BufferView message) {
  if (closed_) return;
  const auto bytes = kControlHeadBytes + message.size();
  if (const auto link = link_.lock()) link->count_sent(bytes);
  deliver_control(bytes, [weak = peer_, bytes, copy = copy_of(message.bytes())] {
    const auto peer = weak.lock();
    const auto target = peer ? peer->link_.lock() : nullptr;
    if (!target) return;
    target->count_received(bytes);
    target->control_arrived(copy);
  });
  executor_->post([weak = link_] {
    if (const auto link = weak.lock()) link->control_sent();
  });
}

void SimPipe::send_credit(const wire::Credit& credit) {
  if (closed_) return;
  if (const auto link = link_.lock()) link->count_sent(kCreditBytes);
  deliver_control(kCreditBytes, [weak = peer_, credit] {
    const auto peer = weak.lock();
    const auto target = peer ? peer->link_.lock() : nullptr;
    if (!target) return;
    target->count_received(kCreditBytes);
    target->credit_arrived(credit);
  });
}

void SimPipe::send_chunk(std::size_t, const wire::Chunk& chunk, BufferView payload) {
  if (closed_) return;
  if (const auto link = link_.lock()) link->count_sent(kChunkHeadBytes + payload.size());
  send_bulk(chunk, payload);
}

void SimPipe::deliver_control(std::size_t bytes, Task arrive) {
  auto& nic = network_->nics[from_];
  const auto transfer = transfer_time(bytes, std::min(nic.gbit_s, network_->nics[to_].gbit_s));
  nic.egress_free = std::max(nic.egress_free, now()) + transfer;  // bulk makes room for it
  network_->note(from_, to_, bytes);
  arrive_in(control_, now() + transfer + network_->latency(from_, to_), std::move(arrive));
}

void SimPipe::send_bulk(const wire::Chunk& chunk, const BufferView& payload) {
  if (cut() || !blocked_.empty()) {
    blocked_.push_back([weak = weak_from_this(), chunk, payload] {
      if (const auto self = weak.lock()) self->send_bulk(chunk, payload);
    });
    return;
  }
  auto& nic = network_->nics[from_];
  auto& target = network_->nics[to_];
  const auto bytes = kChunkHeadBytes + payload.size();
  const auto begin = std::max(nic.egress_free, now());
  const auto left = begin + transfer_time(bytes, nic.gbit_s);
  const auto taken =
      std::max(left, std::max(target.ingress_free, begin) + transfer_time(bytes, target.gbit_s));
  nic.egress_free = left;
  target.ingress_free = taken;
  network_->note(from_, to_, bytes);
  executor_->post_after(left - now(), [weak = link_] {
    if (const auto link = weak.lock()) link->chunk_sent(0);
  });
  // The sender may reuse its memory once the chunk has left, so what is under way is a copy.
  arrive_in(bulk_, taken + network_->latency(from_, to_),
            [weak = peer_, chunk, bytes = copy_of(payload.bytes())] {
              const auto peer = weak.lock();
              if (const auto link = peer ? peer->link_.lock() : nullptr)
                feed(*link, chunk, bytes.bytes());
            });
}

void SimPipe::arrive_in(Lane& lane, TimePoint at, Task arrive) {
  lane.last_arrival = std::max(at, lane.last_arrival);
  ++lane.in_flight;
  peer_executor_->post_after(lane.last_arrival - now(),
                             [weak = weak_from_this(), &lane, arrive = std::move(arrive)] {
                               const auto self = weak.lock();
                               if (self == nullptr) return;
                               if (self->cut() || !lane.held.empty()) {
                                 lane.held.push_back(arrive);
                                 return;
                               }
                               --lane.in_flight;
                               arrive();
                             });
}

void SimPipe::release() {
  if (cut()) return;
  for (const auto& task : std::exchange(blocked_, {})) task();
  for (auto* lane : {&control_, &bulk_}) {
    if (lane->held.empty()) continue;
    peer_executor_->post_after(network_->latency(from_, to_), [weak = weak_from_this(), lane] {
      if (const auto self = weak.lock()) self->flush(*lane);
    });
  }
}

void SimPipe::flush(Lane& lane) {
  if (cut()) return;
  for (const auto& arrive : std::exchange(lane.held, {})) {
    --lane.in_flight;
    arrive();
  }
}

void SimPipe::close(const std::optional<wire::Refusal>& farewell) {
  if (closed_) return;
  if (farewell)
    deliver_control(kControlHeadBytes, [weak = peer_, farewell = *farewell] {
      const auto peer = weak.lock();
      if (const auto link = peer ? peer->link_.lock() : nullptr) link->farewell_arrived(farewell);
    });
  send_eof();
  closed_ = true;
  blocked_.clear();
}

void SimPipe::send_eof() {
  const auto at = std::max(now() + network_->latency(from_, to_), control_.last_arrival);
  arrive_in(bulk_, at, [weak = peer_] {
    const auto peer = weak.lock();
    if (const auto link = peer ? peer->link_.lock() : nullptr)
      link->lost(Error(ErrorCode::kClosed, link->where() + ": the peer went away"));
  });
}

void SimPipe::reset(const Error& error) {
  if (closed_) return;
  closed_ = true;
  blocked_.clear();
  executor_->post([weak = link_, error] {
    if (const auto link = weak.lock()) link->lost(error.in(link->where()));
  });
}

void SimPipe::kill(bool silent) {
  if (closed_) return;
  if (!silent) send_eof();
  closed_ = true;
  link_.reset();
  blocked_.clear();
}

}  // namespace holmes::transport::sim

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "collectives/operation.hpp"

namespace holmes::transport {

namespace collectives {

namespace {

/// What a failing rank tells the others: this operation number, and text in a buffer of fixed size.
constexpr std::uint64_t kAbortNumber = ~std::uint64_t{0};
constexpr std::size_t kAbortBytes = 1024;
/// Operations that may wait for their turn.
constexpr std::size_t kWaitingMax = 1024;

BulkTag abort_tag(const GroupOptions& options, std::size_t from, std::size_t to) {
  BulkTag tag;
  tag.generation = options.generation;
  tag.step = Step(kAbortNumber);
  tag.kind = BulkKind::kCollective;
  tag.stage = StageIndex(options.id);
  tag.source = DeviceId(static_cast<std::uint32_t>(from));
  tag.destination = DeviceId(static_cast<std::uint32_t>(to));
  return tag;
}

class GroupImpl final : public Group,
                        public GroupCore,
                        public std::enable_shared_from_this<GroupImpl> {
 public:
  GroupImpl(Executor& executor, BufferPool& pool, std::size_t rank,
            std::vector<std::shared_ptr<Connection>> connections, const GroupOptions& options)
      : executor_(executor),
        pool_(pool),
        rank_(rank),
        connections_(std::move(connections)),
        options_(options) {}

  ~GroupImpl() override {
    if (timer_) executor_.cancel(*timer_);
    if (!error_) end(Error(ErrorCode::kClosed, "the group was dropped by its owner"));
  }

  /// Each rank can be told by each other that the group has failed.
  void open() {
    for (std::size_t peer = 0; peer < connections_.size(); ++peer)
      if (peer != rank_) await_abort(peer);
    watch();
  }

  void reduce_scatter(Operands operands, Algorithm algorithm, CollectiveHandler done) override {
    enqueue(Collective::kReduceScatter, std::move(operands), algorithm, 0, std::move(done));
  }
  void all_gather(Operands operands, Algorithm algorithm, CollectiveHandler done) override {
    enqueue(Collective::kAllGather, std::move(operands), algorithm, 0, std::move(done));
  }
  void all_reduce(Operands operands, Algorithm algorithm, CollectiveHandler done) override {
    enqueue(Collective::kAllReduce, std::move(operands), algorithm, 0, std::move(done));
  }
  void broadcast(std::size_t root, Buffer data, Algorithm algorithm,
                 CollectiveHandler done) override {
    HOLMES_ASSERT(root < ranks(), "the root of a broadcast is a rank of its group");
    enqueue(Collective::kBroadcast, {{}, std::move(data)}, algorithm, root, std::move(done));
  }
  void barrier(SendHandler done) override {
    enqueue(Collective::kBarrier, {}, Algorithm::kAuto, 0,
            [done = std::move(done)](const Result<Buffer>& result) {
              if (result) return done({});
              done(result.error());
            });
  }
  void abort(const Error& error) override { failed(error); }
  std::size_t rank() const override { return rank_; }
  std::size_t ranks() const override { return connections_.size(); }

  Connection& connection(std::size_t rank) override { return *connections_.at(rank); }
  Executor& executor() override { return executor_; }
  BufferPool& pool() override { return pool_; }
  std::size_t own_rank() const override { return rank_; }
  std::size_t rank_count() const override { return connections_.size(); }
  const GroupOptions& options() const override { return options_; }

  void finished(std::uint64_t number) override {
    running_.erase(number);
    start_waiting();
  }

  void failed(const Error& error) override {
    if (error_) return;
    const auto self = weak_from_this().lock();
    tell_others(error);
    end(error);
  }

 private:
  void enqueue(Collective collective, Operands operands, Algorithm algorithm, std::size_t root,
               CollectiveHandler done) {
    if (auto refusal = refusal_of(operands)) {
      executor_.post([done = std::move(done), error = *refusal] { done(error); });
      return;
    }
    Operation::Task task{collective, next_number_++, std::move(operands), std::move(done)};
    if (ranks() == 1) return complete_alone(std::move(task));
    waiting_.push_back(make(std::move(task), algorithm, root));
    start_waiting();
  }

  std::optional<Error> refusal_of(const Operands& operands) const {
    if (error_) return error_;
    if (waiting_.size() >= kWaitingMax)
      return Error(ErrorCode::kOutOfResources, "too many operations of a group wait");
    const auto& [input, output] = operands;
    if (!output) return {};
    if (!output.unique() || output.size() % sizeof(float) != 0 ||
        (input.size() != 0 && input.size() != output.size()))
      return Error(ErrorCode::kInvalidArgument,
                   "a collective's output is a buffer of its own with whole fp32 numbers, and its "
                   "input has the same size");
    return {};
  }

  void complete_alone(Operation::Task task) {
    executor_.post([task = std::make_shared<Operation::Task>(std::move(task))] {
      auto& [input, output] = task->operands;
      if (input.size() > 0)
        std::copy_n(input.bytes().begin(), input.size(), output.mutable_bytes().begin());
      task->done(std::move(output));
    });
  }

  OperationPtr make(Operation::Task task, Algorithm algorithm, std::size_t root) {
    const auto collective = task.collective;
    if (collective == Collective::kBarrier) return make_barrier(*this, std::move(task));
    if (algorithm == Algorithm::kAuto)
      algorithm = choose(collective, task.operands.output.size(), ranks(), options_.cost);
    if (collective == Collective::kBroadcast)
      return make_broadcast(*this, std::move(task), root, algorithm);
    if (algorithm == Algorithm::kRing) return make_ring(*this, std::move(task));
    if (algorithm == Algorithm::kDoubling && collective == Collective::kAllReduce)
      return make_doubling(*this, std::move(task));
    return make_direct(*this, std::move(task));
  }

  void start_waiting() {
    while (!waiting_.empty() && running_.size() < kGroupOperationsMax) {
      const auto operation = waiting_.front();
      waiting_.pop_front();
      running_.emplace(operation->number(), operation);
      executor_.post([operation, weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self != nullptr && !self->error_) operation->start();
      });
    }
  }

  void await_abort(std::size_t peer) {
    auto note = pool_.acquire(kAbortBytes);
    if (!note) return failed(note.error());
    connections_[peer]->receive_bulk(abort_tag(options_, peer, rank_), {DType::kU8, {}},
                                     std::move(*note),
                                     [weak = weak_from_this(), peer](const Result<Buffer>& got) {
                                       const auto self = weak.lock();
                                       if (self != nullptr && !self->error_) self->told(peer, got);
                                     });
  }

  /// Rank `peer` says why the group has failed, or is gone.
  void told(std::size_t peer, const Result<Buffer>& note) {
    if (!note) return failed(note.error().in("rank " + std::to_string(peer)));
    const auto* text = reinterpret_cast<const char*>(note->data());
    const std::string why(text, std::find(text, text + note->size(), '\0'));
    const auto& host = connections_[peer]->peer().host;
    failed(Error(ErrorCode::kClosed, "rank " + std::to_string(peer) + " (host " +
                                         std::to_string(host.value()) + ") gave up: " + why));
  }

  void tell_others(const Error& error) {
    for (std::size_t peer = 0; peer < connections_.size(); ++peer) {
      if (peer == rank_) continue;
      auto note = pool_.acquire(kAbortBytes);
      if (!note) continue;
      const auto bytes = note->mutable_bytes();
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
      const auto text = std::as_bytes(std::span(error.message()));
      std::copy_n(text.begin(), std::min(text.size(), kAbortBytes - 1), bytes.begin());
      connections_[peer]->send_bulk(abort_tag(options_, rank_, peer), {DType::kU8, {}},
                                    std::move(*note), [](const Status&) {});
    }
  }

  void end(const Error& error) {
    error_ = error;
    for (const auto& [number, operation] : std::exchange(running_, {})) operation->fail(error);
    for (const auto& operation : std::exchange(waiting_, {})) operation->fail(error);
  }

  /// Looks four times in a deadline whether operations get on.
  void watch() {
    timer_ = executor_.post_after(options_.deadline / 4, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr || self->error_) return;
      self->watch();
      if (self->running_.empty()) return;
      const auto& oldest = self->running_.begin()->second;
      if (const auto status = oldest->check_progress(self->options_.deadline); !status)
        self->failed(status.error());
    });
  }

  Executor& executor_;
  BufferPool& pool_;
  const std::size_t rank_;
  const std::vector<std::shared_ptr<Connection>> connections_;
  const GroupOptions options_;
  std::optional<Error> error_;
  std::uint64_t next_number_ = 0;
  std::map<std::uint64_t, OperationPtr> running_;
  std::deque<OperationPtr> waiting_;
  std::optional<Executor::TimerId> timer_;
};

}  // namespace

}  // namespace collectives

std::shared_ptr<Group> make_group(Executor& executor, BufferPool& pool, std::size_t rank,
                                  std::vector<std::shared_ptr<Connection>> connections,
                                  const GroupOptions& options) {
  HOLMES_ASSERT(rank < connections.size() && connections[rank] == nullptr,
                "a group has a connection to each rank but the own one");
  auto group = std::make_shared<collectives::GroupImpl>(executor, pool, rank,
                                                        std::move(connections), options);
  group->open();
  return group;
}

}  // namespace holmes::transport

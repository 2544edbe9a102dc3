#pragma once

// One collective under way at one rank: moves pieces between its operands and the other ranks, and
// completes once all that it began has ended. Algorithms derive from it and say what goes where.

#include <string>

#include "collectives/sum.hpp"
#include "holmes/transport/collectives.hpp"

namespace holmes::transport::collectives {

/// What operations use of their group.
class GroupCore {
 public:
  virtual ~GroupCore() = default;
  virtual Connection& connection(std::size_t rank) = 0;
  virtual Executor& executor() = 0;
  virtual BufferPool& pool() = 0;
  virtual std::size_t own_rank() const = 0;
  virtual std::size_t rank_count() const = 0;
  virtual const GroupOptions& options() const = 0;
  /// The operation has ended well, and is forgotten after this.
  virtual void finished(std::uint64_t number) = 0;
  /// Something failed: ends everything.
  virtual void failed(const Error& error) = 0;
};

/// Names one transfer of an operation between two ranks.
struct Slot {
  std::uint32_t round = 0;
  std::uint32_t piece = 0;
};

class Operation : public std::enable_shared_from_this<Operation> {
 public:
  /// What an operation is made of.
  struct Task {
    Collective collective = Collective::kAllReduce;
    std::uint64_t number = 0;
    Operands operands;
    CollectiveHandler done;
  };

  Operation(GroupCore& group, Task task);
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// Begins; may complete before it returns, so call it from a task of its own.
  void start();
  /// Completes with `error`; what links still do for it goes unnoticed.
  void fail(const Error& error);

  /// A byte arrived within the last `deadline`; else says what is waited for.
  Status check_progress(Duration deadline) const;
  std::uint64_t number() const { return task_.number; }

 protected:
  virtual void begin() = 0;
  /// A payload is where it belongs.
  virtual void received(std::size_t from, Slot slot) = 0;

  std::size_t rank() const { return group_.own_rank(); }
  std::size_t ranks() const { return group_.rank_count(); }
  std::size_t count() const { return count_; }
  BufferPool& pool() { return group_.pool(); }
  Collective collective() const { return task_.collective; }

  /// The operands: elements of the input, or of the output when in place.
  const float* source(std::size_t element) const { return source_ + element; }
  float* output(std::size_t element) const { return output_ + element; }
  /// Elements of the input as they are now, to be sent.
  BufferView source_view(const Segment& segment) const;
  BufferView output_view(const Segment& segment) const;
  void copy_input(const Segment& segment);

  void send(std::size_t to, Slot slot, BufferView payload);
  /// output[segment] = what comes.
  void receive_place(std::size_t from, Slot slot, const Segment& segment);
  /// output[segment] = source[segment] + what comes, summed piece by piece.
  void receive_sum(std::size_t from, Slot slot, const Segment& segment, bool onto_output);
  /// Into `memory`, which is the caller's until received().
  void receive_buffer(std::size_t from, Slot slot, std::span<std::byte> memory, Buffer owner);
  /// Everything was begun: completes as soon as nothing is pending.
  void all_begun();
  void add(float* out, const float* a, const float* b, std::size_t count) const {
    sum_(out, a, b, count);
  }
  void fail_group(const Error& error) { group_.failed(error); }

 private:
  class SumSink;

  BulkTag tag(std::size_t from, std::size_t to, Slot slot) const;
  void receive(std::size_t from, Slot slot, Landing landing);
  void progress();
  void finish_if_done();
  std::string name() const;

  GroupCore& group_;
  Task task_;
  const SumFunction sum_;
  std::size_t count_ = 0;
  const float* source_ = nullptr;
  float* output_ = nullptr;
  std::size_t pending_ = 0;
  bool all_begun_ = false;
  bool ended_ = false;
  TimePoint last_progress_;
  std::vector<std::uint32_t> awaited_;  // receives pending, by rank
};

using OperationPtr = std::shared_ptr<Operation>;

OperationPtr make_ring(GroupCore& group, Operation::Task task);
OperationPtr make_direct(GroupCore& group, Operation::Task task);
OperationPtr make_doubling(GroupCore& group, Operation::Task task);
OperationPtr make_broadcast(GroupCore& group, Operation::Task task, std::size_t root,
                            Algorithm algorithm);
OperationPtr make_barrier(GroupCore& group, Operation::Task task);

/// How a segment of at most `count` elements is cut for pipelining.
class Pieces {
 public:
  explicit Pieces(std::size_t count);
  std::uint32_t count() const { return count_; }
  /// Piece `index` of `segment`; empty beyond its end.
  Segment of(const Segment& segment, std::uint32_t index) const;

 private:
  std::size_t elements_ = 0;
  std::uint32_t count_ = 0;
};

/// Receives that an operation has outstanding at a time.
constexpr std::size_t kReceivesAhead = 8;

}  // namespace holmes::transport::collectives

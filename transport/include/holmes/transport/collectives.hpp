#pragma once

// Collectives among a group of ranks over any backend: sums of fp32 and copies, in pieces that are
// summed while they arrive. A Group knows connections and nothing of what is below them.
//
// Threads: a group belongs to the executor of its connections; all calls come from its tasks and
// handlers run there, never inside the call. All ranks start the same operations in the same order.
// Operations start at once, up to kGroupOperationsMax at a time, and complete when this rank's part
// is done: the result is there, and nothing of its buffers is still being sent.
//
// Errors are sticky, as those of connections: when one operation fails, a peer goes, or abort() is
// called, all pending operations of the group complete with that error, the other ranks are told
// why, and a new group is needed. Memory that links still hold comes back when the owner of the
// connections supersedes the generation or closes them.

#include <functional>
#include <memory>
#include <vector>

#include "holmes/transport/connection.hpp"

namespace holmes::transport {

enum class Algorithm : std::uint8_t {
  kAuto,      ///< What the cost model finds best.
  kRing,      ///< Least traffic; 2(p-1) steps. The order of sums depends on the ranks.
  kDirect,    ///< Each segment at its owner, in a fixed tree over the ranks; two steps.
  kDoubling,  ///< Recursive doubling (trees for broadcast): log2(p) steps of everything.
};
enum class Collective : std::uint8_t {
  kReduceScatter,
  kAllGather,
  kAllReduce,
  kBroadcast,
  kBarrier
};
std::string_view to_string(Algorithm algorithm);
std::string_view to_string(Collective collective);

/// What the cost model knows of the links: the same at all ranks, or they choose differently.
struct LinkCost {
  double gbit_s = 10;                                ///< Each direction of a NIC.
  Duration latency = std::chrono::microseconds(25);  ///< From one rank to the next, all told.
};

constexpr std::size_t kGroupOperationsMax = 16;
/// The group fails when no byte arrives for an operation within this time.
constexpr Duration kGroupDeadline = std::chrono::seconds(30);

struct GroupOptions {
  std::uint32_t id = 0;  ///< Tells groups apart that share connections and a generation.
  Generation generation;
  Duration deadline = kGroupDeadline;
  LinkCost cost;
};

/// Elements [begin, end) of a buffer.
struct Segment {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
  friend bool operator==(const Segment&, const Segment&) = default;
};
/// The part of `count` elements that belongs to `rank` of `ranks`: whole cache lines, as equal as
/// can be. May be empty.
Segment segment_of(std::size_t count, std::size_t ranks, std::size_t rank);

/// Time that the model expects; docs/algorithms.md has the formulas.
Duration predict(Collective collective, Algorithm algorithm, std::size_t bytes, std::size_t ranks,
                 const LinkCost& cost);
/// The algorithm that kAuto stands for.
Algorithm choose(Collective collective, std::size_t bytes, std::size_t ranks, const LinkCost& cost);

/// fp32 elements. `output` (unique) has room for all of them; without an input it holds the
/// operands too (in place). Both have the same size at all ranks.
struct Operands {
  BufferView input;
  Buffer output;
};

/// `output` again, unique, or why not.
using CollectiveHandler = std::function<void(Result<Buffer>)>;

class Group {
 public:
  virtual ~Group() = default;

  /// Own segment of the output: sum of all ranks' inputs there. The rest is left undefined.
  virtual void reduce_scatter(Operands operands, Algorithm algorithm, CollectiveHandler done) = 0;
  /// Output: every rank's own segment of its input.
  virtual void all_gather(Operands operands, Algorithm algorithm, CollectiveHandler done) = 0;
  /// Output: sum of all ranks' inputs.
  virtual void all_reduce(Operands operands, Algorithm algorithm, CollectiveHandler done) = 0;
  /// Output, at all ranks: `data` of rank `root`.
  virtual void broadcast(std::size_t root, Buffer data, Algorithm algorithm,
                         CollectiveHandler done) = 0;
  /// Completes after all ranks have called it.
  virtual void barrier(SendHandler done) = 0;

  /// Ends the group: everything pending completes with `error` in the next tasks.
  virtual void abort(const Error& error) = 0;

  virtual std::size_t rank() const = 0;
  virtual std::size_t ranks() const = 0;
};

/// `connections[i]` leads to rank i; that at `rank` is null. The connections and the pool, which
/// gives memory for operands on their way, must outlive the group.
std::shared_ptr<Group> make_group(Executor& executor, BufferPool& pool, std::size_t rank,
                                  std::vector<std::shared_ptr<Connection>> connections,
                                  const GroupOptions& options);

}  // namespace holmes::transport

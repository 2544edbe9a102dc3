// Goal: in a steady state a collective takes no memory for tensors from the system, neither from
// its pool nor past it. Method: the same collectives again and again on a mesh over tcp, until as
// many buffers exist as were ever in use at once. How many that is, and when it is reached, is up
// to how the ranks' threads meet; but it is bounded, so that there must come rounds after which
// there was no allocation of 4 KiB or more. Something that is allocated anew in every round, or in
// every few, shows as rounds that never come to rest. (The simulated network copies what is on its
// way, and so allocates.)
#include "collectives_world.hpp"
#include "model/count_allocations.hpp"

namespace holmes::transport {
namespace {

constexpr std::size_t kRanks = 3;
constexpr int kRounds = 16;
constexpr int kBatches = 40;      // of kRounds, within which the memory must come to rest
constexpr int kQuietBatches = 3;  // so many in a row without an allocation are rest

/// One operand for each rank, which every round gives to the groups and gets back.
class Rounds {
 public:
  Rounds(Mesh& mesh, std::uint32_t id, std::size_t count) : mesh_(mesh) {
    mesh_.in_task([&] {
      for (std::size_t rank = 0; rank < kRanks; ++rank) {
        groups_.push_back(make_group(mesh_.context(rank).executor(), mesh_.pool, rank,
                                     mesh_.links[rank], {id, Generation(1), kGroupDeadline, {}}));
        operands_.push_back(mesh_.pool.acquire(count * sizeof(float)).value());
        for (auto& value : operands_.back().mutable_as<float>()) value = 0;
      }
    });
  }

  void run(Algorithm algorithm, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      std::size_t done = 0;
      mesh_.in_task([&] {
        for (std::size_t rank = 0; rank < kRanks; ++rank)
          groups_[rank]->all_reduce({{}, std::move(operands_[rank])}, algorithm,
                                    [this, rank, &done](Result<Buffer> result) {
                                      ASSERT_TRUE(result) << result.error().message();
                                      operands_[rank] = std::move(*result);
                                      ++done;
                                    });
      });
      ASSERT_TRUE(mesh_.run_until([&] { return done == kRanks; }));
    }
  }

 private:
  Mesh& mesh_;
  std::vector<std::shared_ptr<Group>> groups_;
  std::vector<Buffer> operands_;
};

/// Batches in a row, the last of all that ran, that took no memory for tensors.
int quiet_batches(Mesh& mesh, Rounds& rounds, Algorithm algorithm) {
  int quiet = 0;
  for (int batch = 0; batch < kBatches && quiet < kQuietBatches; ++batch) {
    const auto from_pool = mesh.pool.stats().allocation_count;
    const auto large = large_allocation_count();
    rounds.run(algorithm, kRounds);
    const bool took =
        mesh.pool.stats().allocation_count != from_pool || large_allocation_count() != large;
    quiet = took ? 0 : quiet + 1;
  }
  return quiet;
}

void expect_steady(Mesh& mesh) {
  std::uint32_t id = 0;
  for (const std::size_t count : {std::size_t{1000}, std::size_t{300'000}})
    for (const auto algorithm : {Algorithm::kRing, Algorithm::kDirect, Algorithm::kDoubling}) {
      Rounds rounds(mesh, ++id, count);
      EXPECT_EQ(quiet_batches(mesh, rounds, algorithm), kQuietBatches)
          << to_string(algorithm) << " of " << count;
    }
  mesh.supersede_all();
  mesh.close_all();
}

TEST(CollectivesAllocation, NoneOfATensorsSizeOverTcp) {
  TcpMesh mesh(kRanks);
  expect_steady(mesh);
}

/// The test would see an allocation if there were one.
TEST(CollectivesAllocation, TheCounterCounts) {
  const auto before = large_allocation_count();
  BufferPool pool(kMiB);
  const auto buffer = pool.acquire(64 * kKiB).value();
  EXPECT_EQ(large_allocation_count(), before + 1);
}

}  // namespace
}  // namespace holmes::transport

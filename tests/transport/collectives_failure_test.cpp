// Goal: whatever becomes of one rank in the middle of a collective, every other rank hears of it
// within the deadline, with an error that says who, and all memory comes back.
// Method: rings and direct sums on sim, with a fault at every one of many moments, and on tcp with
// a real close; then what owners do at a change of generation, and a look at the pool.
#include <array>

#include "collectives_world.hpp"

namespace holmes::transport {

/// For GoogleTest, whose own way is bytes.
std::ostream& operator<<(std::ostream& out, Algorithm algorithm);
std::ostream& operator<<(std::ostream& out, Algorithm algorithm) {
  return out << to_string(algorithm);
}

namespace {

constexpr std::size_t kRanks = 4;
constexpr std::size_t kVictim = 2;
constexpr std::size_t kBytes = 400'000;
constexpr Duration kDeadline = std::chrono::milliseconds(80);

/// An all-reduce of every rank, and how it ends.
class Attempt {
 public:
  Attempt(Mesh& mesh, Algorithm algorithm, bool victim_takes_part = true) : mesh_(mesh) {
    mesh.in_task([&] {
      for (std::size_t rank = 0; rank < kRanks; ++rank)
        groups.push_back(make_group(mesh.context(rank).executor(), mesh.pool, rank,
                                    mesh.links[rank], {5, Generation(1), kDeadline, {}}));
      for (std::size_t rank = 0; rank < kRanks; ++rank) {
        if (rank == kVictim && !victim_takes_part) continue;
        groups[rank]->all_reduce({{}, mesh.pool.acquire(kBytes).value()}, algorithm,
                                 [this, rank](const Result<Buffer>& result) {
                                   ++ends[rank];
                                   if (!result) errors[rank] = result.error();
                                 });
      }
    });
  }

  bool survivors_ended() const {
    for (std::size_t rank = 0; rank < kRanks; ++rank)
      if (rank != kVictim && ends[rank] == 0) return false;
    return true;
  }
  /// After it: everything of the generation is let go.
  void expect_memory_back() {
    mesh_.in_task([&] { groups.clear(); });
    mesh_.supersede_all();
    mesh_.close_all();
    EXPECT_EQ(mesh_.pool.stats().buffers_lent, 0u) << "a buffer did not come back to its pool";
    for (std::size_t rank = 0; rank < kRanks; ++rank) EXPECT_LE(ends[rank], 1);
  }
  /// Every survivor that failed has an error that names the victim and the operation.
  void expect_blamed(bool by_operation) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      if (rank == kVictim || !errors[rank]) continue;
      const auto& message = errors[rank]->message();
      EXPECT_NE(message.find("host 2"), std::string::npos) << rank << ": " << message;
      EXPECT_TRUE(!by_operation || message.find("all-reduce 0 of group 5") != std::string::npos)
          << message;
    }
  }

  std::vector<std::shared_ptr<Group>> groups;
  std::array<int, kRanks> ends{};
  std::array<std::optional<Error>, kRanks> errors;

 private:
  Mesh& mesh_;
};

class Fault : public ::testing::TestWithParam<std::tuple<Algorithm, int>> {
 protected:
  Algorithm algorithm() const { return std::get<0>(GetParam()); }
  Duration moment() const { return std::chrono::microseconds(std::get<1>(GetParam())); }

  /// Runs until the moment of the fault.
  void wait(SimMesh& mesh) const {
    bool due = false;
    mesh.context(0).executor().post_after(moment(), [&] { due = true; });
    ASSERT_TRUE(mesh.run_until([&] { return due; }));
  }
};

TEST_P(Fault, AHostThatDiesIsNamedByAllOthers) {
  SimMesh mesh(kRanks);
  Attempt run(mesh, algorithm());
  wait(mesh);
  mesh.network().kill_host("h2");
  const auto killed = mesh.now();
  ASSERT_TRUE(mesh.run_until([&] { return run.survivors_ended(); }));
  EXPECT_LT(mesh.now() - killed, kDeadline) << "a host that says goodbye needs no deadline";
  run.expect_blamed(false);
  mesh.links[kVictim].clear();
  mesh.links[kVictim].resize(kRanks);
  run.expect_memory_back();
}

TEST_P(Fault, AMachineThatFallsSilentIsNamedWithinTwiceTheDeadline) {
  SimMesh mesh(kRanks);
  Attempt run(mesh, algorithm());
  wait(mesh);
  mesh.network().kill_host("h2", true);
  const auto killed = mesh.now();
  ASSERT_TRUE(mesh.run_until([&] { return run.survivors_ended(); }));
  EXPECT_LE(mesh.now() - killed, 2 * kDeadline);
  mesh.links[kVictim].clear();
  mesh.links[kVictim].resize(kRanks);
  run.expect_memory_back();
}

TEST_P(Fault, AResetBetweenTwoRanksEndsTheOperationAtAll) {
  SimMesh mesh(kRanks);
  Attempt run(mesh, algorithm());
  wait(mesh);
  mesh.network().reset(SimMesh::name(1), SimMesh::name(kVictim));
  ASSERT_TRUE(mesh.run_until([&] { return run.survivors_ended() && run.ends[kVictim] == 1; }));
  for (const auto& error : run.errors)
    EXPECT_TRUE(!error || error->code() == ErrorCode::kClosed) << error->message();
  run.expect_memory_back();
}

TEST_P(Fault, AbortEndsEverythingAtOnceEverywhere) {
  SimMesh mesh(kRanks);
  Attempt run(mesh, algorithm());
  wait(mesh);
  const auto aborted = mesh.now();
  mesh.in_task(
      [&] { run.groups[kVictim]->abort(Error(ErrorCode::kInterrupted, "the user said stop")); });
  ASSERT_TRUE(mesh.run_until([&] { return run.survivors_ended() && run.ends[kVictim] == 1; }));
  EXPECT_LT(mesh.now() - aborted, std::chrono::milliseconds(5));
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    EXPECT_TRUE(!run.errors[rank] || rank == kVictim ||
                run.errors[rank]->message().find("user said stop") != std::string::npos);
  run.expect_memory_back();
}

TEST_P(Fault, AnOlderGenerationIsSuperseded) {
  SimMesh mesh(kRanks);
  Attempt run(mesh, algorithm());
  wait(mesh);
  mesh.supersede_all();
  ASSERT_TRUE(mesh.run_until([&] { return run.survivors_ended() && run.ends[kVictim] == 1; }));
  for (const auto& error : run.errors)
    EXPECT_TRUE(!error || error->code() == ErrorCode::kSuperseded) << error->message();
  run.expect_memory_back();
}

INSTANTIATE_TEST_SUITE_P(Moments, Fault,
                         ::testing::Combine(::testing::Values(Algorithm::kRing, Algorithm::kDirect,
                                                              Algorithm::kDoubling),
                                            ::testing::Values(0, 30, 60, 100, 150, 220, 300, 400,
                                                              550)));

TEST(CollectiveFailure, ARankThatNeverComesIsNamedAfterTheDeadline) {
  for (const auto algorithm : {Algorithm::kRing, Algorithm::kDirect, Algorithm::kDoubling}) {
    SimMesh mesh(kRanks);
    Attempt run(mesh, algorithm, false);
    ASSERT_TRUE(mesh.run_until([&] { return run.survivors_ended(); }));
    bool timed_out = false;
    for (const auto& error : run.errors)
      if (error && error->code() == ErrorCode::kTimeout) timed_out = true;
    EXPECT_TRUE(timed_out);
    run.expect_memory_back();
  }
}

TEST(CollectiveFailure, OnTcpAPeerThatClosesIsNamedByAllOthers) {
  TcpMesh mesh(kRanks);
  Attempt run(mesh, Algorithm::kRing, false);  // so that it cannot end before
  mesh.in_task([&] {
    for (auto& link : mesh.links[kVictim])
      if (link != nullptr) link->close();
  });
  ASSERT_TRUE(mesh.run_until([&] { return run.survivors_ended(); }));
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    ASSERT_TRUE(rank == kVictim || run.errors[rank]);
  run.expect_blamed(false);
  run.expect_memory_back();
}

TEST(CollectiveFailure, LaterOperationsOfAFailedGroupFailToo) {
  SimMesh mesh(kRanks);
  Attempt run(mesh, Algorithm::kRing);
  mesh.in_task([&] { run.groups[0]->abort(Error(ErrorCode::kClosed, "enough")); });
  std::optional<Error> later;
  mesh.in_task([&] {
    run.groups[0]->barrier([&](const Status& status) { later = status.error(); });
    EXPECT_FALSE(later) << "completed inside the call";
  });
  ASSERT_TRUE(mesh.run_until([&] { return later.has_value() && run.survivors_ended(); }));
  EXPECT_EQ(later->message(), "enough");
  run.expect_memory_back();
}

}  // namespace
}  // namespace holmes::transport

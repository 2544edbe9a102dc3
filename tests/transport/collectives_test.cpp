// Goal: every collective gives what a serial computation gives, with every algorithm, for every
// number of ranks and any size, in place or not; direct sums have the bits of the fixed tree; all
// ranks have the same bits; buffers come back unique and to their pool.
// Method: small integers, whose sums are exact in any order, for the matrix; random numbers for
// bits; a whole mesh in one process on sim (all of the matrix), on tcp and on tcp under TLS (some
// of it).
#include <bit>
#include <cmath>
#include <cstring>

#include "collectives_world.hpp"
#include "holmes/base/random.hpp"

namespace holmes::transport {
namespace {

using Floats = std::vector<float>;

struct Case {
  Collective collective = Collective::kAllReduce;
  Algorithm algorithm = Algorithm::kRing;
  std::size_t count = 0;
  bool in_place = false;
  std::size_t root = 0;
};

std::string describe(const Case& c, std::size_t ranks) {
  return std::string(to_string(c.collective)) + " " + std::string(to_string(c.algorithm)) + ", " +
         std::to_string(ranks) + " ranks, " + std::to_string(c.count) + " elements" +
         (c.in_place ? ", in place" : "");
}

Buffer buffer_of(BufferPool& pool, const Floats& values) {
  auto buffer = pool.acquire(values.size() * sizeof(float)).value();
  if (!values.empty())
    std::memcpy(buffer.mutable_bytes().data(), values.data(), values.size() * sizeof(float));
  return buffer;
}

Floats values_of(const Buffer& buffer) {
  const auto values = buffer.as<float>();
  return Floats(values.begin(), values.end());
}

/// All ranks' groups over a mesh.
class Groups {
 public:
  explicit Groups(Mesh& mesh, Duration deadline = kGroupDeadline) : mesh_(mesh) {
    mesh_.in_task([&] {
      for (std::size_t rank = 0; rank < mesh_.ranks(); ++rank)
        groups.push_back(make_group(mesh_.context(rank).executor(), mesh_.pool, rank,
                                    mesh_.links[rank], {7, Generation(1), deadline, {}}));
    });
  }

  void begin(std::size_t rank, const Case& c, Operands operands, CollectiveHandler done) {
    auto& group = *groups[rank];
    switch (c.collective) {
      case Collective::kReduceScatter:
        return group.reduce_scatter(std::move(operands), c.algorithm, std::move(done));
      case Collective::kAllGather:
        return group.all_gather(std::move(operands), c.algorithm, std::move(done));
      case Collective::kAllReduce:
        return group.all_reduce(std::move(operands), c.algorithm, std::move(done));
      case Collective::kBroadcast:
        return group.broadcast(c.root, std::move(operands.output), c.algorithm, std::move(done));
      case Collective::kBarrier:
        return group.barrier([done = std::move(done)](const Status& status) {
          if (status) return done(Buffer());
          done(status.error());
        });
    }
  }

  /// Runs one operation on all ranks; what each rank's output holds afterwards.
  std::vector<Floats> run(const Case& c, const std::vector<Floats>& inputs) {
    std::vector<Floats> outputs(inputs.size());
    std::size_t done = 0;
    const auto completed = [&](std::size_t rank) {
      return [&, rank](const Result<Buffer>& result) {
        ++done;
        ASSERT_TRUE(result) << result.error().message();
        EXPECT_TRUE(result->unique()) << "somebody still holds the output";
        outputs[rank] = values_of(*result);
      };
    };
    mesh_.in_task([&] {
      for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
        const bool in_place = c.in_place || c.collective == Collective::kBroadcast;
        Operands operands;
        operands.output = buffer_of(mesh_.pool, in_place ? inputs[rank] : Floats(c.count, -1e30F));
        if (!in_place) operands.input = buffer_of(mesh_.pool, inputs[rank]);
        begin(rank, c, std::move(operands), completed(rank));
        EXPECT_EQ(done, 0u) << "completed inside the call";
      }
    });
    EXPECT_TRUE(mesh_.run_until([&] { return done == inputs.size(); }))
        << describe(c, inputs.size());
    return outputs;
  }

  std::vector<std::shared_ptr<Group>> groups;

 private:
  Mesh& mesh_;
};

Floats random_integers(Random& random, std::size_t count) {
  Floats values(count);
  for (auto& value : values) value = static_cast<float>(random.below(1000)) - 500.0F;
  return values;
}

Floats random_reals(Random& random, std::size_t count) {
  Floats values(count);
  for (auto& value : values)
    value = (static_cast<float>(random.below(1 << 24)) - 8e6F) *
            std::exp2(static_cast<float>(random.below(40)) - 30.0F);
  return values;
}

/// What a rank must have at element i, or nothing where its output is undefined.
std::optional<float> expected(const Case& c, const std::vector<Floats>& inputs, std::size_t rank,
                              std::size_t i) {
  const auto ranks = inputs.size();
  if (c.collective == Collective::kBroadcast) return inputs[c.root][i];
  std::size_t owner = 0;
  while (i >= segment_of(c.count, ranks, owner).end) ++owner;
  if (c.collective == Collective::kAllGather) return inputs[owner][i];
  if (c.collective == Collective::kReduceScatter && owner != rank) return {};
  float sum = 0;
  for (const auto& input : inputs) sum += input[i];
  return sum;
}

void check(const Case& c, const std::vector<Floats>& inputs, const std::vector<Floats>& outputs) {
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    ASSERT_EQ(outputs[rank].size(), c.count) << describe(c, inputs.size());
    for (std::size_t i = 0; i < c.count; ++i) {
      const auto value = expected(c, inputs, rank, i);
      if (!value) continue;
      ASSERT_EQ(outputs[rank][i], *value)
          << describe(c, inputs.size()) << ", rank " << rank << ", element " << i;
    }
  }
}

constexpr Collective kDataCollectives[] = {Collective::kReduceScatter, Collective::kAllGather,
                                           Collective::kAllReduce, Collective::kBroadcast};
constexpr Algorithm kAlgorithms[] = {Algorithm::kAuto, Algorithm::kRing, Algorithm::kDirect,
                                     Algorithm::kDoubling};

void run_matrix(Mesh& mesh, const std::vector<std::size_t>& counts) {
  Groups groups(mesh);
  Random random(mesh.ranks());
  for (const auto collective : kDataCollectives)
    for (const auto algorithm : kAlgorithms)
      for (const auto count : counts)
        for (const bool in_place : {false, true}) {
          const Case c{collective, algorithm, count, in_place, random.below(mesh.ranks())};
          std::vector<Floats> inputs;
          for (std::size_t rank = 0; rank < mesh.ranks(); ++rank)
            inputs.push_back(random_integers(random, count));
          check(c, inputs, groups.run(c, inputs));
          if (::testing::Test::HasFatalFailure()) return;
        }
}

void end(Mesh& mesh) {
  mesh.close_all();
  EXPECT_EQ(mesh.pool.stats().buffers_lent, 0u) << "a buffer did not come back to its pool";
}

class RanksOnSim : public ::testing::TestWithParam<std::size_t> {};

TEST_P(RanksOnSim, EveryCollectiveAlgorithmAndSizeGivesTheSerialResult) {
  SimMesh mesh(GetParam());
  run_matrix(mesh, {0, 1, 2, 15, 17, 100, 1023, 16 * 1024, 70'001});
  end(mesh);
}

TEST_P(RanksOnSim, AllRanksHaveTheSameBitsAndDirectThoseOfTheTree) {
  SimMesh mesh(GetParam(), 3);
  const auto ranks = mesh.ranks();
  Groups groups(mesh);
  Random random(5);
  for (const std::size_t count : {1, 333, 20'011}) {
    std::vector<Floats> inputs;
    for (std::size_t rank = 0; rank < ranks; ++rank) inputs.push_back(random_reals(random, count));
    const std::function<float(std::size_t, std::size_t, std::size_t)> tree =
        [&](std::size_t first, std::size_t width, std::size_t i) -> float {
      if (width == 1) return inputs[first][i];
      const auto left = tree(first, width / 2, i);
      return first + width / 2 < ranks ? left + tree(first + width / 2, width / 2, i) : left;
    };
    for (const auto algorithm : kAlgorithms) {
      const auto outputs = groups.run({Collective::kAllReduce, algorithm, count, true, 0}, inputs);
      for (const auto& output : outputs)
        ASSERT_EQ(std::memcmp(output.data(), outputs[0].data(), count * sizeof(float)), 0);
      if (algorithm != Algorithm::kDirect) continue;
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(outputs[0][i], tree(0, std::bit_ceil(ranks), i)) << i;
    }
  }
  end(mesh);
}

TEST_P(RanksOnSim, ABarrierCompletesAfterTheLastRankCame) {
  SimMesh mesh(GetParam());
  const auto ranks = mesh.ranks();
  Groups groups(mesh);
  std::size_t done = 0;
  const auto enter = [&](std::size_t rank) {
    mesh.in_task(
        [&] { groups.groups[rank]->barrier([&](const Status& s) { done += s ? 1 : 0; }); });
  };
  for (std::size_t rank = 1; rank < ranks; ++rank) enter(rank);
  bool waited = false;
  mesh.context(0).executor().post_after(std::chrono::seconds(1), [&] { waited = true; });
  mesh.run_until([&] { return waited; });
  EXPECT_EQ(done, 0u) << "nobody may leave before rank 0 has come";
  enter(0);
  EXPECT_TRUE(mesh.run_until([&] { return done == ranks; }));
  end(mesh);
}

INSTANTIATE_TEST_SUITE_P(Ranks, RanksOnSim, ::testing::Range(std::size_t{1}, std::size_t{10}));

class RanksOnTcp : public ::testing::TestWithParam<std::size_t> {};

TEST_P(RanksOnTcp, EveryCollectiveAndAlgorithmGivesTheSerialResult) {
  TcpMesh mesh(GetParam(), GetParam() == 3 ? 2 : 1);
  run_matrix(mesh, {0, 17, 100'003});
  end(mesh);
}

INSTANTIATE_TEST_SUITE_P(Ranks, RanksOnTcp, ::testing::Values(2, 3, 5, 8));

class RanksOnTls : public ::testing::TestWithParam<std::size_t> {};

TEST_P(RanksOnTls, EveryCollectiveAndAlgorithmGivesTheSerialResult) {
  TcpMesh mesh(GetParam(), GetParam() == 3 ? 2 : 1, true);
  run_matrix(mesh, {0, 17, 100'003});
  end(mesh);
}

INSTANTIATE_TEST_SUITE_P(Ranks, RanksOnTls, ::testing::Values(2, 3, 5));

TEST(Collectives, SeveralOperationsAreUnderWayAtOnce) {
  SimMesh mesh(4);
  Groups groups(mesh);
  Random random(9);
  constexpr std::size_t kOperations = 3 * kGroupOperationsMax;
  std::size_t done = 0;
  std::vector<std::vector<Floats>> inputs(kOperations);
  mesh.in_task([&] {
    for (std::size_t n = 0; n < kOperations; ++n) {
      const Case c{kDataCollectives[n % 4], kAlgorithms[n % 3], 1000 + 977 * n, true, n % 4};
      for (std::size_t rank = 0; rank < 4; ++rank)
        inputs[n].push_back(random_integers(random, c.count));
      for (std::size_t rank = 0; rank < 4; ++rank)
        groups.begin(rank, c, {{}, buffer_of(mesh.pool, inputs[n][rank])},
                     [&, c, n, rank](const Result<Buffer>& result) {
                       ++done;
                       ASSERT_TRUE(result);
                       const auto values = values_of(*result);
                       for (std::size_t i = 0; i < c.count; ++i) {
                         const auto value = expected(c, inputs[n], rank, i);
                         ASSERT_TRUE(!value || *value == values[i]) << describe(c, 4);
                       }
                     });
    }
  });
  EXPECT_TRUE(mesh.run_until([&] { return done == 4 * kOperations; }));
  end(mesh);
}

TEST(Collectives, SegmentsCoverAllElementsOnceInWholeLines) {
  for (const std::size_t count : {0, 1, 15, 16, 17, 1000, 123'457})
    for (std::size_t ranks = 1; ranks < 12; ++ranks) {
      std::size_t at = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto segment = segment_of(count, ranks, rank);
        EXPECT_EQ(segment.begin, at);
        EXPECT_TRUE(segment.begin % 16 == 0 || segment.begin == count);
        at = segment.end;
      }
      EXPECT_EQ(at, count);
    }
}

TEST(Collectives, TheModelPrefersFewStepsForShortAndLittleTrafficForLong) {
  const LinkCost cost{10, std::chrono::microseconds(20)};
  EXPECT_EQ(choose(Collective::kAllReduce, 64, 8, cost), Algorithm::kDirect);
  EXPECT_EQ(choose(Collective::kAllReduce, 4096, 2, cost), Algorithm::kDoubling);
  EXPECT_NE(choose(Collective::kAllReduce, 64 * kMiB, 2, cost), Algorithm::kDoubling)
      << "it sums only what is there whole";
  EXPECT_NE(choose(Collective::kAllReduce, 64 * kMiB, 8, cost), Algorithm::kDoubling);
  EXPECT_EQ(choose(Collective::kBroadcast, 64 * kMiB, 8, cost), Algorithm::kRing);
  for (const auto collective : kDataCollectives)
    EXPECT_LT(predict(collective, Algorithm::kAuto, 1000, 4, cost),
              predict(collective, Algorithm::kAuto, 100 * kMiB, 4, cost));
  EXPECT_EQ(predict(Collective::kAllReduce, Algorithm::kAuto, 1000, 1, cost), Duration::zero());
}

TEST(Collectives, BadOperandsAreRefusedAlone) {
  SimMesh mesh(2);
  Groups groups(mesh);
  std::vector<ErrorCode> codes;
  const auto note = [&](const Result<Buffer>& result) { codes.push_back(result.error().code()); };
  mesh.in_task([&] {
    auto& group = *groups.groups[0];
    const auto shared = Buffer::allocate(16);
    group.all_reduce({{}, shared}, Algorithm::kAuto, note);
    group.all_reduce({{}, Buffer::allocate(15)}, Algorithm::kAuto, note);
    group.all_reduce({Buffer::allocate(8), Buffer::allocate(16)}, Algorithm::kAuto, note);
  });
  EXPECT_TRUE(mesh.run_until([&] { return codes.size() == 3; }));
  for (const auto code : codes) EXPECT_EQ(code, ErrorCode::kInvalidArgument);
  const std::vector<Floats> inputs(2, Floats(10, 1.0F));
  EXPECT_EQ(groups.run({Collective::kAllReduce, Algorithm::kAuto, 10, true, 0}, inputs)[1][3],
            2.0F);
  end(mesh);
}

}  // namespace
}  // namespace holmes::transport

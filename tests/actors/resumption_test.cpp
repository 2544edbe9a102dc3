// Goal: a coordinator goes on from the last step that anybody saw committed, never from an earlier
// one that it knows of, and asks for every element that a new member needs from a place that has
// it; and every shard has a keeper on another host while there is one.
// Method: decisions from made-up reports; plans for many sets of hosts, holdings of every one of
// them after each possible loss.
#include "resumption.hpp"

#include <set>

#include <gtest/gtest.h>

#include "replan.hpp"

namespace holmes::actors {
namespace {

CommittedStep commit(std::uint64_t step) {
  return {Step(step), 0.5 * static_cast<double>(step), 1, false};
}
HeldState held(std::uint32_t device, std::uint64_t updates, bool reduced) {
  return {DeviceId(device), Step(updates), reduced, {}};
}

TEST(ResumeFrom, NothingCommittedMeansTheBeginning) {
  const auto start = resume_from(Step(7), {}, {}, {held(0, 7, true), held(1, 7, false)});
  EXPECT_EQ(start.first_step, Step(7));
  EXPECT_FALSE(start.settle_norm);
  EXPECT_TRUE(start.unheard.empty());
}

TEST(ResumeFrom, AStepThatIsReducedEverywhereButSeenCommittedByNobodyIsDoneAgain) {
  const auto again = resume_from(Step(0), commit(4), {commit(4)}, {held(0, 5, true)});
  EXPECT_EQ(again.first_step, Step(5));
  EXPECT_FALSE(again.settle_norm);
}

TEST(ResumeFrom, OneMemberThatSawACommitIsEnough) {
  const auto on = resume_from(Step(0), commit(4), {commit(3), commit(4), commit(5)},
                              {held(0, 6, false), held(1, 5, true)});
  EXPECT_EQ(on.first_step, Step(6));
  ASSERT_EQ(on.unheard.size(), 1U);
  EXPECT_EQ(on.unheard[0], commit(5));
  EXPECT_EQ(on.settle_norm, 2.5);
  EXPECT_TRUE(is_usable(held(1, 5, true), on.first_step));
  EXPECT_FALSE(is_usable(held(1, 5, false), on.first_step));
  EXPECT_FALSE(is_usable(held(1, 4, true), on.first_step));
}

TEST(ResumeFrom, TheCoordinatorsOwnReportCountsThoughNobodyLeftSawIt) {
  const auto on = resume_from(Step(0), commit(5), {commit(4)}, {held(1, 5, true)});
  EXPECT_EQ(on.first_step, Step(6));
  EXPECT_EQ(on.settle_norm, 2.5);
}

TEST(ResumeFrom, SeveralUnheardCommitsComeInOrder) {
  const auto on = resume_from(Step(0), {}, {commit(1), commit(0), commit(1), commit(2)}, {});
  EXPECT_EQ(on.unheard, (std::vector{commit(0), commit(1), commit(2)}));
  EXPECT_EQ(on.first_step, Step(3));
}

/// Clusters a, b, ... of `hosts` hosts each.
JobConfig job(std::uint32_t clusters, std::uint32_t hosts) {
  JobConfig config;
  config.model = {4, 2, 32, 8, 4096, 64};  // the tied matrix has two chunks
  config.train.shape = {8, 1, 4};
  config.parallel.pipeline = clusters;
  config.cluster.fabrics.push_back({"ethernet", partition::NicKind::kEthernet, 0.1, 500});
  for (std::uint32_t c = 0; c < clusters; ++c) {
    const std::string name(1, static_cast<char>('a' + c));
    config.cluster.fabrics.push_back({"fast-" + name, partition::NicKind::kInfiniBand, 1, 20});
    for (std::uint32_t h = 0; h < hosts; ++h)
      config.cluster.hosts.push_back(
          {name + std::to_string(h),
           name,
           "",
           {{"cpu", 1, 1e-4, 1}},
           {{"fast0", FabricId(c + 1), 1, 20}, {"eth0", FabricId(0), 0.1, 500}}});
  }
  return config;
}

/// What the members of a plan hold: their shards, and what they keep.
std::vector<HeldState> holdings(const JobConfig& config, const partition::Plan& plan,
                                const std::vector<LayerTable>& table) {
  std::map<DeviceId, HeldState> held;
  const auto keepers = keepers_of(plan, config);
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s)
    for (std::size_t i = 0; i < plan.stages[s].shares.size(); ++i) {
      const DeviceId owner = plan.stages[s].shares[i].device;
      for (const auto layer : stage_layers(plan, StageIndex(s), config.model)) {
        const auto range = table[layer].updated(i, plan.stages[s].shares.size());
        if (range.empty()) continue;
        held[owner].pieces.push_back({layer, range});
        if (const auto keeper = keepers.find(owner); keeper != keepers.end())
          held[keeper->second].pieces.push_back({layer, range});
      }
    }
  std::vector<HeldState> states;
  for (auto& [device, state] : held) {
    state.device = device;
    states.push_back(std::move(state));
  }
  return states;
}

TEST(Keepers, AreOnAnotherHostWhereverThereIsOne) {
  for (const auto& [clusters, hosts] :
       {std::pair{1U, 1U}, {1U, 4U}, {2U, 1U}, {2U, 2U}, {3U, 3U}}) {
    const auto config = job(clusters, hosts);
    const auto plan =
        plan_for(config, config.train.shape, std::vector<bool>(config.cluster.hosts.size(), true));
    ASSERT_TRUE(plan) << plan.error().message();
    const auto keepers = keepers_of(*plan, config);
    const bool alone = config.cluster.hosts.size() == 1;
    EXPECT_EQ(keepers.size(), alone ? 0 : plan->members().size());
    for (const auto& [owner, keeper] : keepers)
      EXPECT_NE(config.cluster.host_of(owner), config.cluster.host_of(keeper));
    auto stops = config;
    stops.resilience.on_loss = OnLoss::kStop;
    EXPECT_TRUE(keepers_of(*plan, stops).empty());
  }
}

/// Every transfer takes from who has it, and each use of each member is covered once.
void check_transfers(const JobConfig& config, const partition::Plan& plan,
                     const std::vector<LayerTable>& table, const std::vector<HeldState>& held,
                     const std::vector<StateTransfer>& transfers) {
  std::set<std::uint32_t> numbers;
  std::map<std::tuple<DeviceId, std::uint32_t, bool>, std::size_t> parameters;
  for (const auto& transfer : transfers) {
    EXPECT_TRUE(numbers.insert(transfer.number).second);
    EXPECT_TRUE(std::any_of(held.begin(), held.end(), [&](const HeldState& state) {
      return state.device == transfer.source &&
             std::any_of(state.pieces.begin(), state.pieces.end(), [&](const PieceName& piece) {
               return piece.layer == transfer.piece.layer &&
                      piece.elements.begin <= transfer.piece.elements.begin &&
                      piece.elements.end >= transfer.piece.elements.end;
             });
    }));
    const bool kept = transfer.use == StateUse::kKeptShard;
    const auto layer = transfer.use == StateUse::kTiedCopy ? 0 : transfer.piece.layer;
    parameters[{transfer.destination, layer, kept}] += transfer.piece.elements.size();
  }
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s)
    for (const auto& share : plan.stages[s].shares)
      for (const auto layer : stage_layers(plan, StageIndex(s), config.model))
        EXPECT_EQ((parameters[{share.device, layer, false}]), table[layer].elements);
}

TEST(StateTransfers, CoverEveryNewMemberAfterAnyLoss) {
  for (const auto& [clusters, hosts] :
       {std::pair{1U, 2U}, {1U, 4U}, {2U, 1U}, {2U, 2U}, {3U, 2U}}) {
    const auto config = job(clusters, hosts);
    const auto table = model_table(config.model);
    const std::vector<bool> all(config.cluster.hosts.size(), true);
    const auto before = plan_for(config, config.train.shape, all);
    ASSERT_TRUE(before) << before.error().message();
    for (std::size_t lost = 0; lost < all.size(); ++lost) {
      auto left = all;
      left[lost] = false;
      const auto after = plan_for(config, before->job, left);
      ASSERT_TRUE(after) << after.error().message();
      ASSERT_TRUE(partition::validate(*after, config.cluster, config.model.layers));
      EXPECT_EQ(after->job, before->job);
      auto held = holdings(config, *before, table);
      std::erase_if(held, [&](const HeldState& state) {
        return config.cluster.host_of(state.device).index() == lost;
      });
      const auto keepers = keepers_of(*after, config);
      const auto transfers =
          state_transfers({*after, keepers, config.cluster, config.model, table, held});
      ASSERT_TRUE(transfers) << clusters << "x" << hosts << " without " << lost;
      check_transfers(config, *after, table, held, *transfers);
      for (const auto member : after->members())
        EXPECT_NE(config.cluster.host_of(member).index(), lost);
    }
  }
}

TEST(StateTransfers, SayWhenBothCopiesAreGone) {
  const auto config = job(2, 2);
  const auto table = model_table(config.model);
  const std::vector<bool> all(4, true);
  const auto before = plan_for(config, config.train.shape, all);
  ASSERT_TRUE(before);
  auto held = holdings(config, *before, table);
  std::erase_if(held, [](const HeldState& state) { return state.device.value() < 2; });
  const auto after = plan_for(config, before->job, {false, false, true, true});
  ASSERT_TRUE(after) << after.error().message();
  EXPECT_FALSE(state_transfers(
      {*after, keepers_of(*after, config), config.cluster, config.model, table, held}));
}

TEST(PlanFor, NobodyLeftIsAnError) {
  const auto config = job(1, 2);
  EXPECT_FALSE(plan_for(config, config.train.shape, {false, false}));
}

}  // namespace
}  // namespace holmes::actors

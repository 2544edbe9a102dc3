#include "plan_codec.hpp"

#include "holmes/base/assert.hpp"
#include "holmes/base/limits.hpp"

namespace holmes::actors {

namespace {

template <class Ids, class Builder>
void write_ids(const Ids& ids, Builder out) {
  for (unsigned i = 0; i < ids.size(); ++i) out.set(i, ids[i].value());
}

template <class IdType>
std::vector<IdType> read_ids(capnp::List<std::uint32_t>::Reader in) {
  std::vector<IdType> ids;
  ids.reserve(in.size());
  for (const auto value : in) ids.emplace_back(value);
  return ids;
}

Error corrupt(const char* what) {
  return Error(ErrorCode::kCorrupt, std::string("plan: ") + what);
}

partition::StagePlan read_stage(schema::StagePlan::Reader in) {
  partition::StagePlan stage;
  stage.first_block = in.getFirstBlock();
  stage.last_block = in.getLastBlock();
  for (const auto share : in.getShares())
    stage.shares.push_back({DeviceId(share.getDevice()),
                            {share.getFirstLeaf(), share.getLastLeaf()},
                            {},
                            share.getOrder().cStr(),
                            share.getOffsetUs()});
  return stage;
}

}  // namespace

void write_plan(const partition::Plan& plan, schema::Plan::Builder out) {
  HOLMES_ASSERT(partition::check_runnable(plan), "only plans that can run travel");
  out.setStrategy(static_cast<std::uint8_t>(plan.strategy));
  out.setSchedule(static_cast<std::uint8_t>(plan.schedule));
  out.setBatch(plan.job.batch);
  out.setMicroBatch(plan.job.micro_batch);
  out.setReductionLeaves(plan.job.reduction_leaves);
  auto stages = out.initStages(static_cast<unsigned>(plan.stages.size()));
  for (unsigned i = 0; i < plan.stages.size(); ++i) {
    const auto& stage = plan.stages[i];
    stages[i].setFirstBlock(stage.first_block);
    stages[i].setLastBlock(stage.last_block);
    auto shares = stages[i].initShares(static_cast<unsigned>(stage.shares.size()));
    for (unsigned j = 0; j < stage.shares.size(); ++j) {
      shares[j].setDevice(stage.shares[j].device.value());
      shares[j].setFirstLeaf(stage.shares[j].leaves.first);
      shares[j].setLastLeaf(stage.shares[j].leaves.last);
      shares[j].setOrder(stage.shares[j].order);
      shares[j].setOffsetUs(stage.shares[j].offset_us);
    }
  }
  auto groups = out.initGroups(static_cast<unsigned>(plan.groups.size()));
  for (unsigned i = 0; i < plan.groups.size(); ++i) {
    const auto& group = plan.groups[i];
    groups[i].setKind(static_cast<std::uint8_t>(group.kind));
    write_ids(group.devices, groups[i].initDevices(static_cast<unsigned>(group.devices.size())));
    write_ids(group.paths, groups[i].initPaths(static_cast<unsigned>(group.paths.size())));
    groups[i].setReason(group.reason);
  }
  auto edges = out.initEdges(static_cast<unsigned>(plan.edges.size()));
  for (unsigned i = 0; i < plan.edges.size(); ++i) {
    const auto& edge = plan.edges[i];
    edges[i].setFromStage(edge.from_stage.value());
    edges[i].setToStage(edge.to_stage.value());
    write_ids(edge.paths, edges[i].initPaths(static_cast<unsigned>(edge.paths.size())));
    edges[i].setReason(edge.reason);
  }
}

Result<partition::Plan> read_plan(schema::Plan::Reader in) {
  if (in.getStrategy() > static_cast<std::uint8_t>(partition::kStrategyLast))
    return corrupt("unknown strategy");
  if (in.getSchedule() > static_cast<std::uint8_t>(partition::kScheduleLast))
    return corrupt("unknown schedule");
  if (in.getStages().size() > limits::kLayersMax) return corrupt("too many stages");
  partition::Plan plan;
  plan.strategy = static_cast<partition::Strategy>(in.getStrategy());
  plan.schedule = static_cast<partition::ScheduleKind>(in.getSchedule());
  plan.job = {in.getBatch(), in.getMicroBatch(), in.getReductionLeaves()};
  for (const auto stage : in.getStages()) plan.stages.push_back(read_stage(stage));
  for (const auto group : in.getGroups()) {
    if (group.getKind() > static_cast<std::uint8_t>(partition::GroupKind::kVote))
      return corrupt("unknown kind of group");
    plan.groups.push_back({static_cast<partition::GroupKind>(group.getKind()),
                           read_ids<DeviceId>(group.getDevices()),
                           read_ids<FabricId>(group.getPaths()), group.getReason().cStr()});
  }
  for (const auto edge : in.getEdges())
    plan.edges.push_back({StageIndex(edge.getFromStage()), StageIndex(edge.getToStage()),
                          read_ids<FabricId>(edge.getPaths()), edge.getReason().cStr()});
  return plan;
}

}  // namespace holmes::actors

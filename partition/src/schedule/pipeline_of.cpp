#include "schedule/pipeline_of.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "cost/stage_memory.hpp"
#include "holmes/partition/reach.hpp"
#include "simulate/channels.hpp"

namespace holmes::partition {
namespace {

constexpr double kGigabitBytes = 1e9 / 8;
constexpr double kMicro = 1e-6;
constexpr double kGib = 1024.0 * 1024 * 1024;

/// Fills ways, forth and back.
class Ways {
 public:
  Ways(const Plan& plan, const Cluster& cluster, const ModelCost& model, const CostOptions& cost,
       Pipeline& pipeline)
      : plan_(plan), hosts_(hosts_by_device(cluster)), cost_(cost), pipeline_(pipeline) {
    options_.cost = cost;
    bytes_ = plan.job.micro_batch * edge_bytes(model, cost);
    channels_.emplace(cluster, options_);
    for (const Group& of : plan.groups) {
      if (of.kind == GroupKind::kVote) common_ = of.paths;
    }
  }

  void fill() {
    const std::uint32_t stages = pipeline_.stages;
    const std::size_t places = std::size_t{stages} * pipeline_.micro_batches;
    pipeline_.ways.assign(1, {});
    pipeline_.forth.assign(places, 0);
    pipeline_.back.assign(places, 0);
    const std::uint32_t to_first = pipeline_.chunks > 1 ? 1 : 0;
    for (std::uint32_t stage = 0; stage + 1 < stages + to_first; ++stage) {
      const std::uint32_t next = (stage + 1) % stages;
      const auto& paths = next == 0 || !cost_.nic_selection ? common_ : plan_.edges[stage].paths;
      for (std::uint32_t k = 0; k < pipeline_.micro_batches; ++k) {
        const std::uint32_t a = owner(stage, k);
        const std::uint32_t b = owner(next, k);
        pipeline_.forth[std::size_t{stage} * pipeline_.micro_batches + k] = way(a, b, paths);
        pipeline_.back[std::size_t{next} * pipeline_.micro_batches + k] = way(b, a, paths);
      }
    }
    pipeline_.channel_count = static_cast<std::uint32_t>(channels_->size());
  }

 private:
  std::uint32_t owner(std::uint32_t stage, std::uint32_t k) const {
    return pipeline_.owner[std::size_t{stage} * pipeline_.micro_batches + k];
  }
  HostId host(std::uint32_t station) const {
    const Pipeline::Station& at = pipeline_.stations[station];
    return hosts_[plan_.owner(StageIndex(at.stage), MicroBatch(at.first)).index()];
  }

  std::uint32_t way(std::uint32_t from, std::uint32_t to, const std::vector<FabricId>& paths) {
    if (from == to) return 0;
    const auto [found, added] = known_.try_emplace({from, to}, 0);
    if (!added) return found->second;
    Pipeline::Way made;
    const HostId a = host(from);
    const HostId b = host(to);
    if (a == b) {
      made.latency_s =
          bytes_ / (cost_.local_gbit_s * kGigabitBytes) + cost_.local_latency_us * kMicro;
    } else {
      const Channels::Way& way = channels_->way_on(a, b, paths);
      made.latency_s = way.latency_s;
      made.parts = {{way.send, channels_->seconds(way.send, bytes_)},
                    {way.receive, channels_->seconds(way.receive, bytes_)}};
      for (const ChannelId id : way.shared)
        made.parts.push_back({id, channels_->seconds(id, bytes_)});
    }
    pipeline_.ways.push_back(std::move(made));
    return found->second = static_cast<std::uint32_t>(pipeline_.ways.size() - 1);
  }

  const Plan& plan_;
  const std::vector<HostId> hosts_;
  const CostOptions& cost_;
  Pipeline& pipeline_;
  SimulateOptions options_;
  std::optional<Channels> channels_;
  double bytes_ = 0;
  std::vector<FabricId> common_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known_;
};

double slowest(const Share& share, const std::vector<const Device*>& devices) {
  double tflops = devices[share.device.index()]->tflops;
  for (const DeviceId peer : share.peers) {
    tflops = std::min(tflops, devices[peer.index()]->tflops);
  }
  return tflops;
}

/// Units of a chunk of a micro-batch that `options` and the smallest memory of the share allow.
std::uint32_t held_max(const Plan& plan, const StageMemory& memory_of, const Share& share,
                       double memory, const OrderOptions& options, std::uint32_t count) {
  double most = options.in_flight_max > 0 ? options.in_flight_max : count;
  const double one = memory_of.of(share, 1).total();
  const double each = memory_of.of(share, 2).total() - one;
  if (each > 0) most = std::min(most, 1 + std::max(0.0, (memory - one) / each + 1e-9));
  const double units = std::floor(most * plan.chunks + 1e-9);
  return static_cast<std::uint32_t>(std::clamp(units, 1.0, 1.0 * count * plan.chunks));
}

}  // namespace

PassTimes pass_times(const Plan& plan, StageIndex stage, std::uint32_t chunk,
                     const LayerTimes& layers) {
  const double blocks = chunk_blocks(plan, stage, chunk);
  double ends_s = 0;  // embedding and head
  if (stage.value() == 0 && chunk == 0) ends_s += layers.embedding_forward_s;
  if (stage.index() + 1 == plan.stages.size() && chunk + 1 == plan.chunks) {
    ends_s += layers.head_forward_s;
  }
  PassTimes times;
  const double overhead_s = layers.overhead_s;
  times.forward_s = overhead_s + blocks * layers.block_forward_s + ends_s;
  times.backward_s = overhead_s + blocks * layers.block_backward_s + ends_s * layers.backward_ratio;
  // The gradient of the weights takes as long as a forward pass; what is left is the input's.
  times.weight_s = (times.backward_s - overhead_s) / 2 + overhead_s;
  times.input_s = times.backward_s - times.weight_s + overhead_s;
  return times;
}

Pipeline bare_pipeline(const Plan& plan) {
  Pipeline pipeline;
  pipeline.stages = static_cast<std::uint32_t>(plan.stages.size());
  pipeline.chunks = plan.chunks;
  pipeline.micro_batches = plan.job.micro_batch_count();
  const std::uint32_t of_leaf = pipeline.micro_batches / plan.job.reduction_leaves;
  for (std::uint32_t s = 0; s < pipeline.stages; ++s) {
    for (const Share& share : plan.stages[s].shares) {
      Pipeline::Station station;
      station.stage = s;
      station.chunks.assign(plan.chunks, {1, 1, 1, 1});
      station.first = share.leaves.first * of_leaf;
      station.count = (share.leaves.last - share.leaves.first + 1) * of_leaf;
      station.held_max = station.count * plan.chunks;
      pipeline.owner.insert(pipeline.owner.end(), station.count,
                            static_cast<std::uint32_t>(pipeline.stations.size()));
      pipeline.stations.push_back(std::move(station));
    }
  }
  const std::size_t places = std::size_t{pipeline.stages} * pipeline.micro_batches;
  pipeline.ways.assign(1, {});
  pipeline.forth.assign(places, 0);
  pipeline.back.assign(places, 0);
  return pipeline;
}

Pipeline pipeline_of(const Plan& plan, const Cluster& cluster, const ModelCost& model,
                     const CostOptions& cost, const OrderOptions& options) {
  Pipeline pipeline = bare_pipeline(plan);
  pipeline.overlapped = cost.overlapped_transfers;
  const auto devices = devices_by_rank(cluster);
  auto station = pipeline.stations.begin();
  for (std::uint32_t s = 0; s < pipeline.stages; ++s) {
    const StageMemory memory_of(plan, model, StageIndex(s), cost, {});
    for (const Share& share : plan.stages[s].shares) {
      const LayerTimes layers =
          layer_times(model, plan.job, slowest(share, devices), plan.tensor, cost);
      double memory_gib = devices[share.device.index()]->memory_gib;
      for (const DeviceId peer : share.peers) {
        memory_gib = std::min(memory_gib, devices[peer.index()]->memory_gib);
      }
      for (std::uint32_t chunk = 0; chunk < plan.chunks; ++chunk) {
        station->chunks[chunk] = pass_times(plan, StageIndex(s), chunk, layers);
      }
      station->held_max =
          held_max(plan, memory_of, share, memory_gib * kGib, options, station->count);
      ++station;
    }
  }
  Ways(plan, cluster, model, cost, pipeline).fill();
  return pipeline;
}

Orders orders_of(const Plan& plan) {
  Orders orders;
  for (const StagePlan& stage : plan.stages) {
    for (const Share& share : stage.shares) orders.push_back(share.order);
  }
  return orders;
}

void put_orders(const Orders& orders, Plan& plan) {
  auto order = orders.begin();
  for (StagePlan& stage : plan.stages) {
    for (Share& share : stage.shares) share.order = *order++;
  }
}

}  // namespace holmes::partition

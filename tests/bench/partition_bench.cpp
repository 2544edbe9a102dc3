// Time of plan(), validate(), simulate() and search(): the paper's twelve hosts, and 1,280 hosts in
// 64 clusters. The counters say how large the plan is and how much memory the process had at most.
#include <sys/resource.h>

#include <benchmark/benchmark.h>

#include "holmes/base/assert.hpp"
#include "holmes/partition/order.hpp"
#include "holmes/partition/plan.hpp"
#include "holmes/partition/search.hpp"

namespace {

using namespace holmes;
using namespace holmes::partition;

/// `clusters` clusters of `hosts` hosts of 8 devices: InfiniBand of four rails in each, Ethernet
/// between them.
Cluster make_cluster(std::uint32_t clusters, std::uint32_t hosts) {
  Cluster cluster;
  cluster.fabrics = {{"ethernet", NicKind::kEthernet, 25, 40}};
  for (std::uint32_t c = 0; c < clusters; ++c) {
    const std::string name = "c" + std::to_string(c);
    cluster.fabrics.push_back({"ib-" + name, NicKind::kInfiniBand, 200, 5, 0, true});
    for (std::uint32_t h = 0; h < hosts; ++h) {
      Host host{name + "-" + std::to_string(h), name, "", {}, {}};
      host.devices.assign(8, {"a100", 1, 312 + 1.0 * (c % 3), 80});
      for (int rail = 0; rail < 4; ++rail) {
        host.nics.push_back({"ib" + std::to_string(rail), FabricId(c + 1), 200, 5});
      }
      host.nics.push_back({"eth0", FabricId(0), 25, 40});
      cluster.hosts.push_back(std::move(host));
    }
  }
  return cluster;
}

ModelCost model(std::uint32_t blocks) {
  return {blocks, 1e12, 1e9, 5e12, 50'000'000, 30'000'000, 30'000'000, 1 << 25};
}

void make_plan(benchmark::State& state) {
  const auto clusters = static_cast<std::uint32_t>(state.range(0));
  const auto hosts = static_cast<std::uint32_t>(state.range(1));
  const Cluster cluster = make_cluster(clusters, hosts);
  PlanOptions options;
  options.tensor = static_cast<std::uint32_t>(state.range(2));
  options.pipeline = static_cast<std::uint32_t>(state.range(3));
  options.split = SplitRule::kOptimal;
  std::size_t members = 0;
  for ([[maybe_unused]] auto iteration : state) {
    const auto made = plan(cluster, model(128), {2048, 1, 1024}, options);
    HOLMES_ASSERT(made, made.error().message().c_str());
    members = made->members().size();
    benchmark::DoNotOptimize(made);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["devices"] = static_cast<double>(members);
  state.counters["peak_mib"] = static_cast<double>(usage.ru_maxrss) / 1024;
}
BENCHMARK(make_plan)
    ->ArgNames({"clusters", "hosts", "tensor", "pipeline"})
    ->Args({2, 6, 1, 2})
    ->Args({2, 6, 8, 2})
    ->Args({64, 20, 1, 64})
    ->Args({64, 20, 8, 64})
    ->Args({64, 20, 8, 16})
    ->Unit(benchmark::kMillisecond);

void check_plan(benchmark::State& state) {
  const Cluster cluster = make_cluster(64, 20);
  const auto made = plan(cluster, model(128), {2048, 1, 1024}, {});
  HOLMES_ASSERT(made, made.error().message().c_str());
  for ([[maybe_unused]] auto iteration : state) {
    const auto valid = validate(*made, cluster, 128);
    HOLMES_ASSERT(valid, "the plan is valid");
  }
}
BENCHMARK(check_plan)->Unit(benchmark::kMillisecond);

void explain_plan(benchmark::State& state) {
  const Cluster cluster = make_cluster(64, 20);
  const auto made = plan(cluster, model(128), {2048, 1, 1024}, {});
  HOLMES_ASSERT(made, made.error().message().c_str());
  for ([[maybe_unused]] auto iteration : state) {
    benchmark::DoNotOptimize(explain(*made, cluster));
  }
}
BENCHMARK(explain_plan)->Unit(benchmark::kMillisecond);

/// One simulated step of a plan that is given.
void simulate_step(benchmark::State& state) {
  const auto clusters = static_cast<std::uint32_t>(state.range(0));
  const auto hosts = static_cast<std::uint32_t>(state.range(1));
  const auto batch = static_cast<std::uint32_t>(state.range(2));
  const Cluster cluster = make_cluster(clusters, hosts);
  const auto made = plan(cluster, model(128), {batch, 1, batch}, {});
  HOLMES_ASSERT(made, made.error().message().c_str());
  SimulateOptions options;
  options.steps = 1;
  for ([[maybe_unused]] auto iteration : state) {
    const auto simulated = simulate(*made, cluster, model(128), options);
    HOLMES_ASSERT(simulated, "the plan can be simulated");
    benchmark::DoNotOptimize(simulated);
  }
  state.counters["devices"] = static_cast<double>(made->members().size());
}
BENCHMARK(simulate_step)
    ->ArgNames({"clusters", "hosts", "batch"})
    ->Args({2, 6, 192})
    ->Args({64, 20, 1024})
    ->Unit(benchmark::kMillisecond);

/// Orders of passes for a plan that is given: a stage for each cluster.
void generate_orders(benchmark::State& state) {
  const Cluster cluster = make_cluster(static_cast<std::uint32_t>(state.range(0)),
                                       static_cast<std::uint32_t>(state.range(1)));
  const auto batch = static_cast<std::uint32_t>(state.range(2));
  auto made = plan(cluster, model(128), {batch, 1, batch}, {});
  HOLMES_ASSERT(made, made.error().message().c_str());
  for ([[maybe_unused]] auto iteration : state) {
    Plan plan = *made;
    const auto ordered = order_passes(cluster, model(128), {}, {}, plan);
    HOLMES_ASSERT(ordered, "the plan can be ordered");
    benchmark::DoNotOptimize(plan);
  }
  state.counters["devices"] = static_cast<double>(made->members().size());
}
BENCHMARK(generate_orders)
    ->ArgNames({"clusters", "hosts", "batch"})
    ->Args({2, 2, 128})
    ->Args({2, 6, 192})
    ->Args({64, 20, 1024})
    ->Unit(benchmark::kMillisecond);

/// Strategy auto, schedules that train.
void search_plan(benchmark::State& state) {
  const Cluster cluster = make_cluster(static_cast<std::uint32_t>(state.range(0)),
                                       static_cast<std::uint32_t>(state.range(1)));
  const auto batch = static_cast<std::uint32_t>(state.range(2));
  std::size_t simulated = 0;
  for ([[maybe_unused]] auto iteration : state) {
    const auto found = search(cluster, model(128), {batch, 1, batch}, {});
    HOLMES_ASSERT(found, found.error().message().c_str());
    simulated = found->simulated;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["simulated"] = static_cast<double>(simulated);
  state.counters["peak_mib"] = static_cast<double>(usage.ru_maxrss) / 1024;
}
BENCHMARK(search_plan)
    ->ArgNames({"clusters", "hosts", "batch"})
    ->Args({2, 2, 32})
    ->Args({2, 6, 192})
    ->Args({64, 20, 1024})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();

#pragma once

// A tiny job on a few clusters in simulation.

#include <fstream>

#include <gtest/gtest.h>

#include "sim/sim_world.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::actors::testing {

constexpr Duration kLimit = std::chrono::minutes(10);

class SimJobTest : public ::testing::Test {
 protected:
  SimJobTest() {
    std::ofstream text(folder_.path() / "text.txt");
    for (int i = 0; i < 400; ++i) text << "line " << i * i << " of the text\n";
  }

  /// `clusters` clusters of `hosts` hosts each, with a fast fabric inside and Ethernet between.
  partition::Cluster cluster(std::uint32_t clusters, std::uint32_t hosts) const {
    partition::Cluster result;
    result.fabrics.push_back({"ethernet", partition::NicKind::kEthernet, 0.1, 500});
    for (std::uint32_t c = 0; c < clusters; ++c) {
      const std::string name(1, static_cast<char>('a' + c));
      result.fabrics.push_back({"fast-" + name, partition::NicKind::kInfiniBand, 1, 20});
      for (std::uint32_t h = 0; h < hosts; ++h)
        result.hosts.push_back(
            {name + std::to_string(h),
             name,
             "",
             {{"cpu", 1, 1e-4, 1}},
             {{"fast0", FabricId(c + 1), 1, 20}, {"eth0", FabricId(0), 0.1, 500}}});
    }
    return result;
  }

  JobConfig job(std::uint32_t clusters, std::uint32_t hosts) const {
    JobConfig config;
    config.data.text = folder_.path() / "text.txt";
    config.data.validation = 0.1;
    config.data.validate_every = 2;
    config.data.validation_batches = 3;
    config.model = {4, 2, 8, 8, 256, 64};
    config.train.steps = 4;
    config.train.sequence = 8;
    config.train.shape = {8, 1, 4};
    config.train.seed = 5;
    config.train.learning_rate = {1e-2F, 1e-3F, 2, 10};
    config.parallel.pipeline = clusters;
    config.cluster = cluster(clusters, hosts);
    return config;
  }

  /// The same of a Llama: two heads on one of keys and values.
  JobConfig llama_job(std::uint32_t clusters, std::uint32_t hosts, model::Head head) const {
    JobConfig config = job(clusters, hosts);
    config.model.family = model::Family::kLlama;
    config.model.kv_heads = 1;
    config.model.feed_forward = 12;
    config.model.head = head;
    return config;
  }

  const holmes::testing::TemporaryFolder folder_;
};

}  // namespace holmes::actors::testing

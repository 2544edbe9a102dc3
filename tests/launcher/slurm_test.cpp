// Goal: what Slurm says of a job is read as it means it, and srun is asked for what is meant. The
// rest is in e2e_slurm, with a real Slurm.
#include "slurm.hpp"

#include <gmock/gmock.h>

namespace holmes::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Slurm, CpusOfNodesAreReadAsTheyAreWritten) {
  EXPECT_THAT(*parse_cpus_per_node("4"), ElementsAre(4));
  EXPECT_THAT(*parse_cpus_per_node("4(x2),8"), ElementsAre(4, 4, 8));
  EXPECT_THAT(*parse_cpus_per_node("72(x1),1"), ElementsAre(72, 1));
}

TEST(Slurm, WhatIsNoListOfCpusIsRefused) {
  for (const char* text : {"", ",", "0", "-1", "x", "4(x", "4(x0)", "4(x2", "4x2)", "4(x65537)",
                           "4(x60000),4(x60000)", "4,,4", "123456"}) {
    const auto cpus = parse_cpus_per_node(text);
    ASSERT_FALSE(cpus) << text;
    EXPECT_THAT(cpus.error().message(), HasSubstr("SLURM_JOB_CPUS_PER_NODE")) << text;
  }
}

TEST(Slurm, AnAgentIsOneTaskWithAllCpusOfItsNode) {
  const auto words =
      srun_words({"/opt/holmes", {"A=b c"}}, {"n3", 16}, {"holmes", "agent", "--host", "a 1"});
  const std::vector<std::string> after(words.begin() + 3, words.end());
  EXPECT_THAT(after, ElementsAre("srun", "--export=ALL", "--nodes=1", "--ntasks=1", "--overlap",
                                 "--nodelist=n3", "--cpus-per-task=16", "--", "env", "A=b c",
                                 "/opt/holmes", "agent", "--host", "a 1"));
}

}  // namespace
}  // namespace holmes::launcher

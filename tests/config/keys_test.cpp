// Goal: the table of keys is whole: each key can be set by file and by --set, its default is within
// its range, and help names it. Method: walk the table through the public functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holmes/actors/job_config.hpp"

namespace holmes::actors {
namespace {

using ::testing::HasSubstr;

TEST(Keys, HelpListsSectionsKeysDefaultsAndRanges) {
  const std::string help = describe_keys();
  for (const char* section : {"[run]", "[model]", "[data]", "[train]", "[parallel]", "[cluster]",
                              "[transport]", "[resilience]", "[security]"}) {
    EXPECT_THAT(help, HasSubstr(section));
  }
  EXPECT_THAT(help, HasSubstr("  steps                 an integer, 1 .. 1e+12; default 100\n"));
  EXPECT_THAT(help, HasSubstr("one of megatron, holmes, auto, megatron-lm, megatron-deepspeed, "
                              "megatron-llama; default \"holmes\""));
  EXPECT_THAT(help, HasSubstr("true or false; default true"));
  EXPECT_THAT(help, HasSubstr("default model.sequence"));
  EXPECT_THAT(help, HasSubstr("a number, 1e-12 .. 100; default 0.001"));
}

/// Names of all keys, "section.key", as the help lists them.
std::vector<std::string> all_keys() {
  std::vector<std::string> keys;
  std::string section;
  std::istringstream lines(describe_keys());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[[")) break;
    if (line.starts_with("[")) section = line.substr(1, line.find(']') - 1);
    if (line.starts_with("  ") && line[2] != ' ') {
      keys.push_back(section + "." + line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return keys;
}

TEST(Keys, EachIsKnownToSetAndToFiles) {
  const auto keys = all_keys();
  EXPECT_EQ(keys.size(), 83U);
  for (const std::string& key : keys) {
    // A table fits no key: the message shows that the key was found.
    const auto dot = key.find('.');
    const std::string section = key.substr(0, dot);
    const auto in_file = parse_job("[" + section + "." + key.substr(dot + 1) + "]", "j", {}, "");
    ASSERT_FALSE(in_file) << key;
    EXPECT_THAT(in_file.error().message(),
                HasSubstr("[" + section + "] " + key.substr(dot + 1) + ": wants "));
    const auto by_set = parse_job("", "j", {key + "="}, "");
    ASSERT_FALSE(by_set) << key;
    EXPECT_THAT(by_set.error().message(), HasSubstr("--set " + key + ": "));
    EXPECT_THAT(by_set.error().message(), ::testing::Not(HasSubstr("unknown")));
  }
}

TEST(Keys, HelpListsTheClusterFilesToo) {
  const std::string help = describe_keys();
  for (const char* entry :
       {"[[fabric]]", "[[cluster]]", "[[host]]", "[[host.device]]", "[[host.nic]]", "[[link]]"}) {
    EXPECT_THAT(help, HasSubstr(entry));
  }
  EXPECT_THAT(help, HasSubstr("  near                  a list of device numbers; default all\n"));
  EXPECT_THAT(help, HasSubstr("  latency_us            a number, 0 .. 1e+07; must be given\n"));
}

/// "host.nic" and its keys as the help lists them, with or without those that must be given.
std::vector<std::pair<std::string, std::string>> cluster_keys_of_help() {
  std::vector<std::pair<std::string, std::string>> keys;
  std::string entry;
  std::istringstream lines(describe_keys());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[[")) entry = line.substr(2, line.find(']') - 2);
    if (!entry.empty() && line.starts_with("  ") && line[2] != ' ')
      keys.emplace_back(entry, line.substr(2, line.find(' ', 2) - 2));
  }
  return keys;
}

TEST(Keys, EachOfAClusterFileIsKnownToTheReader) {
  const auto keys = cluster_keys_of_help();
  EXPECT_EQ(keys.size(), 33U);
  for (const auto& [entry, key] : keys) {
    const std::string before =
        "[[fabric]]\nname = \"f\"\nkind = \"roce\"\ngbit_s = 1\nlatency_us = 1\n[[host]]\n" +
        std::string(entry == "host" ? "" : "name = \"h\"\n[[host.device]]\n");
    const std::string own = (entry == "host" ? "" : "[[" + entry + "]]\n") +
                            (key == "near" ? "name = \"n\"\nfabric = \"f\"\n" : "");
    const auto cluster = parse_cluster(before + own + key + " = 1970-01-01\n", "c");
    ASSERT_FALSE(cluster) << entry << " " << key;
    EXPECT_THAT(cluster.error().message(), HasSubstr("[[" + entry + "]] " + key + ": wants "));
  }
}

TEST(Keys, AllDefaultsTogetherAreAJob) {
  const auto job = parse_job("", "j", {}, "");
  ASSERT_TRUE(job) << job.error().message();
  EXPECT_EQ(job->train.shape.reduction_leaves, 8U);
  EXPECT_EQ(job->train.learning_rate.decay_steps, 100U);
  EXPECT_EQ(job->cluster.device_count(), 1U);
}

}  // namespace
}  // namespace holmes::actors

// Goal: no text makes the parsers of job and cluster files crash, hang or answer with anything but
// a checked value or one line that blames the text. Method: one input is read as both kinds of
// file; what follows a zero byte are --set overrides, one a line.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "fuzz_entry.hpp"
#include "holmes/actors/job_config.hpp"
#include "holmes/base/assert.hpp"

namespace {

using holmes::Error;
using holmes::ErrorCode;

void check(const Error& error) {
  HOLMES_ASSERT(error.code() == ErrorCode::kInvalidArgument, error.message().c_str());
  HOLMES_ASSERT(error.message().find(": ") != std::string::npos, "an error names its place");
  HOLMES_ASSERT(error.message().size() < 16 * 1024, "an error can be read");
}

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty() && result.size() < 16) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    result.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

void read_cluster(std::string_view text) {
  const auto cluster = holmes::actors::parse_cluster(text, "cluster.toml");
  if (!cluster) return check(cluster.error());
  HOLMES_ASSERT(holmes::partition::validate(*cluster), "a parsed cluster is valid");
  const auto again = holmes::actors::parse_cluster(holmes::actors::to_toml(*cluster), "again");
  // What it is written as may be longer than a file may be.
  HOLMES_ASSERT(again ? *again == *cluster : cluster->hosts.size() > 100,
                "a cluster comes back as it was");
  if (cluster->device_count() > 1000) return;  // inputs, not plans, are what this explores
  const auto plan =
      holmes::partition::plan(*cluster, {64, 1, 1, 1, 1, 1, 1, 1}, {1024, 1, 1024}, {});
  if (!plan) {
    HOLMES_ASSERT(plan.error().code() == ErrorCode::kInvalidArgument, "a plan blames its input");
    return;
  }
  HOLMES_ASSERT(holmes::partition::validate(*plan, *cluster, 64), "its plan is valid");
}

void read_job(std::string_view text, std::string_view overrides) {
  // A folder that does not exist: inputs must not read files by chance.
  const auto job =
      holmes::actors::parse_job(text, "job.toml", lines(overrides), "/nonexistent/holmes-fuzz");
  if (!job) return check(job.error());
  const auto plan = holmes::partition::plan(job->cluster, holmes::actors::model_cost(*job),
                                            job->train.shape, job->parallel);
  HOLMES_ASSERT(plan, "a parsed job can be planned");
  HOLMES_ASSERT(
      holmes::partition::validate(*plan, job->cluster, job->model.layers, job->model.tied()),
      "its plan is valid");
}

}  // namespace

std::vector<std::string> fuzz_samples() {
  std::vector<std::string> samples = {
      std::string("[train]\nsteps = 3\n") + '\0' + "train.steps=7\nrun.name=\"x y\"\nmodel.heads=5",
      "[model]\nlayers = 4\nsequence = 64\nvocabulary = 512\n[train]\nbatch = 16\nlr = 1e-3\n"
      "reduction_leaves = 4\ndecay_steps = 9\n[parallel]\nstrategy = \"holmes\"\nalpha = 1.05\n"
      "[transport]\nemulate = false\n[security]\n",
      "[[fabric]]\nname=\"x\"\nkind=\"loopback\"\ngbit_s=1\nlatency_us=1\n[[host]]\nname=\"h\"\n"
      "count=3\naddress=\"10.0.0.1\"\n[[host.device]]\ncount=2\ntflops=1.5\n[[host.nic]]\n"
      "name=\"n\"\nfabric=\"x\"\ncount=2\nlatency_us=3\n",
      "a.b.c = [[1, 2.5, true, \"x\"], {d.e = 1979-05-27T07:32:00Z}]\n[x.\"y z\".w]\n"
      "k = \"\"\"multi\nline\"\"\"\nl = 0xff\nm = inf\n[[x.list]]\n",
  };
  for (const char* name : {"two-clusters.toml", "clusters/two-clusters.toml",
                           "clusters/odd-two-sites.toml", "clusters/odd-two-roce-versions.toml"}) {
    std::ifstream file(std::filesystem::path(HOLMES_EXAMPLES) / name, std::ios::binary);
    HOLMES_ASSERT(file.is_open(), "the examples are there");
    samples.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return samples;
}

// The name is libFuzzer's.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = std::min(input.find('\0'), input.size());
  read_cluster(input.substr(0, zero));
  read_job(input.substr(0, zero), input.substr(std::min(zero + 1, size)));
  return 0;
}

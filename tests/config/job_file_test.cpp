// Goal: a job file and --set fill the job, and what is misspelt or of a wrong type is refused with
// its place and the nearest name. Method: parse small texts; load files from a folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holmes/actors/job_config.hpp"
#include "holmes/base/limits.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::actors {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Result<JobConfig> parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_job(text, "job.toml", overrides, "folder");
}

void expect_error(const Result<JobConfig>& job, const ::testing::Matcher<std::string>& message) {
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(job.error().message(), message);
}

TEST(JobFile, FillsALlama) {
  const auto job = parse(R"(
[model]
family = "llama"
heads = 8
channels = 128
kv_heads = 2
head_channels = 32
feed_forward = 344
norm_epsilon = 1e-6
rope_theta = 500000
rope_factor = 8
rope_low_factor = 1
rope_high_factor = 4
rope_original_sequence = 128
head = "tied"
)");
  ASSERT_TRUE(job) << job.error().message();
  const auto& model = job->model;
  EXPECT_EQ(model.family, model::Family::kLlama);
  EXPECT_EQ(model.head, model::Head::kTied);
  EXPECT_EQ(model.kv_heads, 2U);
  EXPECT_EQ(model.head_channels, 32U);
  EXPECT_EQ(model.feed_forward, 344U);
  EXPECT_EQ(model.norm_epsilon, 1e-6);
  EXPECT_EQ(model.rope, (model::Rope{500000, 8, 1, 4, 128}));
  // As a coordinator hands it to the agents.
  const auto again = parse_resolved_job(to_toml(*job), to_toml(job->cluster));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->model, model);
}

TEST(JobFile, FillsTheJob) {
  const auto job = parse(R"(
[run]
folder = "runs/x"
keep = 5
[model]
layers = 4
heads = 4
channels = 128
[data]
text = "bible.txt"
validation = 0.1
[train]
steps = 1000
batch = 16
micro_batch = 2
lr = 3e-3
lr_min = 1
clip_norm = 0
beta2 = 0.99
[parallel]
strategy = "megatron"
pipeline = 1
[transport]
emulate = false
[security]
)",
                         {"train.lr_min=2e-4"});
  ASSERT_TRUE(job) << job.error().message();
  EXPECT_EQ(job->run.folder, "runs/x");
  EXPECT_EQ(job->run.keep, 5U);
  EXPECT_EQ(job->model.layers, 4U);
  EXPECT_EQ(job->model.channels, 128U);
  EXPECT_EQ(job->data.text, "folder/bible.txt");
  EXPECT_DOUBLE_EQ(job->data.validation, 0.1);
  EXPECT_EQ(job->train.steps, 1000U);
  EXPECT_EQ(job->train.shape, (partition::JobShape{16, 2, 8}));
  EXPECT_EQ(job->train.sequence, job->model.sequence);
  EXPECT_FLOAT_EQ(job->train.learning_rate.peak, 3e-3F);
  EXPECT_FLOAT_EQ(job->train.learning_rate.floor, 2e-4F);
  EXPECT_EQ(job->train.learning_rate.decay_steps, 1000U);
  EXPECT_FLOAT_EQ(job->train.clip_norm, 0);
  EXPECT_FLOAT_EQ(job->train.optimizer.beta2, 0.99F);
  EXPECT_EQ(job->parallel.strategy, partition::Strategy::kMegatron);
  EXPECT_FALSE(job->transport.emulate);
  EXPECT_EQ(job->cluster.hosts.size(), 1U);
}

TEST(JobFile, MisspeltNamesGetASuggestion) {
  expect_error(parse("[train]\nsteps = 3\nmicro_bach = 2\n"),
               "job.toml:3: unknown key 'micro_bach' in [train]; did you mean 'micro_batch'?");
  expect_error(parse("\n[trian]\nsteps = 3\n"),
               "job.toml:2: unknown section [trian]; did you mean 'train'?");
  expect_error(parse("[model]\nbatch = 3\n"),
               "job.toml:2: unknown key 'batch' in [model]; it belongs to [train]");
  expect_error(parse("[train]\nzzzzzzzzzz = 3\n"),
               "job.toml:2: unknown key 'zzzzzzzzzz' in [train]");
  expect_error(parse("steps = 3\n"),
               "job.toml:1: key 'steps' stands outside its section; put it below [train]");
  expect_error(parse("[security]\ntls = true\n"), HasSubstr("this section has no keys yet"));
  expect_error(parse("train = 3\n"), HasSubstr("write [train] and its keys below"));
  expect_error(parse("[train]\n\"" + std::string(100000, 'x') + "\" = 1\n"),
               AllOf(HasSubstr("..."), ::testing::SizeIs(::testing::Lt(200U))));
}

TEST(JobFile, TheFirstErrorInTheFileIsTold) {
  expect_error(parse("[train]\nsteps = 0\nbatsh = 3\n[model]\nlayers = 0\n"),
               StartsWith("job.toml:2: [train] steps: 0 is out of range"));
}

TEST(JobFile, WrongTypesAndRanges) {
  expect_error(parse("[train]\nsteps = \"many\"\n"),
               "job.toml:2: [train] steps: wants an integer, not a string");
  expect_error(parse("[train]\nsteps = 1.5\n"), HasSubstr("wants an integer, not a number"));
  expect_error(parse("[train]\nsteps = 2020-01-01\n"), HasSubstr("not a date or time"));
  expect_error(parse("[train]\nlr = [1]\n"), HasSubstr("wants a number, not an array"));
  expect_error(parse("[train]\nlr = nan\n"), HasSubstr("out of range"));
  expect_error(parse("[train]\nlr = -1\n"), HasSubstr("must lie between 1e-12 and 100"));
  expect_error(parse("[train]\nbatch = 99999999999\n"), HasSubstr("between 1 and 1000000"));
  expect_error(parse("[transport]\nemulate = 1\n"), HasSubstr("wants true or false"));
  expect_error(parse("[run]\nname = \"a\\nb\"\n"), HasSubstr("control characters"));
  expect_error(parse("[run]\nfolder = \"\"\n"), HasSubstr("must not be empty"));
  expect_error(parse("[run]\nfolder = \"" + std::string(5000, 'x') + "\"\n"),
               HasSubstr("over 4096 bytes"));
  expect_error(parse("[parallel]\nstrategy = \"holms\"\n"),
               AllOf(HasSubstr("none of megatron, holmes"), HasSubstr("did you mean 'holmes'?")));
}

TEST(JobFile, TokenizersAreBytesOrFiles) {
  EXPECT_EQ(parse("")->data.tokenizer, "bytes");
  const auto named = parse("[data]\ntokenizer = \"t/tok.json\"\n");
  ASSERT_TRUE(named) << named.error().message();
  EXPECT_EQ(named->data.tokenizer, std::filesystem::absolute("folder/t/tok.json").string());
  const auto tokens = parse("[data]\ntokens = \"set\"\n");
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->data.tokens, "folder/set");
  EXPECT_EQ(tokens->data.tokenizer, "none");
}

TEST(JobFile, TextThatIsNotToml) {
  expect_error(parse("[train]\nsteps = = 3\n"), StartsWith("job.toml:2: "));
  expect_error(parse("[train]\nsteps = 3\nsteps = 4\n"), StartsWith("job.toml:3: "));
  // The library's own assertions, found by fuzzing.
  expect_error(parse("[run]\nkeep = 3\n[;]\nsteps = 4\n"), "job.toml:3: not valid TOML");
  expect_error(parse("[run]\nkeep = \u00e9\n"), StartsWith("job.toml:2: "));
  expect_error(parse("[run]\n\u0450 = 3\n"), StartsWith("job.toml:2: "));
  expect_error(parse("[run]\nkeep = 3 \u3100\n"), StartsWith("job.toml:2: "));
  expect_error(parse("[=]"), "job.toml:1: not valid TOML");
  expect_error(parse(std::string("a\0b", 3)), StartsWith("job.toml:1: "));
  expect_error(parse("\xff\xfe"), StartsWith("job.toml:1: "));
  expect_error(parse(std::string(limits::kConfigBytesMax + 1, '#')), HasSubstr("at most"));
}

TEST(JobFile, AbsurdNestingIsRefused) {
  std::string dotted = "[a";
  for (int i = 0; i < 100000; ++i) dotted += ".a";
  expect_error(parse(dotted + "]\n"), "job.toml:1: too many dots on one line");
  std::string tower;
  for (int i = 0; i < 1000; ++i) tower += "[\n";
  expect_error(parse("a = " + tower), StartsWith("job.toml:"));
}

TEST(Set, OverridesTheFile) {
  const auto job = parse("[train]\nsteps = 3\n",
                         {"train.steps=7", "run.folder=out/x=y", "run.name=\"two words\"",
                          "train.lr=1e-2", "parallel.strategy=megatron", "transport.emulate=false",
                          "data.text=other.txt", "train.steps=8"});
  ASSERT_TRUE(job) << job.error().message();
  EXPECT_EQ(job->train.steps, 8U);
  EXPECT_EQ(job->run.folder, "out/x=y");
  EXPECT_EQ(job->run.name, "two words");
  EXPECT_FLOAT_EQ(job->train.learning_rate.peak, 1e-2F);
  EXPECT_EQ(job->parallel.strategy, partition::Strategy::kMegatron);
  EXPECT_FALSE(job->transport.emulate);
  EXPECT_EQ(job->data.text, "other.txt");  // relative to the current folder
}

TEST(Set, MistakesAreNamed) {
  const auto with = [](const std::string& text) { return parse("", {text}); };
  expect_error(with("train.stepz=1"),
               "--set train.stepz: unknown key 'stepz' in [train]; did you mean 'steps'?");
  expect_error(with("trian.steps=1"),
               "--set trian.steps: unknown section [trian]; did you mean 'train'?");
  expect_error(with("steps=1"), HasSubstr("write --set section.key=value"));
  expect_error(with("train.steps"), HasSubstr("write --set section.key=value"));
  expect_error(with(""), HasSubstr("write --set section.key=value"));
  expect_error(with("train.steps=1x"), "--set train.steps: wants an integer, not '1x'");
  expect_error(with("train.steps="), HasSubstr("wants an integer, not ''"));
  expect_error(with("train.steps=0"), HasSubstr("--set train.steps: 0 is out of range"));
  expect_error(with("train.steps=99999999999999999999"), HasSubstr("wants an integer"));
  expect_error(with("train.lr=inf"), HasSubstr("out of range"));
  expect_error(with("transport.emulate=yes"), HasSubstr("wants true or false, not 'yes'"));
  expect_error(with("run.name=a\nb"), HasSubstr("control characters"));
}

class LoadJob : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
};

TEST_F(LoadJob, FindsTextAndClusterBesideTheFile) {
  folder_.write("bible.txt", "In the beginning");
  std::filesystem::create_directories(folder_.path() / "c");
  std::filesystem::create_directories(folder_.path() / "jobs");
  folder_.write("c/one.toml", "[[host]]\nname = \"h\"\n[[host.device]]\nthreads = 2\n");
  const auto file = folder_.write(
      "jobs/job.toml", "[data]\ntext = \"../bible.txt\"\n[cluster]\nfile = \"../c/one.toml\"\n");
  const auto job = load_job({file, {}});
  ASSERT_TRUE(job) << job.error().message();
  EXPECT_EQ(job->data.text, folder_.path() / "bible.txt");
  EXPECT_EQ(job->cluster.hosts.at(0).devices.at(0).threads, 2U);
}

TEST_F(LoadJob, MissingThingsAreNamed) {
  const auto job = [&](const std::string& text) {
    return load_job({folder_.write("job.toml", text), {}});
  };
  expect_error(job("[data]\ntokens = \"set\"\n"), HasSubstr("there is no file"));
  expect_error(job("[data]\ntokens = \"set\"\ntext = \"a\"\n"), HasSubstr("are both set"));
  expect_error(job("[data]\ntokenizer = \"none\"\ntext = \"a\"\n"), HasSubstr("needs a tokenizer"));
  expect_error(load_job({folder_.path() / "no.toml", {}}), HasSubstr("no.toml: no such file"));
  expect_error(load_job({folder_.path(), {}}), HasSubstr("is not a regular file"));
  expect_error(job(""), HasSubstr("data.text is not set"));
  expect_error(job("[data]\ntext = \"no.txt\"\n"),
               AllOf(HasSubstr("job.toml:2: data.text: "), HasSubstr("no.txt does not exist")));
  folder_.write("empty.txt", "");
  expect_error(job("[data]\ntext = \"empty.txt\"\n"), HasSubstr("empty.txt is empty"));
  expect_error(job("[data]\ntext = \".\"\n"), HasSubstr("is not a regular file"));
  expect_error(job("[cluster]\nfile = \"no.toml\"\n"),
               AllOf(HasSubstr("job.toml:2: [cluster] file: "), HasSubstr("no such file")));
  folder_.write("bad.toml", "[[host]]\n");
  expect_error(job("[cluster]\nfile = \"bad.toml\"\n"),
               HasSubstr("bad.toml:1: [[host]] needs the key 'name'"));
  folder_.write("large.toml", std::string(limits::kConfigBytesMax + 1, '\n'));
  expect_error(job("[cluster]\nfile = \"large.toml\"\n"), HasSubstr("at most"));
}

TEST_F(LoadJob, TheDemosTextIsMadeByTheDemo) {
  const auto file = folder_.write("job.toml", "[data]\ntext = \"data/bible.txt\"\n");
  expect_error(load_job({file, {}}), HasSubstr("scripts/demo"));
  EXPECT_TRUE(load_job({file, {}, {}, false}));
}

TEST_F(LoadJob, OtherMachinesArePlannedButNotTrainedOn) {
  const std::string fabric =
      "[[fabric]]\nname = \"e\"\nkind = \"ethernet\"\ngbit_s = 1\nlatency_us = 9\n";
  const auto job = [&](const std::string& host, const std::string& nic, bool trains) {
    folder_.write("c.toml", fabric + "[[host]]\nname = \"h\"\n" + host +
                                "[[host.device]]\n[[host.nic]]\nname = \"n\"\nfabric = \"e\"\n" +
                                nic);
    folder_.write("t.txt", "text");
    return load_job({folder_.write("j.toml",
                                   "[data]\ntext = \"t.txt\"\n[cluster]\nfile = "
                                   "\"c.toml\"\n"),
                     {},
                     {},
                     trains});
  };
  for (const char* here : {"127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]"}) {
    const std::string line = std::string("address = \"") + here + "\"\n";
    EXPECT_TRUE(job(line, line, true)) << here;
  }
  EXPECT_TRUE(job("", "", true));
  for (const char* there : {"192.168.7.7", "10.0.0.1", "node7", "fe80::1", "128.0.0.1"}) {
    const std::string line = std::string("address = \"") + there + "\"\n";
    EXPECT_TRUE(job(line, line, false)) << there;
    expect_error(job(line, "", true),
                 AllOf(HasSubstr("c.toml:8: [[host]] address: '" + std::string(there)),
                       HasSubstr("leave address out")));
    expect_error(job("", line, true), HasSubstr("c.toml:12: [[host.nic]] address: "));
  }
}

TEST(JobFile, AClusterFileIsCalledOne) {
  for (const char* entry : {"fabric", "cluster", "host", "link"}) {
    expect_error(parse("[[" + std::string(entry) + "]]\nname = \"x\"\n"),
                 HasSubstr("belongs to a cluster file"));
  }
}

}  // namespace
}  // namespace holmes::actors

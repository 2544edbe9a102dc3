// Goal: a checkpoint is whole or absent, gives back every bit at any layout, and whatever is wrong
// with one is refused with the name of the file and tensor.
// Method: a small made-up model written as 2 stages x 2 owners, read in other cuts; then files that
// are missing, cut, changed, foreign or newer, and disks that are full.
#include "holmes/model/checkpoint.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holmes/base/random.hpp"
#include "small_disk.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::model {
namespace {

using ::holmes::testing::FileSizeLimit;
using ::holmes::testing::read_file;
using ::holmes::testing::SmallDisk;
using ::holmes::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

JobConstants job_constants() {
  JobConstants job;
  job.model = {.layers = 2,
               .heads = 1,
               .channels = 4,
               .sequence = 5,
               .vocabulary = 7,
               .vocabulary_padding = 8};
  job.seed = 0xFFFFFFFFFFFFFFFFULL;
  job.batch = 8;
  job.micro_batch = 2;
  job.sequence = 5;
  job.reduction_leaves = 4;
  job.tokenizer = "bytes";
  job.validation = 0.1;
  job.data_hash = "0123456789abcdef";
  job.isa = "avx2";
  return job;
}

struct LayerState {
  std::vector<ParameterSpec> specs;
  std::vector<float> values;
  std::vector<float> exp_avg;
  std::vector<float> exp_avg_sq;
};

ParameterSpec& append(LayerState& layer, const std::string& name, std::vector<std::size_t> shape) {
  ParameterSpec spec;
  spec.name = name;
  spec.count = 1;
  for (const auto extent : shape) spec.count *= extent;
  spec.shape = std::move(shape);
  spec.offset = layer.values.size();
  layer.specs.push_back(spec);
  layer.values.resize(spec.offset + spec.count);
  return layer.specs.back();
}

/// Odd values on purpose: denormals, negative zero, infinity and NaN are bits like any others.
void fill(LayerState& layer, std::uint64_t seed) {
  Random random(seed);
  const auto value = [&] { return static_cast<float>(random.uniform() * 2 - 1); };
  layer.exp_avg.resize(layer.values.size());
  layer.exp_avg_sq.resize(layer.values.size());
  for (std::size_t i = 0; i < layer.values.size(); ++i) {
    layer.values[i] = value();
    layer.exp_avg[i] = value();
    layer.exp_avg_sq[i] = value();
  }
  layer.values[0] = -0.0F;
  layer.values[1] = 1e-45F;
  layer.exp_avg[1] = std::numeric_limits<float>::infinity();
  layer.exp_avg_sq[2] = std::numeric_limits<float>::quiet_NaN();
}

/// Embedding, two blocks, head.
std::vector<LayerState> make_model() {
  std::vector<LayerState> layers(4);
  append(layers[0], "wte.weight", {8, 4}).tied_copy = true;
  append(layers[0], "wpe.weight", {5, 4});
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string prefix = "h." + std::to_string(i) + ".";
    append(layers[i + 1], prefix + "ln_1.weight", {4});
    append(layers[i + 1], prefix + "mlp.c_fc.weight", {4, 16});
    append(layers[i + 1], prefix + "mlp.c_fc.bias", {16});
  }
  append(layers[3], "ln_f.weight", {4});
  append(layers[3], "wte.weight", {8, 4});
  for (std::size_t i = 0; i < layers.size(); ++i) fill(layers[i], i + 1);
  // The copy holds what it copies, and has no moments.
  std::copy_n(layers[3].values.begin() + 4, 32, layers[0].values.begin());
  std::fill_n(layers[0].exp_avg.begin(), 32, 0.0F);
  std::fill_n(layers[0].exp_avg_sq.begin(), 32, 0.0F);
  return layers;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  const auto x = std::as_bytes(a);
  const auto y = std::as_bytes(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

/// Two stages of two layers; in each the first owner has the first `cut` share of every layer.
Result<std::vector<FileSummary>> write_parts(const CheckpointWriter& writer,
                                             const std::vector<LayerState>& layers,
                                             double cut = 0.3) {
  std::vector<FileSummary> files;
  for (std::uint32_t stage = 0; stage < 2; ++stage) {
    std::vector<LayerValues> values;
    std::vector<MomentValues> owned[2];
    for (std::uint32_t i = 2 * stage; i < 2 * stage + 2; ++i) {
      const auto& layer = layers[i];
      values.push_back({layer.specs, layer.values});
      const std::span<const float> avg(layer.exp_avg);
      const std::span<const float> avg_sq(layer.exp_avg_sq);
      const auto first = static_cast<std::size_t>(cut * static_cast<double>(avg.size()));
      owned[0].push_back({layer.specs, 0, avg.first(first), avg_sq.first(first)});
      owned[1].push_back({layer.specs, first, avg.subspan(first), avg_sq.subspan(first)});
    }
    HOLMES_TRY_ASSIGN(auto model, writer.write_model_part({stage, 2}, values));
    files.push_back(model);
    for (std::uint32_t owner = 0; owner < 2; ++owner) {
      HOLMES_TRY_ASSIGN(auto part,
                        writer.write_optimizer_part({2 * stage + owner, 4}, owned[owner]));
      files.push_back(part);
    }
  }
  return files;
}

Result<fs::path> save(const fs::path& root, std::uint64_t step, std::uint32_t keep = 3,
                      const std::vector<LayerState>& layers = make_model()) {
  HOLMES_TRY_ASSIGN(const auto writer, CheckpointWriter::begin(root, Step(step)));
  HOLMES_TRY_ASSIGN(const auto files, write_parts(writer, layers));
  return writer.publish(job_constants(), files, keep);
}

TEST(CheckpointWriter, PutsTheTokenizerBesideTheModel) {
  const TemporaryFolder folder;
  const auto writer = CheckpointWriter::begin(folder.path(), Step(1));
  ASSERT_TRUE(writer);
  const auto files = write_parts(*writer, make_model());
  ASSERT_TRUE(files);
  const std::vector<TokenizerFile> tokenizer = {{"tokenizer.json", "{}"}};
  const auto published = writer->publish(job_constants(), *files, 1, tokenizer);
  ASSERT_TRUE(published);
  EXPECT_EQ(read_file(*published / "tokenizer.json"), "{}");
  EXPECT_TRUE(Checkpoint::open(*published, {nullptr, true}));
}

std::string error_of(const fs::path& folder, const CheckpointOptions& options, ErrorCode code) {
  const auto opened = Checkpoint::open(folder, options);
  if (opened) return "no error";
  EXPECT_EQ(opened.error().code(), code) << opened.error().message();
  return opened.error().message();
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Checkpoint, HoldsTheDocumentedFiles) {
  const TemporaryFolder root;
  const auto folder = save(root.path() / "checkpoints", 100);
  ASSERT_TRUE(folder) << folder.error().message();
  EXPECT_EQ(*folder, root.path() / "checkpoints/step-00000100");
  EXPECT_THAT(
      names_in(*folder),
      ElementsAre("config.json", "manifest.json", "model-00001-of-00002.safetensors",
                  "model-00002-of-00002.safetensors", "model.safetensors.index.json",
                  "optimizer-00001-of-00004.safetensors", "optimizer-00002-of-00004.safetensors",
                  "optimizer-00003-of-00004.safetensors", "optimizer-00004-of-00004.safetensors"));
  EXPECT_THAT(read_file(*folder / "config.json"),
              AllOf(HasSubstr("\"model_type\": \"gpt2\""), HasSubstr("\"vocab_size\": 8"),
                    HasSubstr("\"n_embd\": 4"), HasSubstr("\"n_layer\": 2"),
                    HasSubstr("\"activation_function\": \"gelu_new\"")));
  EXPECT_THAT(read_file(*folder / "model.safetensors.index.json"),
              AllOf(HasSubstr("\"h.1.mlp.c_fc.weight\": \"model-00002-of-00002.safetensors\""),
                    HasSubstr("\"wte.weight\": \"model-00002-of-00002.safetensors\""),
                    HasSubstr("\"total_size\": 896")));
}

TEST(Checkpoint, GivesBackEveryBitAtOneStage) {
  const TemporaryFolder root;
  const auto layers = make_model();
  const auto folder = save(root.path(), 7);
  ASSERT_TRUE(folder);
  const JobConstants job = job_constants();
  const auto checkpoint = Checkpoint::open(*folder, {.job = &job, .verify_hashes = true});
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->step(), Step(7));
  EXPECT_EQ(checkpoint->job(), job);
  for (const auto& layer : layers) {
    std::vector<float> values(layer.values.size());
    std::vector<float> avg(values.size());
    std::vector<float> avg_sq(values.size());
    ASSERT_TRUE(checkpoint->read_layer(layer.specs, values));
    ASSERT_TRUE(checkpoint->read_layer_moments(layer.specs, 0, avg, avg_sq));
    EXPECT_TRUE(same_bits(values, layer.values));
    EXPECT_TRUE(same_bits(avg, layer.exp_avg));
    EXPECT_TRUE(same_bits(avg_sq, layer.exp_avg_sq));
  }
}

TEST(Checkpoint, GivesBackEveryBitInAnyCut) {
  const TemporaryFolder root;
  const auto layers = make_model();
  const auto folder = save(root.path(), 7);
  ASSERT_TRUE(folder);
  const auto checkpoint = Checkpoint::open(*folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  for (const auto& layer : layers) {
    const std::size_t count = layer.values.size();
    for (std::size_t owners = 1; owners <= 5; ++owners) {
      for (std::size_t owner = 0; owner < owners; ++owner) {
        const std::size_t first = count * owner / owners;
        const std::size_t length = count * (owner + 1) / owners - first;
        std::vector<float> avg(length);
        std::vector<float> avg_sq(length);
        ASSERT_TRUE(checkpoint->read_layer_moments(layer.specs, first, avg, avg_sq));
        EXPECT_TRUE(same_bits(avg, std::span(layer.exp_avg).subspan(first, length)));
        EXPECT_TRUE(same_bits(avg_sq, std::span(layer.exp_avg_sq).subspan(first, length)));
      }
    }
    const auto& tensor = layer.specs[1];
    for (std::size_t first = 0; first < tensor.count; first += 3) {
      std::vector<float> values(std::min<std::size_t>(3, tensor.count - first));
      ASSERT_TRUE(checkpoint->read_parameters(tensor.name, first, values));
      EXPECT_TRUE(
          same_bits(values, std::span(layer.values).subspan(tensor.offset + first, values.size())));
    }
  }
}

TEST(Checkpoint, RefusesReadsOfWhatItDoesNotHave) {
  const TemporaryFolder root;
  const auto folder = save(root.path(), 7);
  ASSERT_TRUE(folder);
  const auto checkpoint = Checkpoint::open(*folder);
  ASSERT_TRUE(checkpoint);
  std::vector<float> values(10);
  EXPECT_FALSE(checkpoint->read_parameters("h.9.ln_1.weight", 0, values));
  EXPECT_FALSE(checkpoint->read_parameters("h.0.ln_1.weight", 0, values));
  EXPECT_FALSE(checkpoint->read_moments("h.0.ln_1.weight", ~std::uint64_t{0}, values, values));
  LayerState other;
  append(other, "h.0.mlp.c_fc.weight", {16, 4});
  const auto shape = checkpoint->read_layer(other.specs, other.values);
  ASSERT_FALSE(shape);
  EXPECT_THAT(shape.error().message(), HasSubstr("h.0.mlp.c_fc.weight: has another shape"));
}

TEST(Checkpoint, SeveralProcessesWriteTheirParts) {
  const TemporaryFolder root;
  const auto begun = CheckpointWriter::begin(root.path(), Step(3));
  const auto joined = CheckpointWriter::join(root.path(), Step(3));
  ASSERT_TRUE(begun && joined);
  const auto files = write_parts(*joined, make_model());
  ASSERT_TRUE(files);
  EXPECT_TRUE(begun->publish(job_constants(), *files, 1));
}

TEST(Checkpoint, JoiningAnInterruptedOneLeavesNoneOfItsParts) {
  const TemporaryFolder root;
  const auto layers = make_model();
  const auto interrupted = CheckpointWriter::join(root.path(), Step(3));
  ASSERT_TRUE(interrupted);
  const std::vector<LayerValues> other = {{layers[2].specs, layers[2].values}};
  ASSERT_TRUE(interrupted->write_model_part({1, 2}, other));  // will be written again
  ASSERT_TRUE(interrupted->write_model_part({4, 5}, other));  // of a layout that is no more
  const auto joined = CheckpointWriter::join(root.path(), Step(3));
  ASSERT_TRUE(joined);
  const auto files = write_parts(*joined, layers);
  ASSERT_TRUE(files);
  const auto folder = joined->publish(job_constants(), *files, 1);
  ASSERT_TRUE(folder) << folder.error().message();
  EXPECT_FALSE(fs::exists(*folder / "model-00005-of-00005.safetensors"));
  EXPECT_TRUE(Checkpoint::open(*folder, {.verify_hashes = true}));
}

TEST(Checkpoint, DiscardsWhatInterruptedWritersLeft) {
  const TemporaryFolder root;
  ASSERT_TRUE(save(root.path(), 5));
  ASSERT_TRUE(CheckpointWriter::begin(root.path(), Step(9)));
  ASSERT_TRUE(CheckpointWriter::join(root.path(), Step(2)));
  discard_unfinished(root.path());
  EXPECT_THAT(names_in(root.path()), ElementsAre("step-00000005"));
  discard_unfinished(root.path() / "none");
}

TEST(Checkpoint, AnInterruptedOneLeavesTheOldTheLatest) {
  const TemporaryFolder root;
  const auto old = save(root.path(), 10);
  ASSERT_TRUE(old);
  // Killed at any time before the rename: after the first file, or just before publishing.
  const auto interrupted = CheckpointWriter::begin(root.path(), Step(20));
  ASSERT_TRUE(interrupted);
  EXPECT_EQ(*find_latest(root.path()), *old);
  ASSERT_TRUE(write_parts(*interrupted, make_model()));
  EXPECT_EQ(*find_latest(root.path()), *old);
  EXPECT_TRUE(Checkpoint::open(*find_latest(root.path()), {.verify_hashes = true}));
  // The next one clears away what was left.
  ASSERT_TRUE(save(root.path(), 30));
  EXPECT_THAT(names_in(root.path()), ElementsAre("step-00000010", "step-00000030"));
}

TEST(Checkpoint, AFolderWithoutAManifestDoesNotHideTheLatest) {
  const TemporaryFolder root;
  const auto old = save(root.path(), 10);
  ASSERT_TRUE(old);
  fs::create_directory(root.path() / "step-00000020");
  EXPECT_EQ(*find_latest(root.path()), *old);
}

TEST(Checkpoint, WhatIsNotOursIsFound) {
  const TemporaryFolder root;
  EXPECT_EQ(find_foreign(root.path() / "none"), std::nullopt);
  ASSERT_TRUE(save(root.path(), 10));
  fs::create_directory(root.path() / "step-00000020.tmp");
  EXPECT_EQ(find_foreign(root.path()), std::nullopt);
  fs::create_directory(root.path() / "step-00000020");
  EXPECT_EQ(find_foreign(root.path()), root.path() / "step-00000020");
}

TEST(Checkpoint, AbandoningLeavesNothing) {
  const TemporaryFolder root;
  const auto writer = CheckpointWriter::begin(root.path(), Step(20));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(write_parts(*writer, make_model()));
  writer->abandon();
  EXPECT_TRUE(fs::is_empty(root.path()));
  const auto none = find_latest(root.path());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kNotFound);
}

TEST(Checkpoint, KeepsTheNewest) {
  const TemporaryFolder root;
  fs::create_directory(root.path() / "step-mine");  // not ours
  for (const std::uint64_t step : {5, 10, 15, 20}) ASSERT_TRUE(save(root.path(), step, 2));
  EXPECT_THAT(names_in(root.path()), ElementsAre("step-00000015", "step-00000020", "step-mine"));
  // Newest by number, not by name or time; a newer one that a resumed job left behind stays.
  ASSERT_TRUE(save(root.path(), 100'000'000, 2));
  ASSERT_TRUE(save(root.path(), 17, 2));
  EXPECT_THAT(names_in(root.path()),
              ElementsAre("step-00000017", "step-00000020", "step-100000000", "step-mine"));
  EXPECT_EQ(find_latest(root.path())->filename(), "step-100000000");
}

TEST(Checkpoint, ReplacesOneOfTheSameStep) {
  const TemporaryFolder root;
  auto layers = make_model();
  ASSERT_TRUE(save(root.path(), 5, 3, layers));
  layers[1].values[0] = 42.0F;
  const auto folder = save(root.path(), 5, 3, layers);
  ASSERT_TRUE(folder) << folder.error().message();
  EXPECT_THAT(names_in(root.path()), ElementsAre("step-00000005"));
  const auto checkpoint = Checkpoint::open(*folder, {.verify_hashes = true});
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  float value = 0;
  ASSERT_TRUE(checkpoint->read_parameters("h.0.ln_1.weight", 0, {&value, 1}));
  EXPECT_EQ(value, 42.0F);
}

TEST(Checkpoint, PublishRefusesWhatIsNotWhole) {
  const TemporaryFolder root;
  const auto publish = [&](std::size_t left_out) {
    const auto writer = CheckpointWriter::begin(root.path(), Step(5));
    auto files = *write_parts(*writer, make_model());
    files.erase(files.begin() + static_cast<std::ptrdiff_t>(left_out));
    const auto published = writer->publish(job_constants(), files, 3);
    EXPECT_TRUE(fs::is_empty(root.path()));
    return published ? std::string("no error") : published.error().message();
  };
  EXPECT_THAT(publish(0), HasSubstr("model-00001-of-00002.safetensors is not listed"));
  EXPECT_THAT(publish(2), HasSubstr("optimizer-00002-of-00004.safetensors is not listed"));

  // Owners that leave a gap between their shards.
  const auto writer = CheckpointWriter::begin(root.path(), Step(5));
  const auto layers = make_model();
  auto files = *write_parts(*writer, layers);
  const std::span<const float> avg(layers[1].exp_avg);
  const std::vector<MomentValues> short_part = {{layers[1].specs, 0, avg.first(10), avg.first(10)}};
  files[1] = *writer->write_optimizer_part({0, 4}, short_part);
  const auto published = writer->publish(job_constants(), files, 3);
  ASSERT_FALSE(published);
  EXPECT_THAT(published.error().message(), HasSubstr("no optimizer file has exp_avg:h.0.mlp.c_fc."
                                                     "weight:6+"));
}

TEST(Checkpoint, RefusesOtherJobs) {
  const TemporaryFolder root;
  const auto folder = save(root.path(), 5);
  ASSERT_TRUE(folder);
  const auto refused = [&](const std::function<void(JobConstants&)>& change) {
    JobConstants job = job_constants();
    change(job);
    return error_of(*folder, {.job = &job}, ErrorCode::kInvalidArgument);
  };
  EXPECT_THAT(refused([](auto& job) { job.seed = 3; }),
              AllOf(HasSubstr(folder->string()), HasSubstr("its seed is 18446744073709551615"),
                    HasSubstr("this job's is 3")));
  EXPECT_THAT(refused([](auto& job) { job.model.channels = 8; }),
              HasSubstr("its model.channels is 4, this job's is 8"));
  EXPECT_THAT(refused([](auto& job) { job.batch = 9; }), HasSubstr("its batch is 8"));
  EXPECT_THAT(refused([](auto& job) { job.micro_batch = 1; }), HasSubstr("its micro_batch is 2"));
  EXPECT_THAT(refused([](auto& job) { job.sequence = 4; }), HasSubstr("its sequence is 5"));
  EXPECT_THAT(refused([](auto& job) { job.reduction_leaves = 2; }),
              HasSubstr("its reduction_leaves is 4"));
  EXPECT_THAT(refused([](auto& job) { job.validation = 0.2; }),
              HasSubstr("its validation is 0.1, this job's is 0.2"));
  EXPECT_THAT(refused([](auto& job) { job.data_hash = "ff"; }), HasSubstr("its data_hash is"));
  EXPECT_THAT(refused([](auto& job) { job.isa = "avx512"; }),
              AllOf(HasSubstr("instruction set avx2"), HasSubstr("resume on a machine with avx2")));
}

void replace_in(const fs::path& path, const std::string& from, const std::string& to) {
  std::string text = read_file(path);
  const auto at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Checkpoint, SaysWhichFamilyItIsOf) {
  const TemporaryFolder root;
  JobConstants job = job_constants();
  job.model.family = Family::kLlama;
  job.model.norm_epsilon = 1e-6;
  job.model.rope = {.theta = 500000, .factor = 8, .original_sequence = 128};
  const auto writer = *CheckpointWriter::begin(root.path(), Step(3));
  const auto folder = writer.publish(job, *write_parts(writer, make_model()), 3);
  ASSERT_TRUE(folder) << folder.error().message();
  const auto opened = Checkpoint::open(*folder, {&job});
  ASSERT_TRUE(opened) << opened.error().message();
  const auto& model = opened->job().model;
  EXPECT_EQ(model.family, Family::kLlama);
  EXPECT_EQ(model.norm_epsilon, job.model.norm_epsilon);
  EXPECT_EQ(model.rope, job.model.rope);
  EXPECT_EQ(model.feed_forward, job.model.feed_forward_width());
  EXPECT_FALSE(model.tied());
  // Programs that know only GPT-2 must not take it for one.
  EXPECT_THAT(read_file(*folder / "manifest.json"), HasSubstr("\"version\": 2"));

  JobConstants other = job;
  other.model.head_channels = 2;
  auto refused = Checkpoint::open(*folder, {&other});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("its model.head_channels is 4, this job's is 2"));
  other = job_constants();
  refused = Checkpoint::open(*folder, {&other});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("its model.family is \"llama\", this job's is \"gpt2\""));
}

TEST(Checkpoint, RefusesNewerFormatsAndDamagedManifests) {
  const TemporaryFolder root;
  const auto folder = save(root.path(), 5);
  ASSERT_TRUE(folder);
  const auto manifest = *folder / "manifest.json";
  const std::string good = read_file(manifest);
  const auto changed = [&](const std::string& from, const std::string& to, ErrorCode code) {
    std::ofstream(manifest, std::ios::binary) << good;
    replace_in(manifest, from, to);
    const auto message = error_of(*folder, {}, code);
    EXPECT_THAT(message, HasSubstr(manifest.string()));
    return message;
  };
  EXPECT_THAT(changed("\"version\": 1", "\"version\": 3", ErrorCode::kInvalidArgument),
              HasSubstr("version 3, this program reads up to 2"));
  EXPECT_THAT(changed("holmes-checkpoint", "else", ErrorCode::kCorrupt), HasSubstr("no manifest"));
  EXPECT_THAT(changed("\"seed\"", "\"sead\"", ErrorCode::kCorrupt),
              HasSubstr("\"seed\" is missing"));
  EXPECT_THAT(changed("\"batch\": 8", "\"batch\": -8", ErrorCode::kCorrupt),
              HasSubstr("\"batch\""));
  EXPECT_THAT(changed("\"batch\": 8", "\"batch\": 4294967296", ErrorCode::kCorrupt),
              HasSubstr("\"batch\""));
  EXPECT_THAT(changed("\"heads\": 1", "\"heads\": 3", ErrorCode::kCorrupt), HasSubstr("heads"));
  EXPECT_THAT(changed("model-00001-of", "../l-00001-of", ErrorCode::kCorrupt),
              HasSubstr("no name of a checkpoint's file"));
  EXPECT_THAT(changed("{", "[", ErrorCode::kCorrupt), HasSubstr("not valid JSON"));
  for (std::size_t size = 0; size < good.size() - 1; size += 7) {
    std::ofstream(manifest, std::ios::binary) << good.substr(0, size);
    EXPECT_THAT(error_of(*folder, {}, ErrorCode::kCorrupt), HasSubstr("manifest.json")) << size;
  }
  fs::remove(manifest);
  EXPECT_THAT(error_of(*folder, {}, ErrorCode::kCorrupt), HasSubstr("manifest.json"));
}

TEST(Checkpoint, NamesAMissingFile) {
  const TemporaryFolder root;
  const auto folder = save(root.path(), 5);
  ASSERT_TRUE(folder);
  fs::remove(*folder / "model-00002-of-00002.safetensors");
  EXPECT_THAT(error_of(*folder, {}, ErrorCode::kCorrupt),
              AllOf(HasSubstr("model-00002-of-00002.safetensors"), HasSubstr("does not exist")));
  EXPECT_THAT(error_of(root.path() / "step-00000009", {}, ErrorCode::kNotFound),
              HasSubstr("step-00000009 does not exist"));
}

TEST(Checkpoint, NamesFileAndTensorOfATruncation) {
  const TemporaryFolder root;
  const auto folder = save(root.path(), 5);
  ASSERT_TRUE(folder);
  const auto part = *folder / "model-00001-of-00002.safetensors";
  const std::string original = read_file(part);
  fs::resize_file(part, fs::file_size(part) - 1);
  EXPECT_THAT(error_of(*folder, {}, ErrorCode::kCorrupt),
              AllOf(HasSubstr(part.string()), HasSubstr("tensor h.0.mlp.c_fc.bias: is cut short"),
                    HasSubstr("move its folder away to resume from the one before")));
  std::ofstream(part, std::ios::binary) << original;
  // All files, each cut anywhere: never accepted.
  for (const auto& name : names_in(*folder)) {
    if (!name.ends_with(".safetensors")) continue;
    const std::string whole = read_file(*folder / name);
    for (std::size_t size = 0; size < whole.size(); size += 41) {
      std::ofstream(*folder / name, std::ios::binary) << whole.substr(0, size);
      EXPECT_THAT(error_of(*folder, {}, ErrorCode::kCorrupt), HasSubstr(name));
    }
    std::ofstream(*folder / name, std::ios::binary) << whole;
  }
}

TEST(Checkpoint, FindsAFlippedByteAnywhere) {
  const TemporaryFolder root;
  const auto folder = save(root.path(), 5);
  ASSERT_TRUE(folder);
  const auto part = *folder / "optimizer-00003-of-00004.safetensors";
  const std::string good = read_file(part);
  for (std::size_t at = 0; at < good.size(); at += 13) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    std::ofstream(part, std::ios::binary) << bad;
    EXPECT_THAT(error_of(*folder, {.verify_hashes = true}, ErrorCode::kCorrupt),
                HasSubstr(part.filename().string()))
        << at;
  }
}

TEST(Checkpoint, FindsFilesOfAnotherCheckpoint) {
  const TemporaryFolder root;
  auto layers = make_model();
  const auto first = save(root.path(), 5, 3, layers);
  layers[2].values[3] += 1;
  const auto second = save(root.path(), 6, 3, layers);
  ASSERT_TRUE(first && second);
  const char* name = "model-00002-of-00002.safetensors";
  fs::copy_file(*second / name, *first / name, fs::copy_options::overwrite_existing);
  EXPECT_THAT(error_of(*first, {.verify_hashes = true}, ErrorCode::kCorrupt),
              AllOf(HasSubstr(name), HasSubstr("its content has changed")));
}

std::string save_without_room(const fs::path& root) {
  const auto saved = save(root, 6);
  if (saved) return "no error";
  EXPECT_EQ(saved.error().code(), ErrorCode::kOutOfResources);
  return saved.error().message();
}

TEST(Checkpoint, AFullDiskLeavesTheOldOne) {
  const TemporaryFolder root;
  {
    ASSERT_TRUE(save(root.path(), 5));
    const FileSizeLimit limit(600);  // less than a model file
    EXPECT_THAT(save_without_room(root.path()),
                AllOf(HasSubstr("step-00000006"), HasSubstr("the file needs")));
    EXPECT_EQ(find_latest(root.path())->filename(), "step-00000005");
    EXPECT_TRUE(Checkpoint::open(*find_latest(root.path()), {.verify_hashes = true}));
  }
  const TemporaryFolder small;
  const SmallDisk disk(small.path(), 60 * 1024);  // nine files of a page each fit, eighteen do not
  if (!disk.mounted()) {
    std::cout << "not root: only the limit on file sizes was tried, not a full tmpfs\n";
    return;
  }
  ASSERT_TRUE(save(small.path(), 5));
  EXPECT_THAT(save_without_room(small.path()), HasSubstr("the disk is full"));
  EXPECT_EQ(find_latest(small.path())->filename(), "step-00000005");
  EXPECT_TRUE(Checkpoint::open(*find_latest(small.path()), {.verify_hashes = true}));
}

}  // namespace
}  // namespace holmes::model

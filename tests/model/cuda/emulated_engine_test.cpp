// Goal: the engine that drives a GPU is right as far as that shows without one: the whole engine,
// with the GPU's kernels, on an emulated device. Also what no GPU shows on demand: memory that runs
// out, and a device that fails in the middle.
#include "cuda/engine.hpp"
#include "cuda/memory_pool.hpp"
#include "emulated_device.hpp"
#include "engine_suite.hpp"
#include "holmes/model/cuda.hpp"

namespace holmes::model {

namespace {

std::unique_ptr<Engine> emulated(cuda::Emulation& emulation) {
  return cuda::make_device_engine(std::make_unique<cuda::EmulatedDevice>(emulation));
}

}  // namespace

Result<std::unique_ptr<Engine>> engine_under_test() {
  static cuda::Emulation emulation;  // of all engines of the suite: nobody looks at it
  emulation.order = cuda::ThreadOrder::kDescending;
  emulation.shares_memory = !emulation.shares_memory;  // as real ones do, or do not
  return emulated(emulation);
}

namespace {

const GptConfig kConfig = {2, 2, 32, 64, 64, 64};
const MicroBatchShape kShape = {2, 64};

float pass(WholeModel& model) {
  const std::vector<std::int32_t> tokens(model.token_count(), 3);
  const float loss = model.forward(tokens, tokens);
  model.backward(tokens, tokens, 1);
  return loss;
}

TEST(EmulatedEngine, AllocatesAndKeepsTheSameMemoryEveryTime) {
  cuda::Emulation emulation;
  {
    const auto engine = emulated(emulation);
    WholeModel model(kConfig, kShape, *engine);
    model.initialise_all(1);
    pass(model);
    const auto allocations = emulation.allocations;
    EXPECT_GT(allocations, 0U);
    pass(model);
    EXPECT_EQ(emulation.allocations, allocations);
  }
  EXPECT_EQ(emulation.blocks, 0U);  // nothing is lost
}

// Parameters and all else stay on the device: only tokens, targets and the loss cross.
TEST(EmulatedEngine, CopiesNothingButTokensWhereMemoryIsShared) {
  cuda::Emulation emulation;
  emulation.shares_memory = true;
  const auto engine = emulated(emulation);
  const auto layers = make_layers(kConfig, whole_model(kConfig), kShape, *engine);
  BufferPool pool(std::size_t{1} << 28, engine->memory());
  const auto floats = [&](std::size_t count) { return pool.acquire(count * 4).value(); };
  Buffer parameters = floats(layers[1]->parameter_count());
  Buffer gradients = floats(layers[1]->parameter_count());
  Buffer x = floats(128 * 32);
  Buffer y = floats(128 * 32);
  Buffer stash = pool.acquire(layers[1]->stash_bytes()).value();
  initialise(layers[1]->parameters(), 1, parameters.mutable_as<float>());
  engine->clear(x.mutable_as<float>());
  engine->clear(gradients.mutable_as<float>());
  const auto before = emulation.copies;
  layers[1]->forward({.parameters = parameters.as<float>(),
                      .input = x.as<float>(),
                      .output = y.mutable_as<float>(),
                      .stash = stash.mutable_bytes()});
  layers[1]->backward({.parameters = parameters.as<float>(),
                       .input = x.as<float>(),
                       .stash = stash.bytes(),
                       .output_gradient = y.as<float>(),
                       .input_gradient = x.mutable_as<float>(),
                       .gradients = gradients.mutable_as<float>()});
  EXPECT_EQ(emulation.copies, before);
  EXPECT_TRUE(engine->status());
}

TEST(EmulatedEngine, SaysWhatWasAskedForWhenMemoryRunsOut) {
  cuda::Emulation emulation;
  emulation.bytes_total = 200 * 1024;
  const auto engine = emulated(emulation);
  WholeModel model(kConfig, kShape, *engine);
  pass(model);
  ASSERT_FALSE(engine->status());
  EXPECT_EQ(engine->status().error().code(), ErrorCode::kOutOfResources);
  const std::string text = engine->status().error().message();
  for (const char* part : {"emulated device 0", "block 0, forward", "asked for",
                           "of 200.0 KiB free", "train.micro_batch"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

// At each single call in turn: the error names the operation, nothing follows, nothing is lost.
TEST(EmulatedEngine, StopsAtItsFirstFailure) {
  std::size_t total = 0;
  for (std::size_t call = 1; total == 0 || call <= total; ++call) {
    cuda::Emulation emulation;
    emulation.calls_until_failure = total == 0 ? 0 : call;
    {
      const auto engine = emulated(emulation);
      WholeModel model({1, 2, 16, 16, 32, 32}, {1, 16}, *engine);
      model.initialise_all(1);
      pass(model);
      if (total == 0) {
        total = emulation.calls;
        call = 0;
        continue;
      }
      ASSERT_FALSE(engine->status()) << call;
      EXPECT_EQ(emulation.calls, call);
      const std::string text = engine->status().error().message();
      EXPECT_NE(text.find("emulated device 0: "), std::string::npos) << text;
      EXPECT_NE(text.find("ward: an emulated fault"), std::string::npos) << text;
      std::vector<double> sums(1);
      const Chunk chunk{.offset = 0, .count = 1};
      engine->sums_of_squares(model.layers()[0].gradients.span(), {&chunk, 1}, sums);
      EXPECT_TRUE(std::isnan(sums[0]));
    }
    EXPECT_EQ(emulation.blocks, 0U);
  }
}

TEST(EmulatedEngine, RefusesHeadsThatAreTooWide) {
  cuda::Emulation emulation;
  const auto engine = emulated(emulation);
  GptConfig config = kConfig;
  EXPECT_TRUE(engine->supports(config));
  config.channels = 2 * 257;
  const Status status = engine->supports(config);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message().find("257 channels"), std::string::npos);
}

TEST(MemoryPool, GivesBackWhatItKeepsBeforeItGivesUp) {
  cuda::Emulation emulation;
  emulation.bytes_total = 4096;
  cuda::MemoryPool pool(std::make_shared<cuda::EmulatedDevice>(emulation));
  {
    auto a = pool.borrow(1000);
    auto b = pool.borrow(2000);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(pool.stats().bytes_lent, 1024U + 2048);
    EXPECT_FALSE(pool.borrow(1500));  // 1024 bytes are left
  }
  EXPECT_EQ(pool.stats().bytes_lent, 0U);
  EXPECT_EQ(pool.stats().bytes_held, 1024U + 2048);
  auto all = pool.borrow(4096);
  ASSERT_TRUE(all);
  EXPECT_EQ(pool.stats().bytes_held, 4096U);
  EXPECT_EQ(pool.stats().bytes_peak, 4096U);
  const auto more = pool.borrow(1);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message(),
            "1 bytes of device memory asked for, 0 bytes of 4.0 KiB free, 4.0 KiB are in use here "
            "for intermediate results");
}

TEST(SharedMemory, IsRefusedBeyondWhatTheDeviceHas) {
  cuda::Emulation emulation;
  emulation.bytes_total = 1 << 20;
  emulation.shares_memory = true;
  const auto engine = emulated(emulation);
  BufferPool pool(std::size_t{1} << 30, engine->memory());
  EXPECT_TRUE(pool.acquire(1 << 19));
  const auto buffer = pool.acquire(1 << 21);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code(), ErrorCode::kOutOfResources);
  EXPECT_NE(buffer.error().message().find("2.0 MiB of device memory asked for"), std::string::npos)
      << buffer.error().message();
}

TEST(SharedMemory, OutlivesItsEngine) {
  cuda::Emulation emulation;
  emulation.shares_memory = true;
  auto engine = emulated(emulation);
  auto pool = std::make_unique<BufferPool>(std::size_t{1} << 20, engine->memory());
  Buffer buffer = pool->acquire(1000).value();
  engine.reset();
  pool.reset();
  buffer.mutable_bytes()[999] = std::byte{1};
  EXPECT_EQ(emulation.blocks, 1U);
  buffer = {};
  EXPECT_EQ(emulation.blocks, 0U);
}

// On a machine without a GPU (or without the plugin) one clear error, on one with a GPU a number.
TEST(CudaPlugin, SaysWhatIsMissing) {
  const auto count = cuda_device_count();
  if (count) {
    EXPECT_GT(*count, 0U);
    EXPECT_FALSE(make_cuda_engine({.device = *count}));
    return;
  }
  EXPECT_EQ(count.error().code(), ErrorCode::kUnavailable);
  const std::string text = count.error().message();
  EXPECT_TRUE(text.find("no GPU can be used: ") == 0 ||
              text.find("the CUDA plugin cannot be loaded: ") == 0)
      << text;
  const auto engine = make_cuda_engine({});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().message(), text);
}

}  // namespace
}  // namespace holmes::model

// Goal: a GPU computes what the reference computes: every operator, forward and backward, in whole
// models, the same bits each time, and a few steps of training as the CPU takes them. Skipped, with
// the reason, where there is no GPU.
#include "engine_suite.hpp"
#include "holmes/model/cuda.hpp"

namespace holmes::model {

Result<std::unique_ptr<Engine>> engine_under_test() {
  return make_cuda_engine({});
}

TEST(CudaDevice, SaysWhatItIs) {
  const auto count = cuda_device_count();
  if (!count) GTEST_SKIP() << count.error().message();
  for (std::uint32_t device = 0; device < *count; ++device) {
    const auto facts = cuda_facts(device);
    ASSERT_TRUE(facts) << facts.error().message();
    EXPECT_EQ(facts->name.find("cuda device "), 0U);
    EXPECT_EQ(facts->architecture.find("sm_"), 0U);
    EXPECT_GT(facts->memory_bytes, 0U);
    EXPECT_GT(facts->fp32_tflops, 0.0);
    EXPECT_GT(facts->memory_gb_s, 0.0);
  }
}

}  // namespace holmes::model

// Training steps of a GPT on one GPU: tokens a second, and what share of the GPU's limit that is.
// Prints one JSON object; exit code 77 and the reason where there is no GPU.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "holmes/base/clock.hpp"
#include "holmes/base/random.hpp"
#include "holmes/model/cuda.hpp"
#include "whole_model.hpp"

namespace holmes::model {
namespace {

constexpr int kSkipped = 77;
constexpr GptConfig kSmall = {
    .layers = 12, .heads = 12, .channels = 768, .sequence = 1024, .vocabulary = 50257};
constexpr MicroBatchShape kShape = {.samples = 8, .tokens = 1024};
constexpr int kSteps = 5;

GptConfig model(std::string_view family) {
  GptConfig config = kSmall;
  if (family == "llama") {
    config.family = Family::kLlama;
    config.kv_heads = 4;
    config.feed_forward = 2048;
    config.head = Head::kTied;
  }
  return config;
}

double flops(WholeModel& model) {
  double forward = 0;
  for (auto& each : model.layers()) forward += each.layer->forward_flops();
  return 3 * forward;
}

class Trainer {
 public:
  Trainer(const GptConfig& config, Engine& engine)
      : engine_(engine), model_(config, kShape, engine) {
    model_.initialise_all(1);
    Random random(2);
    for (auto* each : {&tokens_, &targets_})
      for (auto& token : *each) token = static_cast<std::int32_t>(random.below(config.vocabulary));
  }
  float step() {
    for (auto& each : model_.layers()) engine_.clear(each.gradients.span());
    const float loss = model_.forward(tokens_, targets_);
    model_.backward(tokens_, targets_, 1);
    model_.update_on(engine_, {}, step_++, 1e-4F, 1.0);
    return loss;
  }
  double flops_of_step() { return flops(model_); }

 private:
  Engine& engine_;
  WholeModel model_;
  std::vector<std::int32_t> tokens_ =
      std::vector<std::int32_t>(std::size_t{kShape.samples} * kShape.tokens);
  std::vector<std::int32_t> targets_ = tokens_;
  std::uint64_t step_ = 0;
};

int run(std::string_view family, bool tf32) {
  auto engine = make_cuda_engine({.device = 0, .tf32 = tf32});
  const auto facts = cuda_facts(0);
  if (!engine || !facts) {
    std::fprintf(stderr, "skipped: %s\n",
                 (engine ? facts.error() : engine.error()).message().c_str());
    return kSkipped;
  }
  const SteadyClock clock;
  Trainer trainer(model(family), **engine);
  float loss = trainer.step();  // chooses algorithms, takes memory
  double best_s = 1e9;
  for (int i = 0; i < kSteps; ++i) {
    const auto begun = clock.now();
    loss = trainer.step();
    best_s = std::min(best_s, seconds(clock.now() - begun));
  }
  if (const Status status = (*engine)->status(); !status) {
    std::fprintf(stderr, "%s\n", status.error().message().c_str());
    return 1;
  }
  const double tflops = trainer.flops_of_step() / best_s * 1e-12;
  std::printf(
      "{\"device\": \"%s\", \"family\": \"%.*s\", \"tf32\": %s, \"tokens_per_s\": %.0f, "
      "\"step_ms\": "
      "%.2f, \"tflops\": %.2f, \"limit_fp32_tflops\": %.2f, \"share_of_limit\": %.3f, "
      "\"shares_memory\": %s, \"loss\": %.4f}\n",
      facts->name.c_str(), static_cast<int>(family.size()), family.data(), tf32 ? "true" : "false",
      kShape.samples * kShape.tokens / best_s, 1e3 * best_s, tflops, facts->fp32_tflops,
      tflops / facts->fp32_tflops, facts->shares_memory ? "true" : "false",
      static_cast<double>(loss));
  return 0;
}

}  // namespace
}  // namespace holmes::model

int main(int argc, char** argv) {
  const std::string_view family = argc > 1 ? argv[1] : "gpt2";
  const bool tf32 = argc > 2 && std::strcmp(argv[2], "tf32") == 0;
  if ((family != "gpt2" && family != "llama") || (argc > 2 && !tf32) || argc > 3) {
    std::fprintf(stderr, "usage: cuda_bench [gpt2|llama [tf32]]\n");
    return 2;
  }
  return holmes::model::run(family, tf32);
}

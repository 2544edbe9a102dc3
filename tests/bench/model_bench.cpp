// Goal: tokens/s of whole training steps (forward, backward, clipping, AdamW) of one process with
// one thread, through the public Layer API, beside the rate of oneDNN's matrix products alone on
// the model's own shapes. Method: rounds of a few steps, the best one counts; prints JSON.
// Usage: model_bench [ROUNDS [gpt2|llama]]
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>

#include <oneapi/dnnl/dnnl.h>

#include "holmes/base/clock.hpp"
#include "holmes/base/random.hpp"
#include "whole_model.hpp"

namespace holmes::model {
namespace {

// The configuration whose limits are known: 89.65 million operations a token.
constexpr GptConfig kGpt2 = {.layers = 6,
                             .heads = 6,
                             .channels = 384,
                             .sequence = 256,
                             .vocabulary = 8192,
                             .vocabulary_padding = 64};

/// A Llama of the same size: three heads share keys and values.
GptConfig llama() {
  GptConfig config = kGpt2;
  config.family = Family::kLlama;
  config.kv_heads = 2;
  config.feed_forward = 1024;
  return config;
}

constexpr MicroBatchShape kShape = {.samples = 4, .tokens = 256};
constexpr std::size_t kTokens = std::size_t{kShape.samples} * kShape.tokens;
constexpr int kStepsInRound = 2;

template <class Work>
double seconds_of(const Clock& clock, const Work& work) {
  const auto begin = clock.now();
  work();
  return seconds(clock.now() - begin);
}

/// Time of all matrix products of a step, made of the given type of the model's products.
struct Product {
  char transpose_a, transpose_b;
  std::size_t rows, columns, inner;
  int count;
};

std::vector<Product> products(const GptConfig& config) {
  const std::size_t C = config.channels;
  const std::size_t attended = std::size_t{config.heads} * config.head_width();
  const std::size_t keys = std::size_t{config.kv_head_count()} * config.head_width();
  const std::size_t inner = config.feed_forward_width();
  std::vector<Product> all;
  const auto linear = [&](std::size_t in, std::size_t out, int count) {
    all.push_back({'N', 'N', kTokens, out, in, count});
    all.push_back({'N', 'T', kTokens, in, out, count});
    all.push_back({'T', 'N', in, out, kTokens, count});
  };
  const int layers = static_cast<int>(config.layers);
  linear(C, attended + 2 * keys, layers);
  linear(attended, C, layers);
  linear(C, config.family == Family::kLlama ? 2 * inner : inner, layers);
  linear(inner, C, layers);
  linear(C, config.vocabulary, 1);
  return all;
}

class ProductRate {
 public:
  explicit ProductRate(const GptConfig& config)
      : products_(products(config)),
        a_(kTokens * config.vocabulary),
        b_(a_.span().size()),
        c_(a_.span().size()) {
    a_.fill(0.5F);
    b_.fill(0.25F);
  }
  double operations() const {
    double sum = 0;
    for (const auto& p : products_)
      sum += 2.0 * p.count * static_cast<double>(p.rows * p.columns * p.inner);
    return sum;
  }
  void run() {
    const auto size = [](std::size_t value) { return static_cast<dnnl_dim_t>(value); };
    for (const auto& p : products_)
      for (int i = 0; i < p.count; ++i)
        dnnl_sgemm(p.transpose_a, p.transpose_b, size(p.rows), size(p.columns), size(p.inner), 1,
                   a_.span().data(), size(p.transpose_a == 'N' ? p.inner : p.rows),
                   b_.span().data(), size(p.transpose_b == 'N' ? p.columns : p.inner), 0,
                   c_.span().data(), size(p.columns));
  }

 private:
  const std::vector<Product> products_;
  Floats a_, b_, c_;
};

class Trainer {
 public:
  explicit Trainer(const GptConfig& config)
      : engine_(make_cpu_engine()), model_(config, kShape, *engine_) {
    model_.initialise_all(1);
    Random random(2);
    for (auto* each : {&tokens_, &targets_})
      for (auto& token : *each) token = static_cast<std::int32_t>(random.below(config.vocabulary));
  }
  void step() {
    model_.zero_gradients();
    loss_ = model_.forward(tokens_, targets_);
    model_.backward(tokens_, targets_, 1);
    model_.update({}, step_++, 1e-3F, 1.0);
  }
  float loss() const { return loss_; }

 private:
  std::unique_ptr<Engine> engine_;
  WholeModel model_;
  std::vector<std::int32_t> tokens_ = std::vector<std::int32_t>(kTokens);
  std::vector<std::int32_t> targets_ = std::vector<std::int32_t>(kTokens);
  std::uint64_t step_ = 0;
  float loss_ = 0;
};

int run(int rounds, const GptConfig& config) {
  prepare_compute_thread();
  const SteadyClock clock;
  Trainer trainer(config);
  ProductRate product_rate(config);
  trainer.step();
  product_rate.run();
  double step_s = 1e9;
  double products_s = 1e9;
  for (int round = 0; round < rounds; ++round) {
    step_s = std::min(step_s, seconds_of(clock, [&] {
                                for (int i = 0; i < kStepsInRound; ++i) trainer.step();
                              }) / kStepsInRound);
    products_s = std::min(products_s, seconds_of(clock, [&] { product_rate.run(); }));
  }
  std::printf(
      "{\"tokens_per_s\": %.1f, \"step_ms\": %.2f, \"product_ms\": %.2f, \"product_gflops\": %.1f, "
      "\"loss\": %.4f}\n",
      kTokens / step_s, 1e3 * step_s, 1e3 * products_s,
      product_rate.operations() / products_s * 1e-9, static_cast<double>(trainer.loss()));
  return 0;
}

}  // namespace
}  // namespace holmes::model

static int usage() {
  std::fprintf(stderr, "usage: model_bench [ROUNDS [gpt2|llama]]\n");
  return 2;
}

int main(int argc, char** argv) {
  int rounds = 5;
  if (argc > 1) {
    const std::string_view text = argv[1];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rounds);
    if (error != std::errc() || end != text.data() + text.size() || rounds < 1) return usage();
  }
  const std::string_view family = argc > 2 ? argv[2] : "gpt2";
  if (family != "gpt2" && family != "llama") return usage();
  return holmes::model::run(rounds,
                            family == "gpt2" ? holmes::model::kGpt2 : holmes::model::llama());
}

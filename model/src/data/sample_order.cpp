#include <bit>

#include "holmes/base/assert.hpp"
#include "holmes/base/random.hpp"
#include "holmes/model/data.hpp"

namespace holmes::model {
namespace {

/// A bijection of [0, 2^(2 * half_bits)) chosen by `key`: a balanced Feistel network.
std::uint64_t feistel(std::uint64_t x, unsigned half_bits, std::uint64_t key) {
  constexpr unsigned kRounds = 6;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = x >> half_bits;
  std::uint64_t right = x & mask;
  for (unsigned round = 0; round < kRounds; ++round) {
    const std::uint64_t scrambled = mix64(key + round * 0x9e3779b97f4a7c15ULL + mix64(right));
    const std::uint64_t next = left ^ (scrambled & mask);
    left = right;
    right = next;
  }
  return left << half_bits | right;
}

/// Element `index` of the permutation of [0, count) that `key` chooses, in constant memory: the
/// network permutes the next power of four, and values beyond `count` are sent through it again
/// until they fall inside (cycle walking), which keeps it a bijection. Under four rounds expected.
std::uint64_t permuted(std::uint64_t index, std::uint64_t count, std::uint64_t key) {
  HOLMES_ASSERT(index < count, "index outside the permutation");
  if (count == 1) return 0;
  const unsigned half_bits = static_cast<unsigned>(std::bit_width(count - 1) + 1) / 2;
  do {
    index = feistel(index, half_bits, key);
  } while (index >= count);
  return index;
}

std::uint64_t samples_in(TokenRange range, std::uint32_t sequence) {
  HOLMES_ASSERT(sequence > 0 && range.begin <= range.end, "not a range of samples");
  return range.size() == 0 ? 0 : (range.size() - 1) / sequence;
}

/// Reads `sequence` + 1 tokens from `first` as a row of inputs and a row of targets.
void fill_row(const TokenFile& file, std::uint64_t first, std::span<std::int32_t> tokens,
              std::span<std::int32_t> targets) {
  file.read(first, tokens);
  file.read(first + 1, targets);
}

}  // namespace

SampleOrder::SampleOrder(TokenRange range, std::uint32_t sequence, std::uint32_t batch,
                         std::uint64_t seed)
    : range_(range),
      sequence_(sequence),
      batch_(batch),
      seed_(seed),
      sample_count_(samples_in(range, sequence)) {
  HOLMES_ASSERT(sample_count_ > 0, "the range is too short for one sample; split() refuses that");
  HOLMES_ASSERT(batch > 0, "a batch has samples");
}

std::uint64_t SampleOrder::first_token(Step step, std::uint32_t index) const {
  HOLMES_ASSERT(index < batch_, "sample index outside the batch");
  const std::uint64_t use = step.value() * batch_ + index;  // uses of samples before this one
  const std::uint64_t epoch = use / sample_count_;
  const std::uint64_t key = mix64(mix64(seed_) + epoch);
  return range_.begin + permuted(use % sample_count_, sample_count_, key) * sequence_;
}

void fill_micro_batch(const TokenFile& file, const SampleOrder& order, Step step,
                      MicroBatch micro_batch, std::uint32_t samples, std::uint32_t sequence,
                      std::span<std::int32_t> tokens, std::span<std::int32_t> targets) {
  HOLMES_ASSERT(tokens.size() == std::size_t{samples} * sequence, "tokens are B*T");
  HOLMES_ASSERT(targets.size() == tokens.size(), "targets are B*T");
  for (std::uint32_t b = 0; b < samples; ++b) {
    const auto first = order.first_token(step, micro_batch.value() * samples + b);
    const std::size_t row = std::size_t{b} * sequence;
    fill_row(file, first, tokens.subspan(row, sequence), targets.subspan(row, sequence));
  }
}

ValidationOrder::ValidationOrder(TokenRange range, std::uint32_t sequence,
                                 std::uint32_t micro_batches, std::uint32_t samples)
    : range_(range),
      sequence_(sequence),
      samples_(samples),
      use_count_(std::uint64_t{micro_batches} * samples),
      sample_count_(samples_in(range, sequence)) {
  HOLMES_ASSERT(sample_count_ > 0, "the range is too short for one sample; split() refuses that");
}

std::uint64_t ValidationOrder::first_token(MicroBatch micro_batch, std::uint32_t index) const {
  const std::uint64_t use = std::uint64_t{micro_batch.value()} * samples_ + index;
  HOLMES_ASSERT(index < samples_ && use < use_count_, "sample outside the validation");
  // use * sample_count / use_count, rounded down, without overflow for any file below 2^63 tokens.
  const std::uint64_t whole = sample_count_ / use_count_;
  const std::uint64_t rest = sample_count_ % use_count_;
  return range_.begin + (use * whole + use * rest / use_count_) * sequence_;
}

void fill_validation_micro_batch(const TokenFile& file, const ValidationOrder& order,
                                 MicroBatch micro_batch, std::span<std::int32_t> tokens,
                                 std::span<std::int32_t> targets) {
  const std::uint32_t samples = order.samples();
  const std::uint32_t sequence = order.sequence();
  HOLMES_ASSERT(tokens.size() == std::size_t{samples} * sequence, "tokens are B*T");
  HOLMES_ASSERT(targets.size() == tokens.size(), "targets are B*T");
  for (std::uint32_t b = 0; b < samples; ++b) {
    const std::size_t row = std::size_t{b} * sequence;
    fill_row(file, order.first_token(micro_batch, b), tokens.subspan(row, sequence),
             targets.subspan(row, sequence));
  }
}

}  // namespace holmes::model

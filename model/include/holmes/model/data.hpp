#pragma once

// Text in, token rows out. The order of samples is a pure function of (seed, step), so that every
// process can compute which tokens a micro-batch has, and resuming is exact.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/ids.hpp"
#include "holmes/base/result.hpp"
#include "holmes/model/tokenizer.hpp"

namespace holmes::model {

/// A memory-mapped file of tokens, read-only, shared by all processes of a host.
class TokenFile {
 public:
  virtual ~TokenFile() = default;
  virtual std::uint64_t token_count() const = 0;
  /// Copies tokens [first, first + out.size()) to `out`.
  virtual void read(std::uint64_t first, std::span<std::int32_t> out) const = 0;
  /// XXH3-128 of the file's content, in hexadecimal: part of a job's constants.
  virtual const std::string& hash() const = 0;
  /// The path, for messages.
  virtual const std::string& name() const = 0;
  /// That the file still has what it had when it was opened; cheap. To be asked before and after
  /// reads: those of a file that was cut short may end the process.
  virtual Status unchanged() const = 0;
};

/// Opens `text` as bytes, one token each (vocabulary 256). kInvalidArgument when missing or empty.
Result<std::unique_ptr<TokenFile>> open_byte_text(const std::filesystem::path& text);

/// Opens `text` and encodes all of it, in memory; special tokens are text. kInvalidArgument as
/// above.
Result<std::unique_ptr<TokenFile>> encode_text(const std::filesystem::path& text,
                                               const Tokenizer& tokenizer);

/// Opens Megatron's indexed data set PREFIX.bin with PREFIX.idx (see indexed.hpp): its documents
/// one after another. Everything is checked: sizes, offsets, and that ids are below `vocabulary`.
/// kInvalidArgument when a file is missing or ids are too large, kCorrupt when one is damaged.
Result<std::unique_ptr<TokenFile>> open_indexed_tokens(const std::filesystem::path& prefix,
                                                       std::uint32_t vocabulary);

/// Tokens [begin, end) of a file.
struct TokenRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
};
struct Split {
  TokenRange train;
  TokenRange validation;
};
/// The last `validation_share` of the tokens is kept for validation. kInvalidArgument when either
/// part is too short for one sample of `sequence` + 1 tokens; the message names the file.
Result<Split> split(const TokenFile& file, double validation_share, std::uint32_t sequence);

/// Which samples a step uses. A sample is `sequence` + 1 consecutive tokens; samples do not overlap
/// but for the one token that is the last target of one and the first input of the next. Each epoch
/// uses each sample once, in an order given by (seed, epoch).
class SampleOrder {
 public:
  SampleOrder(TokenRange range, std::uint32_t sequence, std::uint32_t batch, std::uint64_t seed);
  /// Samples in one epoch.
  std::uint64_t sample_count() const { return sample_count_; }
  /// First token of sample `index` (0 .. batch-1) of `step`.
  std::uint64_t first_token(Step step, std::uint32_t index) const;

 private:
  TokenRange range_;
  std::uint32_t sequence_;
  std::uint32_t batch_;
  std::uint64_t seed_;
  std::uint64_t sample_count_;
};

/// Fills tokens and targets (both B*T) of micro-batch `micro_batch` of `step`: targets are the
/// tokens one further. Micro-batch k of B = `samples` takes indices k*B .. k*B + B-1 of the step.
void fill_micro_batch(const TokenFile& file, const SampleOrder& order, Step step,
                      MicroBatch micro_batch, std::uint32_t samples, std::uint32_t sequence,
                      std::span<std::int32_t> tokens, std::span<std::int32_t> targets);

/// The samples of a validation: `micro_batches` of `samples` each, always the same ones, in the
/// same order, whatever the seed or step. Of the S samples in `range`, use u of U takes sample
/// floor(u * S / U): spread evenly over the range, and distinct as long as U <= S (beyond that each
/// sample is used floor(U / S) or ceil(U / S) times).
class ValidationOrder {
 public:
  ValidationOrder(TokenRange range, std::uint32_t sequence, std::uint32_t micro_batches,
                  std::uint32_t samples);
  std::uint32_t sequence() const { return sequence_; }
  std::uint32_t samples() const { return samples_; }
  /// First token of sample `index` (0 .. samples-1) of validation micro-batch `micro_batch`.
  std::uint64_t first_token(MicroBatch micro_batch, std::uint32_t index) const;

 private:
  TokenRange range_;
  std::uint32_t sequence_;
  std::uint32_t samples_;
  std::uint64_t use_count_;
  std::uint64_t sample_count_;
};

/// Fills tokens and targets (both B*T) of one validation micro-batch.
void fill_validation_micro_batch(const TokenFile& file, const ValidationOrder& order,
                                 MicroBatch micro_batch, std::span<std::int32_t> tokens,
                                 std::span<std::int32_t> targets);

}  // namespace holmes::model

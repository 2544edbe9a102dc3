#include "text_batches.hpp"

namespace holmes::actors {

namespace {

class TextBatches final : public BatchSource {
 public:
  TextBatches(const JobConfig& job, std::shared_ptr<const model::TokenFile> text,
              const model::Split& split)
      : text_(std::move(text)),
        samples_(job.train.shape.micro_batch),
        sequence_(job.train.sequence),
        order_(split.train, sequence_, job.train.shape.batch, job.train.seed),
        validation_(split.validation, sequence_, std::max(1U, job.data.validation_batches),
                    samples_) {}

  void fill_training(Step step, MicroBatch micro_batch, std::span<std::int32_t> tokens,
                     std::span<std::int32_t> targets) const override {
    model::fill_micro_batch(*text_, order_, step, micro_batch, samples_, sequence_, tokens,
                            targets);
  }
  void fill_validation(std::uint32_t index, std::span<std::int32_t> tokens,
                       std::span<std::int32_t> targets) const override {
    model::fill_validation_micro_batch(*text_, validation_, MicroBatch(index), tokens, targets);
  }
  Status unchanged() const override { return text_->unchanged(); }
  const std::string& data_hash() const override { return text_->hash(); }

 private:
  std::shared_ptr<const model::TokenFile> text_;
  std::uint32_t samples_;
  std::uint32_t sequence_;
  model::SampleOrder order_;
  model::ValidationOrder validation_;
};

Status check_vocabulary(const JobConfig& job, const model::Tokenizer& tokenizer) {
  if (tokenizer.vocabulary() <= job.model.vocabulary) return {};
  return Error(ErrorCode::kInvalidArgument,
               "data.tokenizer: " + job.data.tokenizer + " has " +
                   std::to_string(tokenizer.vocabulary()) + " tokens, but model.vocabulary is " +
                   std::to_string(job.model.vocabulary) + "; raise it to as many");
}

}  // namespace

Result<std::shared_ptr<const model::TokenFile>> open_text(const JobConfig& job) {
  const auto& data = job.data;
  if (data.tokens.empty() && data.tokenizer == "bytes") {
    HOLMES_TRY_ASSIGN(auto text, model::open_byte_text(data.text));
    return std::shared_ptr<const model::TokenFile>(std::move(text));
  }
  std::unique_ptr<model::Tokenizer> tokenizer;
  if (data.tokenizer != model::kNoTokenizer) {
    HOLMES_TRY_ASSIGN(tokenizer, model::make_tokenizer(data.tokenizer));
    HOLMES_TRY(check_vocabulary(job, *tokenizer));
  }
  HOLMES_TRY_ASSIGN(auto text, data.tokens.empty()
                                   ? model::encode_text(data.text, *tokenizer)
                                   : model::open_indexed_tokens(data.tokens, job.model.vocabulary));
  return std::shared_ptr<const model::TokenFile>(std::move(text));
}

Result<std::unique_ptr<BatchSource>> make_text_batches(
    const JobConfig& job, std::shared_ptr<const model::TokenFile> text) {
  HOLMES_TRY_ASSIGN(const auto split, model::split(*text, job.data.validation, job.train.sequence));
  return std::unique_ptr<BatchSource>(std::make_unique<TextBatches>(job, std::move(text), split));
}

}  // namespace holmes::actors

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

}  // namespace

Result<std::shared_ptr<const model::TokenFile>> open_text(const JobConfig& job) {
  HOLMES_TRY_ASSIGN(auto text, model::open_byte_text(job.data.text));
  return std::shared_ptr<const model::TokenFile>(std::move(text));
}

Result<std::unique_ptr<BatchSource>> make_text_batches(
    const JobConfig& job, std::shared_ptr<const model::TokenFile> text) {
  HOLMES_TRY_ASSIGN(const auto split, model::split(*text, job.data.validation, job.train.sequence));
  return std::unique_ptr<BatchSource>(std::make_unique<TextBatches>(job, std::move(text), split));
}

}  // namespace holmes::actors

#include "program.hpp"

#include "holmes/base/assert.hpp"

namespace holmes::actors {

bool validation_due(const TrainingSpan& span, Step step) {
  if (span.validation_batches == 0) return false;
  if (step.value() == span.steps) return true;
  return span.validate_every != 0 && step.value() != 0 && step.value() % span.validate_every == 0;
}

DeviceId validation_owner(const partition::Plan& plan, StageIndex stage, std::uint32_t index) {
  return plan.owner(stage, MicroBatch(index % plan.job.micro_batch_count()));
}

DeviceId pass_owner(const partition::Plan& plan, StageIndex stage, MicroBatch micro_batch) {
  const auto count = plan.job.micro_batch_count();
  if (micro_batch.value() < count) return plan.owner(stage, micro_batch);
  return validation_owner(plan, stage, micro_batch.value() - count);
}

std::vector<ProgramPass> step_program(const partition::Plan& plan, const TrainingSpan& span,
                                      StageIndex stage, DeviceId device, Step step) {
  std::vector<ProgramPass> program;
  if (validation_due(span, step))
    for (std::uint32_t index = 0; index < span.validation_batches; ++index)
      if (validation_owner(plan, stage, index) == device)
        program.push_back({PassKind::kValidate, MicroBatch(plan.job.micro_batch_count() + index)});
  if (step.value() >= span.steps) return program;
  HOLMES_ASSERT(partition::executed_by_runtime(plan), "refused when the job started");
  for (const auto& pass : partition::schedule(plan, stage, device))
    program.push_back(
        {pass.pass == partition::Pass::kForward ? PassKind::kForward : PassKind::kBackward,
         pass.micro_batch});
  return program;
}

}  // namespace holmes::actors

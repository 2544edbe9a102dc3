#include "cuda/session.hpp"

namespace holmes::model::cuda {

Session::Session(std::unique_ptr<Device> device) : device_(std::move(device)), pool_(device_) {
  device_->facts(facts_);
  shared_ = std::make_shared<SharedMemory>(
      device_, facts_.shares_memory ? MemoryKind::kShared : MemoryKind::kPinned);
  pinned_ = std::make_shared<SharedMemory>(device_, MemoryKind::kPinned);
}

void Session::multiply(const Product& product) {
  HOLMES_ASSERT(product.bias == nullptr || product.scale == 1, "a scaled product with a bias");
  if (!status_) return;
  Outcome outcome;
  device_->multiply(product, outcome);
  settle(outcome);
}

void Session::copy(void* to, const void* from, std::size_t bytes) {
  if (!status_ || bytes == 0) return;
  Outcome outcome;
  device_->copy(to, from, bytes, outcome);
  settle(outcome);
}

void Session::clear(void* memory, std::size_t bytes) {
  if (!status_ || bytes == 0) return;
  Outcome outcome;
  device_->clear(memory, bytes, outcome);
  settle(outcome);
}

void Session::launch_any(KernelId id, const void* kernel) {
  if (!status_) return;
  Outcome outcome;
  device_->launch(id, kernel, outcome);
  settle(outcome);
}

void Session::wait() {
  if (!status_) return;
  Outcome outcome;
  device_->wait(outcome);
  settle(outcome);
}

MemoryPool::Loan Session::borrow(std::size_t bytes) {
  if (!status_) return {};
  auto loan = pool_.borrow(bytes);
  if (loan) return *std::move(loan);
  status_ = loan.error().in(operation_).in(facts_.name);
  if (loan.error().code() == ErrorCode::kOutOfResources)
    status_ = Error(
        ErrorCode::kOutOfResources,
        status_.error().message() + "; set train.micro_batch lower, or train on more devices");
  return {};
}

void Session::settle(const Outcome& outcome) {
  if (outcome.done() || !status_) return;
  const bool short_of_memory = outcome.code == Outcome::Code::kOutOfMemory;
  status_ = Error(
      short_of_memory ? ErrorCode::kOutOfResources : ErrorCode::kUnavailable,
      std::string(facts_.name) + ": " + operation_ + ": " + outcome.text +
          (short_of_memory ? "; set train.micro_batch lower, or train on more devices"
                           : "; the device does nothing more in this process: start it again, and "
                             "if this comes again, look for the device in the kernel's log"));
}

Operation::Operation(Session& session, std::string name) : session_(session) {
  session_.operation_ = std::move(name);
}

Operation::~Operation() {
  session_.wait();
}

}  // namespace holmes::model::cuda

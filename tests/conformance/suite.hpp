#pragma once

// The fixture of the conformance suite: a connected pair, and operations that note what happens to
// them, among that whether a handler ran inside the call it answers.

#include <deque>
#include <optional>

#include <gtest/gtest.h>

#include "world.hpp"

namespace holmes::transport::conformance {

/// What became of one operation.
struct Outcome {
  int count = 0;  ///< Completions: 1 in the end.
  std::optional<Error> error;
  Buffer buffer;

  bool done() const { return count > 0; }
  bool ok() const { return count == 1 && !error; }
};

class Suite : public ::testing::TestWithParam<Backend> {
 protected:
  Suite() : world_(GetParam().make()) {}
  ~Suite() override;

  /// Runs `body` as a task of the executor.
  void in_task(const std::function<void()>& body);
  bool run_until(const std::function<bool()>& done) { return world_->run_until(done); }
  void settle() { world_->settle(); }

  static Identity identity(int side, const std::string& job = "job-1");
  /// Side 1 listens, side 0 dials: a_ and b_ are the ends.
  void connect_pair();
  void listen(const Identity& self);
  std::shared_ptr<Outcome> dial(const Endpoint& remote, const Identity& self, Duration deadline);

  std::shared_ptr<Outcome> send_control(const std::shared_ptr<Connection>& from, std::string text);
  std::shared_ptr<Outcome> send(const std::shared_ptr<Connection>& from, const BulkTag& tag,
                                std::size_t bytes, std::uint64_t seed = 1);
  std::shared_ptr<Outcome> receive(const std::shared_ptr<Connection>& at, const BulkTag& tag,
                                   std::size_t bytes);
  bool finish(const std::shared_ptr<Outcome>& outcome) {
    return run_until([&] { return outcome->done(); });
  }

  static BulkTag tag(std::uint32_t number, std::uint64_t generation = 1);
  static TensorShape shape(std::size_t bytes);
  static Buffer pattern(BufferPool& pool, std::size_t bytes, std::uint64_t seed);
  static bool has_pattern(const Buffer& buffer, std::size_t bytes, std::uint64_t seed);
  static std::string text(const Buffer& buffer);

  BufferPool pool_{256 * kMiB};
  std::unique_ptr<World> world_;
  std::unique_ptr<Listener> listener_;
  std::vector<Error> refused_;
  std::shared_ptr<Connection> a_;
  std::shared_ptr<Connection> b_;
  std::vector<std::string> controls_a_;  // that came to a
  std::vector<std::string> controls_b_;
  std::vector<Error> closed_a_;
  std::vector<Error> closed_b_;

 private:
  template <class T>
  std::function<void(Result<T>)> note(const std::shared_ptr<Outcome>& outcome);

  bool in_call_ = false;
};

}  // namespace holmes::transport::conformance

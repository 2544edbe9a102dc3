#pragma once

// Lets the newest checkpoint of a job continue a text. One text at a time: whoever comes meanwhile
// is told so. Any thread.

#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>

#include "holmes/base/result.hpp"

namespace service {

class Generator {
 public:
  static constexpr std::uint32_t kTokensMax = 1000;

  /// `checkpoints`: where the job keeps them.
  explicit Generator(std::filesystem::path checkpoints) : checkpoints_(std::move(checkpoints)) {}

  /// The text that follows. kNotFound: there is no checkpoint yet. kUnavailable: another text is
  /// being written, or the service ends. kInvalidArgument: the prompt or the count.
  holmes::Result<std::string> generate(const std::string& prompt, std::uint32_t tokens);
  /// Ends the text in work, and refuses what comes.
  void stop() { stopping_ = true; }

 private:
  const std::filesystem::path checkpoints_;
  std::mutex busy_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace service

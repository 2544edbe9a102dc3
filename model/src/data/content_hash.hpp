#pragma once

// XXH3-128 of a run of bytes, in 32 hexadecimal digits: names the content of data files and
// checkpoint files. Guards against damage and mix-ups, not against forgery.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace holmes::model {

class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void update(std::span<const std::byte> bytes);
  /// Of all bytes so far.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string content_hash(std::span<const std::byte> bytes);

}  // namespace holmes::model

#include "data/content_hash.hpp"

#include <xxhash.h>

#include "holmes/base/assert.hpp"

namespace holmes::model {
namespace {

std::string to_hex(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xF];
  }
  return text;
}

}  // namespace

struct ContentHash::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {
  HOLMES_ASSERT(state_->xxh != nullptr, "no memory for a hash state");
  XXH3_128bits_reset(state_->xxh);
}

ContentHash::~ContentHash() = default;

void ContentHash::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

std::string ContentHash::hex() const {
  return to_hex(XXH3_128bits_digest(state_->xxh));
}

std::string content_hash(std::span<const std::byte> bytes) {
  return to_hex(XXH3_128bits(bytes.data(), bytes.size()));
}

}  // namespace holmes::model

#include "link/incoming.hpp"

namespace holmes::transport {

namespace {

constexpr std::size_t kBits = 64;

}  // namespace

void ChunkSet::add(std::size_t index) {
  const auto bit = std::uint64_t{1} << index % kBits;
  if (index < kBits) {
    first_ |= bit;
    return;
  }
  const auto at = index / kBits - 1;
  if (at >= more_.size()) more_.resize(at + 1);
  more_[at] |= bit;
}

bool ChunkSet::contains(std::size_t index) const {
  const auto bit = std::uint64_t{1} << index % kBits;
  if (index < kBits) return (first_ & bit) != 0;
  const auto at = index / kBits - 1;
  return at < more_.size() && (more_[at] & bit) != 0;
}

void Reservation::complete() {
  auto buffer = std::move(landing.owner);
  landing = {};
  if (done) return done(std::move(buffer));
  buffer = {};
  landed({});
}

}  // namespace holmes::transport

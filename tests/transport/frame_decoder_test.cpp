// Goal: the frame decoder yields the heads that were sent, however the bytes are cut, and refuses
// anything else without reading past it.
// Method: encoded frames fed in pieces of every size; each kind of damage by hand.
#include "wire/frame_decoder.hpp"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "wire/codec.hpp"

namespace holmes::transport::wire {
namespace {

std::span<const std::byte> as_bytes(const char* text) {
  return std::as_bytes(std::span(text, std::strlen(text)));
}

EncodedHead some_frame() {
  BulkTag tag;
  tag.step = Step(3);
  tag.node = 7;
  return encode(Credit{tag, 4096});
}

TEST(Crc32c, MatchesThePublishedCheckValue) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(as_bytes("6789"), crc32c(as_bytes("12345"))), 0xe3069283u);
}

TEST(FrameDecoder, YieldsTheSameHeadForPiecesOfAnySize) {
  const auto frame = some_frame();
  for (std::size_t piece = 1; piece <= frame.size(); ++piece) {
    FrameDecoder decoder;
    for (std::size_t at = 0; at < frame.size();) {
      ASSERT_FALSE(decoder.ready());
      const auto count = std::min(piece, frame.size() - at);
      const auto taken = decoder.consume(std::span(frame).subspan(at, count));
      ASSERT_TRUE(taken);
      ASSERT_EQ(*taken, count);
      at += count;
    }
    ASSERT_TRUE(decoder.ready());
    const auto credit = decode_credit(decoder.head().header);
    ASSERT_TRUE(credit);
    EXPECT_EQ(credit->bytes, 4096u);
  }
}

TEST(FrameDecoder, NeverReadsPastAHead) {
  auto bytes = encode(Control{1}, 3);
  const auto head_bytes = bytes.size();
  bytes.resize(head_bytes + 3);
  FrameDecoder decoder;
  const auto taken = decoder.consume(bytes);
  ASSERT_TRUE(taken);
  EXPECT_EQ(*taken, head_bytes);
  EXPECT_EQ(decoder.head().payload_bytes, 3u);
  EXPECT_EQ(decoder.needed(), 0u);
  decoder.next();
  EXPECT_EQ(decoder.needed(), kPrefixBytes);
}

TEST(FrameDecoder, RefusesAnotherVersionReadably) {
  auto frame = some_frame();
  frame[4] = std::byte{9};
  FrameDecoder decoder;
  const auto taken = decoder.consume(frame);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), ErrorCode::kRefused);
  EXPECT_NE(taken.error().message().find("version 9"), std::string::npos);
}

TEST(FrameDecoder, FindsEverySingleFlippedBit) {
  const auto frame = some_frame();
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    auto damaged = frame;
    damaged[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    FrameDecoder decoder;
    const auto taken = decoder.consume(damaged);
    EXPECT_FALSE(taken && decoder.ready()) << "bit " << bit;
  }
}

TEST(FrameDecoder, StaysInError) {
  FrameDecoder decoder;
  ASSERT_FALSE(decoder.consume(as_bytes("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
  const auto again = decoder.consume(some_frame());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), ErrorCode::kCorrupt);
}

TEST(FrameDecoder, RefusesSizesBeyondTheLimitsBeforeReadingThem) {
  for (const std::size_t field : {8u, 12u}) {
    auto frame = some_frame();
    frame[field + 3] = std::byte{0x7f};
    FrameDecoder decoder;
    EXPECT_FALSE(decoder.consume(std::span(frame).first(kPrefixBytes))) << "field " << field;
  }
}

}  // namespace
}  // namespace holmes::transport::wire

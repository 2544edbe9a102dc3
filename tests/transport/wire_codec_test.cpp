// Goal: every header survives encoding, and every value out of limits is refused.
// Method: round trips of full values; headers damaged where a CRC could not help.
#include "wire/codec.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "holmes/base/random.hpp"
#include "wire/frame_decoder.hpp"

namespace holmes::transport::wire {
namespace {

/// The header of an encoded frame, aligned as the decoder would have it.
class Header {
 public:
  explicit Header(const EncodedHead& frame) : words_((frame.size() - kPrefixBytes + 7) / 8) {
    size_ = frame.size() - kPrefixBytes;
    std::copy(frame.begin() + kPrefixBytes, frame.end(), bytes().begin());
  }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words_)).first(size_); }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t size_ = 0;
};

BulkTag full_tag() {
  return BulkTag{Generation(1ull << 40),
                 Step(1ull << 41),
                 BulkKind::kState,
                 StageIndex(3),
                 MicroBatch(4),
                 LayerIndex(5),
                 6,
                 DeviceId(7),
                 DeviceId(8)};
}

TEST(WireCodec, HelloSurvives) {
  const Hello sent{schema_hash(),
                   std::string(kJobBytesMax, 'j'),
                   HostId(1),
                   NicId(2),
                   Epoch(3),
                   Purpose::kBulk,
                   99};
  const auto got = decode_hello(Header(encode(sent)).bytes());
  ASSERT_TRUE(got);
  EXPECT_EQ(got->job, sent.job);
  EXPECT_EQ(got->host, sent.host);
  EXPECT_EQ(got->nic, sent.nic);
  EXPECT_EQ(got->epoch, sent.epoch);
  EXPECT_EQ(got->purpose, sent.purpose);
  EXPECT_EQ(got->link_nonce, sent.link_nonce);
  EXPECT_EQ(got->schema_hash, schema_hash());
}

TEST(WireCodec, RefusalSurvivesAndIsCut) {
  const auto got =
      decode_refusal(Header(encode(Refusal{ErrorCode::kTimeout, std::string(5000, 'x')})).bytes());
  ASSERT_TRUE(got);
  EXPECT_EQ(got->code, ErrorCode::kTimeout);
  EXPECT_EQ(got->reason.size(), kReasonBytesMax);
}

TEST(WireCodec, CreditAndControlSurvive) {
  const auto credit = decode_credit(Header(encode(Credit{full_tag(), 12345})).bytes());
  ASSERT_TRUE(credit);
  EXPECT_EQ(credit->tag, full_tag());
  EXPECT_EQ(credit->bytes, 12345u);
  const auto control = decode_control(Header(encode(Control{77}, 10)).bytes());
  ASSERT_TRUE(control);
  EXPECT_EQ(control->checksum, 77u);
}

TEST(WireCodec, ChunkSurvives) {
  const Chunk sent{full_tag(), {DType::kBf16, {1, 2, 3, 4, 5, 6, 7, 8}}, 100, 200, 42};
  const auto got = decode_chunk(Header(encode(sent, 100)).bytes(), 100);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->tag, sent.tag);
  EXPECT_EQ(got->shape, sent.shape);
  EXPECT_EQ(got->offset, 100u);
  EXPECT_EQ(got->total, 200u);
  EXPECT_EQ(got->checksum, sent.checksum);
}

TEST(WireCodec, ChunkBeyondItsPayloadIsRefused) {
  const auto refused = [](std::uint64_t offset, std::uint64_t total, std::size_t bytes) {
    const Chunk chunk{full_tag(), {}, offset, total, {}};
    return !decode_chunk(Header(encode(chunk, 0)).bytes(), bytes);
  };
  EXPECT_TRUE(refused(101, 200, 100));
  EXPECT_TRUE(refused(201, 200, 0));
  EXPECT_TRUE(refused(0, limits::kPayloadBytesMax + 1, 100));
  EXPECT_TRUE(refused(~0ull, ~0ull, 1));
  EXPECT_TRUE(refused(0, 200, 0)) << "a chunk without bytes would never end its payload";
  EXPECT_FALSE(refused(0, 0, 0));
  EXPECT_FALSE(refused(100, 200, 100));
}

TEST(WireCodec, EveryKindIsReadAgain) {
  BulkTag tag = full_tag();
  for (int kind = 0; kind <= static_cast<int>(transport::kBulkKindLast); ++kind) {
    tag.kind = static_cast<BulkKind>(kind);
    const auto got = decode_credit(Header(encode(Credit{tag, 1})).bytes());
    ASSERT_TRUE(got) << kind;
    EXPECT_EQ(got->tag.kind, tag.kind);
  }
}

TEST(WireCodec, UnknownKindIsRefused) {
  BulkTag tag = full_tag();
  tag.kind = static_cast<BulkKind>(200);
  const auto got = decode_credit(Header(encode(Credit{tag, 1})).bytes());
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message().find("200"), std::string::npos);
}

TEST(WireCodec, DamagedHeadersNeverThrowOrLeaveLimits) {
  const Chunk sent{full_tag(), {DType::kF32, {4, 1024, 768}}, 0, 1 << 20, 1};
  Random random(7);
  int decoded = 0;
  for (int round = 0; round < 20000; ++round) {
    Header header(encode(sent, 1 << 18));
    for (int flips = 0; flips < 3; ++flips) {
      const auto bit = random.below(header.bytes().size() * 8);
      header.bytes()[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    }
    const auto got = decode_chunk(header.bytes(), 1 << 18);
    if (!got) continue;
    ++decoded;
    ASSERT_LE(got->offset + (1 << 18), got->total);
    ASSERT_LE(got->shape.dimensions.size(), kDimensionsMax);
  }
  EXPECT_GT(decoded, 0) << "all were refused: the test no longer reaches the checks";
}

TEST(WireCodec, EmptyAndOddHeadersAreRefused) {
  EXPECT_FALSE(decode_hello({}));
  Header header(encode(Hello{}));
  EXPECT_FALSE(decode_hello(header.bytes().first(header.bytes().size() - 1)));
  EXPECT_FALSE(decode_hello(header.bytes().first(8)));
}

TEST(BulkTagText, NamesWhatAndWhere) {
  EXPECT_EQ(to_string(BulkTag{Generation(1), Step(3), BulkKind::kActivation, StageIndex(0),
                              MicroBatch(5), LayerIndex(0), 0, DeviceId(1), DeviceId(2)}),
            "activation of step 3, micro-batch 5, stage 0 (device 1 to device 2, generation 1)");
}

}  // namespace
}  // namespace holmes::transport::wire

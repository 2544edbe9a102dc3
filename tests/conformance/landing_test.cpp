// Goal: payloads that land in a part of a buffer, or go through a sink, arrive whole and each byte
// once; a sink can end the connection; what is superseded in the middle lets its memory go.
// Method: the suite's pair of NICs on each backend, with sinks that note every piece.
#include <cstring>

#include "holmes/base/limits.hpp"
#include "suite.hpp"

namespace holmes::transport::conformance {
namespace {

/// Copies pieces to where they belong and counts how often each byte came.
class Collector final : public PayloadSink {
 public:
  explicit Collector(std::size_t bytes) : bytes_(Buffer::allocate(bytes)), counts_(bytes) {}

  Status piece(std::size_t offset, std::span<const std::byte> bytes) override {
    ++pieces_;
    std::memcpy(bytes_.mutable_bytes().subspan(offset, bytes.size()).data(), bytes.data(),
                bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) ++counts_.at(offset + i);
    if (pieces_ == fail_at) return Error(ErrorCode::kCorrupt, "the sink has seen enough");
    return {};
  }
  bool each_byte_once() const {
    return std::all_of(counts_.begin(), counts_.end(), [](int count) { return count == 1; });
  }
  const Buffer& bytes() const { return bytes_; }
  int pieces() const { return pieces_; }

  int fail_at = 0;

 private:
  Buffer bytes_;
  std::vector<int> counts_;
  int pieces_ = 0;
};

class LandingSuite : public Suite {
 protected:
  std::shared_ptr<Outcome> land(const BulkTag& tag, Landing landing) {
    auto outcome = std::make_shared<Outcome>();
    const auto size = landing.bytes;
    in_task([&] {
      b_->receive_bulk(tag, shape(size), std::move(landing), [outcome](const Status& status) {
        ++outcome->count;
        if (!status) outcome->error = status.error();
      });
    });
    return outcome;
  }
};

// The last one has more than 64 chunks.
const std::size_t kSizes[] = {
    0, 1, 100, 65536, 65537, limits::kChunkBytesMax, 300000, (17u << 20) + 77};

TEST_P(LandingSuite, APayloadGoesThroughASinkEachByteOnce) {
  connect_pair();
  std::uint32_t number = 0;
  for (const auto size : kSizes) {
    const auto collector = std::make_shared<Collector>(size);
    const auto landed = land(tag(number), {size, {}, {}, collector});
    const auto sent = send(a_, tag(number), size, size);
    ASSERT_TRUE(run_until([&] { return landed->done() && sent->done(); })) << size;
    ASSERT_TRUE(landed->ok() && sent->ok()) << size;
    EXPECT_TRUE(collector->each_byte_once()) << size;
    EXPECT_TRUE(has_pattern(collector->bytes(), size, size)) << size;
    ++number;
  }
}

TEST_P(LandingSuite, APayloadGoesIntoAPartOfABufferAndTouchesNothingElse) {
  connect_pair();
  constexpr std::size_t kBytes = 700'000;
  auto buffer = pool_.acquire(kBytes + 128).value();
  const auto all = buffer.mutable_bytes();
  std::fill(all.begin(), all.end(), std::byte{7});
  const auto collector = std::make_shared<Collector>(kBytes);
  const auto landed = land(tag(1), {kBytes, all.subspan(64, kBytes), buffer, collector});
  const auto sent = send(a_, tag(1), kBytes, 9);
  ASSERT_TRUE(run_until([&] { return landed->done() && sent->done(); }));
  EXPECT_TRUE(collector->each_byte_once());
  EXPECT_TRUE(has_pattern(collector->bytes(), kBytes, 9)) << "the sink saw other bytes";
  EXPECT_EQ(std::memcmp(all.data() + 64, collector->bytes().data(), kBytes), 0);
  EXPECT_TRUE(std::all_of(all.begin(), all.begin() + 64, [](auto b) { return b == std::byte{7}; }));
  EXPECT_TRUE(std::all_of(all.end() - 64, all.end(), [](auto b) { return b == std::byte{7}; }));
  EXPECT_TRUE(buffer.unique()) << "the link still holds the memory";
}

TEST_P(LandingSuite, ASinkThatRefusesEndsTheConnectionWithItsReason) {
  connect_pair();
  constexpr std::size_t kBytes = 2 * kMiB;
  const auto collector = std::make_shared<Collector>(kBytes);
  collector->fail_at = 2;
  const auto landed = land(tag(1), {kBytes, {}, {}, collector});
  const auto sent = send(a_, tag(1), kBytes, 9);
  ASSERT_TRUE(run_until([&] { return closed_a_.size() == 1 && closed_b_.size() == 1; }));
  ASSERT_TRUE(landed->error);
  EXPECT_NE(landed->error->message().find("seen enough"), std::string::npos);
  EXPECT_EQ(collector->pieces(), 2);
  EXPECT_EQ(sent->count, 1);
}

TEST_P(LandingSuite, WhatIsSupersededInTheMiddleEndsOnceAndTheRestIsDropped) {
  connect_pair();
  constexpr std::size_t kBytes = 8 * kMiB;
  const auto collector = std::make_shared<Collector>(kBytes);
  const auto landed = land(tag(1), {kBytes, {}, {}, collector});
  const auto sent = send(a_, tag(1), kBytes, 9);
  ASSERT_TRUE(run_until([&] { return collector->pieces() > 0; }));
  in_task([&] { b_->supersede(Generation(2)); });
  const int pieces = collector->pieces();
  in_task([&] { a_->supersede(Generation(2)); });
  ASSERT_TRUE(finish(landed));
  ASSERT_TRUE(finish(sent));
  const auto received = receive(b_, tag(2, 2), 1000);
  const auto later = send(a_, tag(2, 2), 1000, 3);
  ASSERT_TRUE(finish(received));
  ASSERT_TRUE(finish(later));
  EXPECT_TRUE(has_pattern(received->buffer, 1000, 3));
  EXPECT_EQ(landed->count, 1);
  EXPECT_EQ(collector->pieces(), pieces) << "a piece came after the operation had ended";
}

INSTANTIATE_TEST_SUITE_P(Backends, LandingSuite, ::testing::ValuesIn(backends()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace holmes::transport::conformance

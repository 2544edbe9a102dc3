// Goal: no bytes that a peer can send crash the frame decoder, the header codec or the link behind
// them, make them allocate without bound, or complete an operation twice.
// Method: the input is cut into steps. A step is raw bytes for one lane, or a frame whose prefix
// and CRC are made right, so that the fuzzer reaches the checks behind them. The code that reads
// is the tcp backend's: reader, sinks and link. The link has reservations and sends that hostile
// chunks and credits may hit; at the end everything must have completed exactly once.
#include <cstdlib>
#include <cstring>

#include "fuzz_entry.hpp"
#include "holmes/transport/sim.hpp"
#include "link/sinks.hpp"

namespace {

using namespace holmes;
using namespace holmes::transport;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Sends nothing: what leaves is done at once.
class NullPipe final : public Pipe {
 public:
  explicit NullPipe(Executor& executor) : executor_(executor) {}
  void attach(const std::shared_ptr<Link>& link) { link_ = link; }
  std::size_t bulk_lanes() const override { return 1; }
  void send_control(BufferView) override {
    executor_.post([weak = link_] {
      if (const auto link = weak.lock()) link->control_sent();
    });
  }
  void send_credit(const wire::Credit&) override {}
  void send_chunk(std::size_t lane, const wire::Chunk&, BufferView) override {
    executor_.post([weak = link_, lane] {
      if (const auto link = weak.lock()) link->chunk_sent(lane);
    });
  }
  void close(const std::optional<wire::Refusal>&) override {}

 private:
  Executor& executor_;
  std::weak_ptr<Link> link_;
};

/// Takes pieces, and checks that they lie in their payload.
class Pieces final : public PayloadSink {
 public:
  explicit Pieces(std::size_t bytes) : bytes_(bytes) {}
  Status piece(std::size_t offset, std::span<const std::byte> bytes) override {
    if (offset > bytes_ || bytes.size() > bytes_ - offset) std::abort();
    return {};
  }

 private:
  const std::size_t bytes_;
};

BulkTag tag(std::uint32_t node) {
  BulkTag tag;
  tag.generation = Generation(node / 4);
  tag.node = node;
  if (node % 3 == 0) tag.kind = BulkKind::kCollective;  // goes early
  return tag;
}

constexpr std::uint32_t kOperations = 8;
constexpr std::size_t kBytes = 300;
constexpr std::size_t kStepHeadBytes = 5;

class Target {
 public:
  Target()
      : link_(std::make_shared<Link>(std::shared_ptr<Executor>(std::shared_ptr<void>(), &loop_),
                                     Identity{}, "peer")),
        control_sink_(std::make_shared<ControlMemory>()),
        control_(control_sink_, 64),
        bulk_(bulk_sink_, 0) {
    const auto pipe = std::make_shared<NullPipe>(loop_);
    link_->attach(pipe);
    pipe->attach(link_);
    control_sink_.set_link(link_);
    bulk_sink_.set_link(link_);
    link_->on_control([](const Buffer&) {});
    for (std::uint32_t i = 0; i < kOperations; ++i) {
      if (i % 2 == 0)
        link_->receive_bulk(tag(i), {}, Buffer::allocate(kBytes),
                            [this](const Result<Buffer>&) { ++completions_; });
      else
        link_->receive_bulk(tag(i), {}, Landing{kBytes, {}, {}, std::make_shared<Pieces>(kBytes)},
                            [this](const Status&) { ++completions_; });
      link_->send_bulk(tag(i), {}, Buffer::allocate(kBytes),
                       [this](const Status&) { ++completions_; });
    }
  }

  /// False once the link or the reader has given up.
  bool feed(bool bulk, std::span<const std::byte> bytes) {
    auto& reader = bulk ? bulk_ : control_;
    while (!bytes.empty()) {
      const auto space = reader.space();
      require(!space.first.empty());
      std::size_t count = 0;
      for (const auto part : {space.first, space.second}) {
        const auto size = std::min(part.size(), bytes.size());
        if (size > 0) std::memcpy(part.data(), bytes.data(), size);
        bytes = bytes.subspan(size);
        count += size;
      }
      const auto status = reader.filled(count);
      if (!status) link_->fail(status.error());
      while (loop_.run_ready_one()) {
      }
      if (!link_->open()) return false;
    }
    return true;
  }

  void supersede(std::uint64_t generation) { link_->supersede(Generation(generation)); }

  ~Target() {
    link_->close();
    while (loop_.run_ready_one()) {
    }
    require(completions_ == 2 * kOperations);
  }

 private:
  SimLoop loop_{1};
  std::shared_ptr<Link> link_;
  ControlSink control_sink_;
  BulkSink bulk_sink_{0};
  wire::FrameReader control_;
  wire::FrameReader bulk_;
  std::uint32_t completions_ = 0;
};

/// A frame around `body`, whose first `header_bytes` are the header.
std::vector<std::byte> frame(std::uint8_t type, std::span<const std::byte> body,
                             std::size_t header_bytes) {
  wire::Prefix prefix;
  prefix.type = static_cast<wire::FrameType>(type % 5);
  prefix.header_bytes = static_cast<std::uint32_t>(header_bytes);
  const auto payload = std::min(body.size() - header_bytes, wire::payload_bytes_max(prefix.type));
  prefix.payload_bytes = static_cast<std::uint32_t>(payload);
  std::vector<std::byte> out(wire::kPrefixBytes);
  wire::encode_prefix(prefix, body.first(header_bytes),
                      std::span<std::byte, wire::kPrefixBytes>(out.data(), out.size()));
  out.insert(out.end(), body.begin(),
             body.begin() + static_cast<std::ptrdiff_t>(header_bytes + payload));
  return out;
}

/// A step of an input: kind, then two little-endian lengths, then bytes.
std::string step(std::uint8_t kind, std::span<const std::byte> header,
                 std::span<const std::byte> payload) {
  std::string out(kStepHeadBytes, '\0');
  const auto total = static_cast<std::uint16_t>(header.size() + payload.size());
  const auto header_bytes = static_cast<std::uint16_t>(header.size());
  out[0] = static_cast<char>(kind);
  std::memcpy(out.data() + 1, &total, 2);
  std::memcpy(out.data() + 3, &header_bytes, 2);
  out.append(reinterpret_cast<const char*>(header.data()), header.size());
  out.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  return out;
}

/// The same for an encoded frame; `kind` 0x80 | lane << 6 | type.
std::string framed_step(wire::FrameType type, bool bulk, const wire::EncodedHead& head,
                        std::span<const std::byte> payload) {
  const auto kind = static_cast<std::uint8_t>(0x80 | (bulk ? 0x40 : 0) | static_cast<int>(type));
  return step(kind, std::span(head).subspan(wire::kPrefixBytes), payload);
}

}  // namespace

std::vector<std::string> fuzz_samples() {
  const std::vector<std::byte> bytes(kBytes);
  const auto part = std::span(bytes).first(100);
  const auto control =
      framed_step(wire::FrameType::kControl, false,
                  wire::encode(wire::Control{wire::checksum(part)}, part.size()), part);
  const auto credit =
      framed_step(wire::FrameType::kCredit, false, wire::encode(wire::Credit{tag(5), kBytes}), {});
  const auto farewell =
      framed_step(wire::FrameType::kRefusal, false,
                  wire::encode(wire::Refusal{ErrorCode::kCorrupt, "why not"}), {});
  const wire::Chunk whole{tag(5), {}, 0, kBytes, wire::checksum(bytes)};
  const wire::Chunk first{tag(6), {}, 0, kBytes, {}};
  const wire::Chunk early{tag(9), {}, 0, kBytes, wire::checksum(bytes)};
  const auto taken =
      framed_step(wire::FrameType::kCredit, false, wire::encode(wire::Credit{{}, kBytes, 1}), {});
  const wire::Chunk stale{tag(1), {}, 0, kBytes, {}};
  const auto chunk = [](const wire::Chunk& c, std::span<const std::byte> b) {
    return framed_step(wire::FrameType::kChunk, true, wire::encode(c, b.size()), b);
  };
  const auto supersede = step(0x20, {}, {});
  auto raw = wire::encode(wire::Credit{tag(2), kBytes});
  wire::Hello hello{wire::schema_hash(), "job", HostId(1), NicId(2), Epoch(3), {}, 4};
  return {control + credit + control,
          chunk(whole, bytes) + chunk(first, part),
          supersede + chunk(stale, bytes) + credit + farewell,
          chunk(first, part) + supersede + chunk(whole, bytes),
          step(0, raw, {}),
          chunk(early, bytes) + supersede + taken + chunk(first, bytes) + taken,
          framed_step(wire::FrameType::kHello, false, wire::encode(hello), {})};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto input = std::as_bytes(std::span(data, size));
  Target target;
  while (input.size() >= kStepHeadBytes) {
    const auto kind = static_cast<std::uint8_t>(input[0]);
    std::uint16_t total = 0;
    std::uint16_t header_bytes = 0;
    std::memcpy(&total, input.data() + 1, 2);
    std::memcpy(&header_bytes, input.data() + 3, 2);
    input = input.subspan(kStepHeadBytes);
    const auto body = input.first(std::min<std::size_t>(total, input.size()));
    input = input.subspan(body.size());
    const bool bulk = (kind & 0x40) != 0;
    if ((kind & 0xa0) == 0x20) {
      target.supersede(1 + (kind & 3));
      continue;
    }
    // Decoders that no lane leads to.
    const std::vector<std::byte> aligned(body.begin(), body.end());
    static_cast<void>(wire::decode_hello(aligned));
    const auto header = std::min({std::size_t{header_bytes}, body.size(), wire::kHeaderBytesMax});
    const bool framed = (kind & 0x80) != 0;
    if (!target.feed(bulk, framed ? frame(kind & 0x1f, body, header)
                                  : std::vector(body.begin(), body.end())))
      break;
  }
  return 0;
}

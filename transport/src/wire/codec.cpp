#include "wire/codec.hpp"

#include <algorithm>

#include <capnp/message.h>
#include <capnp/serialize.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "holmes/wire/holmes.capnp.h"

namespace holmes::transport::wire {

namespace {

constexpr std::size_t kWordBytes = sizeof(capnp::word);

Error corrupt(std::string what) {
  return Error(ErrorCode::kCorrupt, std::move(what));
}

/// Builds a header of type Root with `fill` and puts prefix and header into one block.
template <class Root, class Fill>
EncodedHead encode_frame(FrameType type, std::size_t payload_bytes, const Fill& fill,
                         EncodedHead head = {}) {
  constexpr std::size_t kScratchWords = 256;
  capnp::word scratch[kScratchWords] = {};
  capnp::MallocMessageBuilder builder(kj::arrayPtr(scratch, kScratchWords));
  fill(builder.initRoot<Root>());

  const std::size_t header_bytes = capnp::computeSerializedSizeInWords(builder) * kWordBytes;
  head.resize(kPrefixBytes + header_bytes);
  const std::span<std::byte> bytes(head);
  const std::span<std::byte> header = bytes.subspan(kPrefixBytes);
  kj::ArrayOutputStream out(
      kj::arrayPtr(reinterpret_cast<kj::byte*>(header.data()), header.size()));
  capnp::writeMessage(out, builder);
  const Prefix prefix{kProtocolVersion, type, static_cast<std::uint32_t>(header_bytes),
                      static_cast<std::uint32_t>(payload_bytes)};
  encode_prefix(prefix, header, std::span<std::byte, kPrefixBytes>(bytes.data(), kPrefixBytes));
  return head;
}

/// Reads a header of type Root with `read`, which returns a Result. `header` is aligned to 8.
template <class Root, class Read>
auto decode_frame(const char* name, std::span<const std::byte> header, const Read& read)
    -> std::invoke_result_t<Read, typename Root::Reader> {
  if (header.empty() || header.size() % kWordBytes != 0)
    return corrupt(std::string(name) + " of " + std::to_string(header.size()) + " bytes");
  const auto words =
      kj::arrayPtr(reinterpret_cast<const capnp::word*>(header.data()), header.size() / kWordBytes);
  auto result = capture([&] {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = 4 * words.size() + 64;  // each read of a pointer counts
    options.nestingLimit = 8;
    capnp::FlatArrayMessageReader reader(words, options);
    return read(reader.getRoot<Root>());
  });
  if (!result)
    return corrupt(std::string(name) + " that cannot be read: " + result.error().message());
  return std::move(result).value();
}

std::string text(capnp::Text::Reader reader) {
  return std::string(reader.begin(), reader.size());
}

void fill_tag(const BulkTag& tag, schema::Tag::Builder out) {
  out.setGeneration(tag.generation.value());
  out.setStep(tag.step.value());
  out.setKind(static_cast<std::uint8_t>(tag.kind));
  out.setStage(tag.stage.value());
  out.setMicroBatch(tag.micro_batch.value());
  out.setLayer(tag.layer.value());
  out.setNode(tag.node);
  out.setSource(tag.source.value());
  out.setDestination(tag.destination.value());
}

Result<BulkTag> read_tag(schema::Tag::Reader in) {
  if (in.getKind() > static_cast<std::uint8_t>(kBulkKindLast))
    return corrupt("a tag of unknown kind " + std::to_string(in.getKind()));
  BulkTag tag;
  tag.generation = Generation(in.getGeneration());
  tag.step = Step(in.getStep());
  tag.kind = static_cast<BulkKind>(in.getKind());
  tag.stage = StageIndex(in.getStage());
  tag.micro_batch = MicroBatch(in.getMicroBatch());
  tag.layer = LayerIndex(in.getLayer());
  tag.node = in.getNode();
  tag.source = DeviceId(in.getSource());
  tag.destination = DeviceId(in.getDestination());
  return tag;
}

Result<TensorShape> read_shape(schema::Chunk::Reader in) {
  if (in.getDtype() > static_cast<std::uint8_t>(DType::kU8))
    return corrupt("a chunk of unknown dtype " + std::to_string(in.getDtype()));
  const auto dimensions = in.getDimensions();
  if (dimensions.size() > kDimensionsMax)
    return corrupt("a chunk with " + std::to_string(dimensions.size()) + " dimensions");
  TensorShape shape{static_cast<DType>(in.getDtype()), {}};
  for (const auto dimension : dimensions) shape.dimensions.push_back(dimension);
  return shape;
}

}  // namespace

std::uint64_t schema_hash() {
  return HOLMES_SCHEMA_HASH;
}

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

EncodedHead encode(const Hello& hello) {
  HOLMES_ASSERT(hello.job.size() <= kJobBytesMax, "job id too long");
  HOLMES_ASSERT(hello.host_name.size() <= kHostNameBytesMax, "host name too long");
  return encode_frame<schema::Hello>(FrameType::kHello, 0, [&](schema::Hello::Builder out) {
    out.setSchemaHash(hello.schema_hash);
    out.setJob(hello.job);
    out.setHost(hello.host.value());
    out.setNic(hello.nic.value());
    out.setEpoch(hello.epoch.value());
    out.setPurpose(hello.purpose == Purpose::kBulk ? schema::Purpose::BULK
                                                   : schema::Purpose::CONTROL);
    out.setLinkNonce(hello.link_nonce);
    out.setLane(hello.lane);
    out.setLanes(hello.lanes);
    out.setHostName(hello.host_name);
  });
}

EncodedHead encode(const Refusal& refusal) {
  return encode_frame<schema::Refusal>(FrameType::kRefusal, 0, [&](schema::Refusal::Builder out) {
    out.setCode(static_cast<std::uint8_t>(refusal.code));
    out.setReason(refusal.reason.substr(0, kReasonBytesMax));
  });
}

EncodedHead encode(const Control& control, std::size_t payload_bytes, EncodedHead reuse) {
  return encode_frame<schema::Control>(
      FrameType::kControl, payload_bytes,
      [&](schema::Control::Builder out) { out.setChecksum(control.checksum); }, std::move(reuse));
}

EncodedHead encode(const Credit& credit, EncodedHead reuse) {
  const auto fill = [&](schema::Credit::Builder out) {
    fill_tag(credit.tag, out.initTag());
    out.setBytes(credit.bytes);
    out.setTaken(credit.taken);
  };
  return encode_frame<schema::Credit>(FrameType::kCredit, 0, fill, std::move(reuse));
}

EncodedHead encode(const Chunk& chunk, std::size_t payload_bytes, EncodedHead reuse) {
  return encode(chunk, chunk.checksum, payload_bytes, std::move(reuse));
}

EncodedHead encode(const Chunk& chunk, std::optional<std::uint64_t> checksum,
                   std::size_t payload_bytes, EncodedHead reuse) {
  const auto& dimensions = chunk.shape.dimensions;
  HOLMES_ASSERT(dimensions.size() <= kDimensionsMax, "too many dimensions");
  const auto fill = [&](schema::Chunk::Builder out) {
    fill_tag(chunk.tag, out.initTag());
    out.setDtype(static_cast<std::uint8_t>(chunk.shape.dtype));
    auto list = out.initDimensions(static_cast<unsigned>(dimensions.size()));
    for (unsigned i = 0; i < dimensions.size(); ++i) list.set(i, dimensions[i]);
    out.setOffset(chunk.offset);
    out.setTotal(chunk.total);
    out.setChecksum(checksum.value_or(0));
    out.setChecksummed(checksum.has_value());
  };
  return encode_frame<schema::Chunk>(FrameType::kChunk, payload_bytes, fill, std::move(reuse));
}

Result<Hello> decode_hello(std::span<const std::byte> header) {
  return decode_frame<schema::Hello>(
      "a hello", header, [](schema::Hello::Reader in) -> Result<Hello> {
        if (in.getJob().size() > kJobBytesMax) return corrupt("a hello whose job id is too long");
        if (in.getHostName().size() > kHostNameBytesMax)
          return corrupt("a hello whose host name is too long");
        if (in.getPurpose() != schema::Purpose::BULK && in.getPurpose() != schema::Purpose::CONTROL)
          return corrupt("a hello of unknown purpose");
        if (in.getLanes() == 0 || in.getLanes() > kLanesMax || in.getLane() >= in.getLanes())
          return corrupt("a hello of a link with " + std::to_string(in.getLanes()) +
                         " bulk lanes, at most " + std::to_string(kLanesMax) + " are allowed");
        return Hello{in.getSchemaHash(),
                     text(in.getJob()),
                     HostId(in.getHost()),
                     NicId(in.getNic()),
                     Epoch(in.getEpoch()),
                     in.getPurpose() == schema::Purpose::BULK ? Purpose::kBulk : Purpose::kControl,
                     in.getLinkNonce(),
                     in.getLane(),
                     in.getLanes(),
                     text(in.getHostName())};
      });
}

Result<Refusal> decode_refusal(std::span<const std::byte> header) {
  return decode_frame<schema::Refusal>(
      "a refusal", header, [](schema::Refusal::Reader in) -> Result<Refusal> {
        if (in.getCode() > static_cast<std::uint8_t>(ErrorCode::kInternal))
          return corrupt("a refusal of unknown code");
        if (in.getReason().size() > kReasonBytesMax)
          return corrupt("a refusal whose reason is too long");
        return Refusal{static_cast<ErrorCode>(in.getCode()), text(in.getReason())};
      });
}

Result<Control> decode_control(std::span<const std::byte> header) {
  return decode_frame<schema::Control>(
      "a control header", header,
      [](schema::Control::Reader in) -> Result<Control> { return Control{in.getChecksum()}; });
}

Result<Credit> decode_credit(std::span<const std::byte> header) {
  return decode_frame<schema::Credit>("a credit", header,
                                      [](schema::Credit::Reader in) -> Result<Credit> {
                                        HOLMES_TRY_ASSIGN(auto tag, read_tag(in.getTag()));
                                        if (in.getBytes() > limits::kPayloadBytesMax)
                                          return corrupt("a credit that is too large");
                                        return Credit{tag, in.getBytes(), in.getTaken()};
                                      });
}

Result<Chunk> decode_chunk(std::span<const std::byte> header, std::size_t payload_bytes) {
  return decode_frame<schema::Chunk>(
      "a chunk header", header, [&](schema::Chunk::Reader in) -> Result<Chunk> {
        HOLMES_TRY_ASSIGN(auto tag, read_tag(in.getTag()));
        HOLMES_TRY_ASSIGN(auto shape, read_shape(in));
        Chunk chunk{tag, std::move(shape), in.getOffset(), in.getTotal(), {}};
        if (chunk.total > limits::kPayloadBytesMax || chunk.offset > chunk.total ||
            payload_bytes > chunk.total - chunk.offset)
          return corrupt("a chunk beyond the end of its payload");
        if (payload_bytes == 0 && chunk.total != 0) return corrupt("an empty chunk");
        if (in.getChecksummed()) chunk.checksum = in.getChecksum();
        return chunk;
      });
}

}  // namespace holmes::transport::wire

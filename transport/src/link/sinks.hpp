#pragma once

// What a stream's reader does with the frames of each lane: decodes, checks, and hands on to a
// Link. Nothing that a peer sends gets past here without having been checked.

#include "link/link.hpp"
#include "wire/frame_reader.hpp"

namespace holmes::transport {

/// Memory for incoming control messages. Small ones come from a pool, as they come all the time.
class ControlMemory {
 public:
  ControlMemory();
  Result<Buffer> acquire(std::size_t bytes);

 private:
  BufferPool pool_;
};

/// Control messages, credits and goodbyes.
class ControlSink final : public wire::FrameSink {
 public:
  explicit ControlSink(std::shared_ptr<ControlMemory> memory) : memory_(std::move(memory)) {}
  void set_link(std::weak_ptr<Link> link) { link_ = std::move(link); }

  Status on_head(const wire::FrameHead& head) override;
  std::span<std::byte> payload_space() override;
  Status on_payload(std::size_t bytes) override;

 private:
  Status begin_message(const wire::FrameHead& head);
  Status end_message();

  std::shared_ptr<ControlMemory> memory_;
  std::weak_ptr<Link> link_;
  wire::Control head_;
  Buffer message_;
  std::size_t filled_ = 0;
};

/// Chunks, straight into the buffers that were reserved for them.
class BulkSink final : public wire::FrameSink {
 public:
  explicit BulkSink(std::size_t lane) : lane_(lane) {}
  void set_link(std::weak_ptr<Link> link) { link_ = std::move(link); }

  Status on_head(const wire::FrameHead& head) override;
  std::span<std::byte> payload_space() override;
  Status on_payload(std::size_t bytes) override;

 private:
  const std::size_t lane_;
  std::weak_ptr<Link> link_;
};

}  // namespace holmes::transport

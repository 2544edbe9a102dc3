#pragma once

// One socket before it belongs to a link: proves who it is where there is TLS, sends a hello, waits
// for one, or refuses with a reason. It reads no frame beyond the hello. Whatever happens, each
// call's handler runs once, later.

#include "holmes/transport/tcp.hpp"
#include "tcp/loop_state.hpp"
#include "tcp/stream.hpp"
#include "wire/codec.hpp"
#include "wire/frame_decoder.hpp"

namespace holmes::transport::tcp {

class Greeting final : public Closable, public std::enable_shared_from_this<Greeting> {
 public:
  using HelloHandler = std::function<void(Result<wire::Hello>)>;

  /// `tls` null: plain.
  Greeting(std::shared_ptr<LoopState> loop, Socket socket, const std::shared_ptr<const Tls>& tls,
           tls::Side side);
  ~Greeting() override;

  /// Sends `hello`. Once.
  void send(const wire::Hello& hello, SendHandler done);
  /// Waits for the peer's, after what was sent before, until `deadline` has passed.
  void receive(Duration deadline, HelloHandler done);
  /// Sends why, waits a moment until the peer has read it, and closes.
  void refuse(const Error& reason);
  /// Closes at once; what is waited for completes with `why`.
  void give_up(const Error& why);
  void shut() override;

  /// Under TLS: kRefused unless the peer has proven to be whom its hello says.
  Status check(const wire::Hello& hello, const std::vector<std::string>& host_names) const;
  TimePoint begun() const { return begun_; }
  const std::string& remote() const { return remote_; }
  bool open() const { return stream_ != nullptr; }
  std::unique_ptr<Stream> release();

 private:
  void step_later();
  void step();
  bool shake();
  bool write();
  void read();
  void wait_or_fail(const std::error_code& error);
  Error spoken_wrongly(const Error& error) const;
  void finish_receive(Result<wire::Hello> result);
  void tell(const Error& reason);
  Result<wire::Hello> decode();
  void drain();

  std::shared_ptr<LoopState> loop_;
  std::unique_ptr<Stream> stream_;
  const std::string remote_;
  const TimePoint begun_;
  bool stepping_ = false;  // a step will come
  bool shaken_ = false;
  wire::EncodedHead hello_;  // what of it is still to be sent
  SendHandler send_done_;
  std::optional<std::byte> first_;  // byte of the peer's
  wire::FrameDecoder decoder_;
  std::array<std::byte, wire::kHeaderBytesMax> bytes_{};
  HelloHandler receive_done_;
  std::optional<Executor::TimerId> timer_;
};

}  // namespace holmes::transport::tcp

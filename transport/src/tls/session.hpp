#pragma once

// TLS on one non-blocking socket that somebody else owns. Bytes go from the caller's memory into
// records and from records into the caller's memory; what the socket does not take at once of a
// record is kept here, and the caller is told that the record's bytes have left only then.
//
// No call waits: error is asio::error::would_block where the socket has to become readable (for
// reads and handshakes) or writable (where unsent() says so).

#include <optional>
#include <span>
#include <vector>

#include <asio/buffer.hpp>

#include "tls/context.hpp"

namespace holmes::transport::tls {

enum class Side { kDialler, kListener };

class Session {
 public:
  Session(std::shared_ptr<const Tls> tls, int socket, Side side);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// True once both ends have proven who they are.
  bool handshake(std::error_code& error);
  std::size_t read(std::span<std::byte> to, std::error_code& error);
  /// Ends at the first byte that the socket does not take. After would_block the next call must
  /// begin with the same bytes.
  std::size_t write(std::span<const asio::const_buffer> pieces, std::error_code& error);
  /// Tries to send what the socket did not take. True: nothing is left.
  bool flush(std::error_code& error);

  bool unsent() const { return !out_.empty(); }
  /// Nothing of an earlier write is left to do.
  bool idle() const { return out_.empty() && owed_ == 0; }
  /// There is something to read that no event of the socket will tell of.
  bool has_bytes() const { return failed_ || (!starved_ && SSL_has_pending(ssl_.get()) == 1); }
  /// The peer began with what is no TLS: plain words reach it.
  bool is_foreign() const { return foreign_; }
  /// The last read found less than it had place for.
  bool starved() const { return starved_ || failed_; }
  std::optional<CertifiedName> peer() const;
  /// Why it failed, for people, after an error that is neither would_block nor of the socket.
  Error reason() const;

 private:
  friend struct SocketBio;

  bool is_tls(std::error_code& error);
  std::error_code error_of(int result);
  std::span<const std::byte> next_record(std::span<const asio::const_buffer>& pieces,
                                         std::size_t& skip);

  const std::shared_ptr<const Tls> tls_;
  const int socket_;
  const Ssl ssl_;
  bool begun_ = false;  // the peer's first byte was TLS's
  bool foreign_ = false;
  bool shaken_ = false;
  std::vector<std::byte> out_;       // of records, not taken by the socket
  std::size_t owed_ = 0;             // bytes of the caller's that are in out_
  std::vector<std::byte> gathered_;  // small pieces that go in one record
  bool more_ = false;                // another record will be written at once
  int socket_error_ = 0;
  bool starved_ = false;       // the last read found no whole record
  std::error_code failed_;     // for the next read
  bool ended_ = false;         // the peer's end of the socket is closed
  unsigned long failure_ = 0;  // OpenSSL's code
};

/// What it means that OpenSSL failed with this code, or could not verify a certificate.
Error reason_of(unsigned long code, long verified);

}  // namespace holmes::transport::tls

#include "tls/session.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>

#include <asio/error.hpp>
#include <asio/ssl/error.hpp>

#include "tls/name.hpp"

namespace holmes::transport::tls {

namespace {

constexpr std::size_t kRecordBytes = 16 * 1024;  // the most that TLS puts in one
/// More than any handshake has; who makes us owe more does not read.
constexpr std::size_t kOutBytesMax = 256 * 1024;
/// After so many bytes the caller may let others have a turn.
constexpr std::size_t kWriteBytes = 256 * 1024;

bool would_block(int number) {
  return number == EAGAIN || number == EWOULDBLOCK;
}

std::span<const std::byte> bytes_of(const asio::const_buffer& buffer) {
  return {static_cast<const std::byte*>(buffer.data()), buffer.size()};
}

}  // namespace

/// How OpenSSL reads and writes our socket: never with a signal where the peer is gone, and never
/// with half a record written.
struct SocketBio {
  static Session& session(BIO* bio) { return *static_cast<Session*>(BIO_get_data(bio)); }

  static int write(BIO* bio, const char* bytes, int size) {
    auto& self = session(bio);
    BIO_clear_retry_flags(bio);
    const auto count = static_cast<std::size_t>(size);
    ssize_t sent = 0;
    if (self.out_.empty()) {
      const int more = self.more_ ? MSG_MORE : 0;
      sent = ::send(self.socket_, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT | more);
      if (sent < 0 && !would_block(errno) && errno != EINTR) {
        self.socket_error_ = errno;
        return -1;
      }
      sent = std::max<ssize_t>(sent, 0);
    }
    const auto* const rest = reinterpret_cast<const std::byte*>(bytes) + sent;
    const auto left = count - static_cast<std::size_t>(sent);
    if (self.out_.size() + left > kOutBytesMax) {
      self.socket_error_ = ENOBUFS;
      return -1;
    }
    self.out_.insert(self.out_.end(), rest, rest + left);
    return size;
  }

  static int read(BIO* bio, char* bytes, int size) {
    auto& self = session(bio);
    BIO_clear_retry_flags(bio);
    const auto count = ::recv(self.socket_, bytes, static_cast<std::size_t>(size), MSG_DONTWAIT);
    if (count > 0) return static_cast<int>(count);
    if (count == 0)
      self.ended_ = true;
    else if (would_block(errno) || errno == EINTR)
      BIO_set_retry_read(bio);
    else
      self.socket_error_ = errno;
    return -1;
  }

  static long control(BIO*, int command, long, void*) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;  // nothing waits here
  }

  static int create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  }
};

BioMethod make_socket_method() {
  BioMethod method(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "holmes socket"));
  if (!method || BIO_meth_set_write(method.get(), SocketBio::write) != 1 ||
      BIO_meth_set_read(method.get(), SocketBio::read) != 1 ||
      BIO_meth_set_ctrl(method.get(), SocketBio::control) != 1 ||
      BIO_meth_set_create(method.get(), SocketBio::create) != 1)
    return nullptr;
  return method;
}

Session::Session(std::shared_ptr<const Tls> tls, int socket, Side side)
    : tls_(std::move(tls)), socket_(socket), ssl_(SSL_new(tls_->state().context.get())) {
  BIO* const bio = BIO_new(tls_->state().sockets.get());
  HOLMES_ASSERT(ssl_ && bio != nullptr, "no memory for a TLS connection");
  BIO_set_data(bio, this);
  SSL_set_bio(ssl_.get(), bio, bio);
  if (side == Side::kDialler)
    SSL_set_connect_state(ssl_.get());
  else
    SSL_set_accept_state(ssl_.get());
}

/// Looks at the peer's first byte: who speaks something else is told so in plain words.
bool Session::is_tls(std::error_code& error) {
  constexpr unsigned char kRecordTypeMin = 20;
  constexpr unsigned char kRecordTypeMax = 23;
  unsigned char first = 0;
  const auto count = ::recv(socket_, &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count < 0) {
    error = would_block(errno) ? asio::error::make_error_code(asio::error::would_block)
                               : std::error_code(errno, std::system_category());
    return false;
  }
  if (count == 0) {
    error = asio::error::eof;
    return false;
  }
  if (first >= kRecordTypeMin && first <= kRecordTypeMax) return true;
  foreign_ = true;
  failure_ = ERR_PACK(ERR_LIB_SSL, 0, SSL_R_WRONG_VERSION_NUMBER);
  error = std::error_code(static_cast<int>(failure_), asio::error::get_ssl_category());
  return false;
}

std::error_code Session::error_of(int result) {
  if (socket_error_ != 0) return {socket_error_, std::system_category()};
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return asio::error::would_block;
    case SSL_ERROR_SSL:
      failure_ = ERR_peek_error();
      ERR_clear_error();
      return {static_cast<int>(failure_), asio::error::get_ssl_category()};
    default:
      // No closing alert is asked for: who leaves early is lost, which is what it means here.
      return asio::error::eof;
  }
}

bool Session::handshake(std::error_code& error) {
  error = {};
  if (shaken_) return flush(error);
  ERR_clear_error();
  const bool server = SSL_is_server(ssl_.get()) == 1;
  if (!begun_ && (server || SSL_get_state(ssl_.get()) != TLS_ST_BEFORE)) {
    begun_ = is_tls(error);
    if (!begun_) return false;
  }
  const int result = SSL_do_handshake(ssl_.get());
  shaken_ = result == 1;
  std::error_code flushed;
  flush(flushed);  // also the alert that says why not
  if (shaken_) {
    error = flushed;
    return !error;
  }
  error = error_of(result);
  return false;
}

std::size_t Session::read(std::span<std::byte> to, std::error_code& error) {
  error = failed_;
  std::size_t filled = 0;
  while (!failed_ && filled < to.size()) {
    ERR_clear_error();
    std::size_t count = 0;
    const int result = SSL_read_ex(ssl_.get(), to.data() + filled, to.size() - filled, &count);
    filled += count;
    starved_ = result != 1;
    if (!starved_) continue;
    error = error_of(result);
    if (error != asio::error::would_block) failed_ = error;
    if (filled > 0) error = {};
    break;
  }
  return filled;
}

bool Session::flush(std::error_code& error) {
  error = {};
  std::size_t sent = 0;
  while (sent < out_.size()) {
    const auto count =
        ::send(socket_, out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
      continue;
    }
    if (errno == EINTR) continue;
    error = would_block(errno) ? asio::error::make_error_code(asio::error::would_block)
                               : std::error_code(errno, std::system_category());
    break;
  }
  out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(sent));
  return out_.empty();
}

/// The bytes of the next record: of one long piece where they lie, of short ones gathered.
std::span<const std::byte> Session::next_record(std::span<const asio::const_buffer>& pieces,
                                                std::size_t& skip) {
  gathered_.clear();
  while (!pieces.empty()) {
    const auto rest = bytes_of(pieces.front()).subspan(skip);
    if (gathered_.empty() && rest.size() >= kRecordBytes) {
      skip += kRecordBytes;
      return rest.first(kRecordBytes);
    }
    const auto count = std::min(rest.size(), kRecordBytes - gathered_.size());
    gathered_.insert(gathered_.end(), rest.begin(),
                     rest.begin() + static_cast<std::ptrdiff_t>(count));
    skip += count;
    if (count < rest.size()) break;
    pieces = pieces.subspan(1);
    skip = 0;
  }
  return gathered_;
}

std::size_t Session::write(std::span<const asio::const_buffer> pieces, std::error_code& error) {
  if (!flush(error)) return 0;
  if (owed_ > 0) return std::exchange(owed_, 0);
  std::size_t written = 0;
  for (std::size_t skip = 0; written < kWriteBytes;) {
    const auto record = next_record(pieces, skip);
    if (record.empty()) return written;
    // Records that follow at once leave with this one, which wakes the other end less often.
    more_ =
        !pieces.empty() && skip < pieces.front().size() && written + record.size() < kWriteBytes;
    ERR_clear_error();
    std::size_t count = 0;
    const int result = SSL_write_ex(ssl_.get(), record.data(), record.size(), &count);
    if (result != 1) {
      if (written == 0) error = error_of(result);
      return written;
    }
    HOLMES_ASSERT(count == record.size(), "a record is written whole");
    if (!out_.empty()) {
      owed_ = count;
      if (written == 0) error = asio::error::would_block;
      return written;
    }
    written += count;
  }
  return written;
}

std::optional<CertifiedName> Session::peer() const {
  const Certificate certificate(SSL_get1_peer_certificate(ssl_.get()));
  if (!shaken_ || !certificate) return std::nullopt;
  return name_of(*certificate);
}

Error Session::reason() const {
  return reason_of(failure_, SSL_get_verify_result(ssl_.get()));
}

}  // namespace holmes::transport::tls

#pragma once

// A TLS client that may lack what ours must have: a certificate, a version, a reason to be here.

#include <fcntl.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "holmes/transport/tls.hpp"
#include "raw_peer.hpp"

namespace holmes::transport {

class TlsPeer {
 public:
  /// Dials "127.0.0.1:port"; shows no certificate where `credentials` are empty, and believes any.
  TlsPeer(const std::string& endpoint, const Credentials& credentials, int version = TLS1_3_VERSION)
      : socket_(RawSocket::dial(endpoint)), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_min_proto_version(context_, version);
    SSL_CTX_set_max_proto_version(context_, version);
    if (!credentials.empty()) show(credentials);
    ::fcntl(socket_.descriptor(), F_SETFL, O_NONBLOCK);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, socket_.descriptor());
    BIO_set_callback_ex(SSL_get_wbio(ssl_), note_sent);
    BIO_set_callback_arg(SSL_get_wbio(ssl_), reinterpret_cast<char*>(this));
    SSL_set_connect_state(ssl_);
  }
  TlsPeer(const TlsPeer&) = delete;
  TlsPeer& operator=(const TlsPeer&) = delete;
  ~TlsPeer() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }

  /// Goes on as far as it can; true once the handshake is done or has failed.
  bool shaken() {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_);
    return result == 1 || SSL_get_error(ssl_, result) != SSL_ERROR_WANT_READ;
  }
  bool is_connected() const { return SSL_is_init_finished(ssl_) == 1; }
  void send(std::span<const std::byte> bytes) {
    SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
  }
  /// What is there, decrypted; in `alert` why there will be no more.
  std::vector<std::byte> read() {
    std::vector<std::byte> bytes(64 * 1024);
    ERR_clear_error();
    const int count = SSL_read(ssl_, bytes.data(), static_cast<int>(bytes.size()));
    if (count <= 0 && SSL_get_error(ssl_, count) == SSL_ERROR_SSL)
      alert = ERR_reason_error_string(ERR_peek_error());
    bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return bytes;
  }
  RawSocket& socket() { return socket_; }

  std::string alert;
  std::vector<std::byte> sent;  ///< On the wire.

 private:
  void show(const Credentials& credentials) {
    BIO* const certificate = BIO_new_mem_buf(credentials.certificate.data(), -1);
    BIO* const key = BIO_new_mem_buf(credentials.key.data(), -1);
    X509* const x509 = PEM_read_bio_X509(certificate, nullptr, nullptr, nullptr);
    EVP_PKEY* const secret = PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(context_, x509);
    SSL_CTX_use_PrivateKey(context_, secret);
    EVP_PKEY_free(secret);
    X509_free(x509);
    BIO_free(key);
    BIO_free(certificate);
  }
  static long note_sent(BIO* bio, int operation, const char* bytes, std::size_t, int, long,
                        int result, std::size_t* count) {
    if (operation == (BIO_CB_WRITE | BIO_CB_RETURN) && result > 0) {
      auto& to = reinterpret_cast<TlsPeer*>(BIO_get_callback_arg(bio))->sent;
      const auto* const begin = reinterpret_cast<const std::byte*>(bytes);
      to.insert(to.end(), begin, begin + *count);
    }
    return result;
  }

  RawSocket socket_;
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
};

}  // namespace holmes::transport

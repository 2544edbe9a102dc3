#include "tls/context.hpp"

#include <openssl/pem.h>

#include "tls/name.hpp"

namespace holmes::transport {

namespace tls {

namespace {

/// One read of the socket fetches several records of 16 KiB.
constexpr std::size_t kReadBytes = 128 * 1024;
/// All of them are safe; this is the order of their speed where processors have AES.
constexpr const char* kSuites =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

Error invalid(const std::string& what) {
  return Error(ErrorCode::kInvalidArgument, "credentials: " + what + ": " + last_error());
}

Bio bio_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// A key that wants a password is none of ours: OpenSSL would ask for it on the terminal.
int no_password(char*, int, int, void*) {
  return -1;
}

Result<Certificate> certificate_of(const std::string& pem, const std::string& whose) {
  const auto bio = bio_of(pem);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr));
  if (!certificate) return invalid("the certificate of " + whose + " cannot be read");
  return certificate;
}

Result<CertifiedName> show(SSL_CTX& context, const Credentials& credentials) {
  HOLMES_TRY_ASSIGN(const auto certificate, certificate_of(credentials.certificate, "this end"));
  const auto bio = bio_of(credentials.key);
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  if (!key) return invalid("the key cannot be read");
  auto name = name_of(*certificate);
  if (!name) return invalid("the certificate names no host of a job");
  if (SSL_CTX_use_certificate(&context, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(&context, key.get()) != 1)
    return invalid("key and certificate do not belong together");
  return *std::move(name);
}

Status believe(SSL_CTX& context, const Credentials& credentials) {
  HOLMES_TRY_ASSIGN(const auto authority, certificate_of(credentials.authority, "the authority"));
  if (X509_STORE_add_cert(SSL_CTX_get_cert_store(&context), authority.get()) != 1)
    return invalid("the authority is not accepted");
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

/// TLS 1.3 without anything that shortens a handshake: every connection proves both ends anew.
bool restrict(SSL_CTX& context) {
  SSL_CTX_set_options(&context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(&context, 1);
  SSL_CTX_set_default_read_buffer_len(&context, kReadBytes);
  return SSL_CTX_set_min_proto_version(&context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_max_proto_version(&context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_ciphersuites(&context, kSuites) == 1 &&
         SSL_CTX_set_num_tickets(&context, 0) == 1;
}

}  // namespace

}  // namespace tls

Tls::Tls(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tls::~Tls() = default;

const CertifiedName& Tls::name() const {
  return state_->name;
}

Result<std::shared_ptr<const Tls>> Tls::make(const Credentials& credentials) {
  auto state = std::make_unique<State>();
  state->sockets = tls::make_socket_method();
  state->context.reset(SSL_CTX_new(TLS_method()));
  if (!state->sockets || !state->context || !tls::restrict(*state->context))
    return Error(ErrorCode::kUnavailable,
                 "this machine's OpenSSL cannot do TLS 1.3: " + tls::last_error());
  HOLMES_TRY_ASSIGN(state->name, tls::show(*state->context, credentials));
  HOLMES_TRY(tls::believe(*state->context, credentials));
  return std::make_shared<const Tls>(std::move(state));
}

}  // namespace holmes::transport

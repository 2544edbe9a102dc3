// Certificates of one job: an authority that signs itself, and what it signs for each host.

#include <array>

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "holmes/transport/tls.hpp"
#include "tls/name.hpp"
#include "tls/openssl.hpp"

namespace holmes::transport {

using tls::Certificate;
using tls::Key;

struct Authority::State {
  Key key;
  Certificate certificate;
};

namespace {

constexpr std::size_t kCommonNameBytesMax = 64;  // of X.509

Error failed(const std::string& what) {
  return Error(ErrorCode::kOutOfResources, "cannot make " + what + ": " + tls::last_error());
}

Result<Key> make_key() {
  Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return failed("a key");
  return key;
}

/// Random, as two certificates of one authority must not have the same.
bool set_serial(X509& certificate) {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return false;
  bytes[0] &= 0x7f;
  using Number = std::unique_ptr<BIGNUM, tls::Freed<BN_free>>;
  const Number number(BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr;
}

/// For people and their tools; what counts is the alternative name.
bool set_common_name(X509_NAME* name, std::string text) {
  if (text.size() > kCommonNameBytesMax) text.resize(kCommonNameBytesMax);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  return X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_ASC, bytes,
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

bool add_extension(X509& certificate, X509& issuer, int kind, const char* value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  using Extension = std::unique_ptr<X509_EXTENSION, tls::Freed<X509_EXTENSION_free>>;
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  return extension && X509_add_ext(&certificate, extension.get(), -1) == 1;
}

/// All but extensions, issuer and signature.
Result<Certificate> begin(const std::string& common_name, const Validity& validity, EVP_PKEY* key) {
  Certificate certificate(X509_new());
  constexpr long kVersion3 = 2;
  if (certificate && X509_set_version(certificate.get(), kVersion3) == 1 &&
      set_serial(*certificate) &&
      X509_gmtime_adj(X509_getm_notBefore(certificate.get()), validity.from.count()) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(certificate.get()), validity.to.count()) != nullptr &&
      X509_set_pubkey(certificate.get(), key) == 1 &&
      set_common_name(X509_get_subject_name(certificate.get()), common_name))
    return certificate;
  return failed("a certificate");
}

bool sign(X509& certificate, X509& issuer, EVP_PKEY* key) {
  return X509_set_issuer_name(&certificate, X509_get_subject_name(&issuer)) == 1 &&
         X509_sign(&certificate, key, nullptr) > 0;
}

std::string text_of(const tls::Bio& bio) {
  char* bytes = nullptr;
  const auto count = BIO_get_mem_data(bio.get(), &bytes);
  return std::string(bytes, static_cast<std::size_t>(count));
}

Result<std::string> pem_of(X509& certificate) {
  const tls::Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), &certificate) != 1) return failed("a PEM text");
  return text_of(bio);
}

Result<std::string> pem_of(EVP_PKEY& key) {
  const tls::Bio bio(BIO_new(BIO_s_secmem()));
  if (!bio || PEM_write_bio_PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return failed("a PEM text");
  return text_of(bio);
}

}  // namespace

Authority::Authority(std::string job, std::unique_ptr<State> state)
    : job_(std::move(job)), state_(std::move(state)) {}
Authority::Authority(Authority&&) noexcept = default;
Authority& Authority::operator=(Authority&&) noexcept = default;
Authority::~Authority() = default;

Result<Authority> Authority::make(const std::string& job, const Validity& validity) {
  HOLMES_TRY_ASSIGN(auto key, make_key());
  HOLMES_TRY_ASSIGN(auto certificate, begin("Holmes job " + job, validity, key.get()));
  auto& x509 = *certificate;
  if (!add_extension(x509, x509, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(x509, x509, NID_key_usage, "critical,keyCertSign") ||
      !add_extension(x509, x509, NID_subject_key_identifier, "hash") ||
      !sign(x509, x509, key.get()))
    return failed("the job's authority");
  return Authority(job, std::make_unique<State>(State{std::move(key), std::move(certificate)}));
}

Result<Credentials> Authority::issue(const std::string& host, const Validity& validity) const {
  const std::string common_name = host.empty() ? "coordinator" : host;
  HOLMES_TRY_ASSIGN(const auto key, make_key());
  HOLMES_TRY_ASSIGN(const auto certificate, begin(common_name, validity, key.get()));
  auto& x509 = *certificate;
  auto& issuer = *state_->certificate;
  HOLMES_TRY(tls::add_name(x509, {job_, host}));
  if (!add_extension(x509, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(x509, issuer, NID_key_usage, "critical,digitalSignature") ||
      !add_extension(x509, issuer, NID_ext_key_usage, "serverAuth,clientAuth") ||
      !add_extension(x509, issuer, NID_authority_key_identifier, "keyid:always") ||
      !sign(x509, issuer, state_->key.get()))
    return failed("a certificate");
  Credentials credentials;
  HOLMES_TRY_ASSIGN(credentials.authority, pem_of(issuer));
  HOLMES_TRY_ASSIGN(credentials.certificate, pem_of(x509));
  HOLMES_TRY_ASSIGN(credentials.key, pem_of(*key));
  return credentials;
}

Result<std::string> unique_job_name(const std::string& name) {
  std::array<unsigned char, 8> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    return failed("a random number");
  std::string result = name + "-";
  constexpr const char* kDigits = "0123456789abcdef";
  for (const auto byte : bytes) result += {kDigits[byte >> 4], kDigits[byte & 15]};
  return result;
}

}  // namespace holmes::transport

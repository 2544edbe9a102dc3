// OpenSSL's errors in words of this project: what, and what to do.

#include "tls/session.hpp"

namespace holmes::transport::tls {

namespace {

Error refused(std::string what) {
  return Error(ErrorCode::kRefused, std::move(what));
}

std::string text_of(unsigned long code) {
  const char* const reason = ERR_reason_error_string(code);
  return reason == nullptr ? "no reason is known" : reason;
}

Error bad_certificate(long verified) {
  switch (verified) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return refused(
          "its certificate has expired: start the job anew, or set this machine's clock");
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return refused("its certificate is not valid yet: set the clocks of both machines");
    default:
      return refused("its certificate is not of this job's authority (" +
                     std::string(X509_verify_cert_error_string(verified)) + ")");
  }
}

/// The peer's complaint about our certificate.
Error complaint(const std::string& what) {
  return refused("it does not accept the certificate of this end: " + what);
}

}  // namespace

Error reason_of(unsigned long code, long verified) {
  if (verified != X509_V_OK && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
    return bad_certificate(verified);
  switch (ERR_GET_REASON(code)) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return refused("it shows no certificate");
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return refused("it does not speak TLS 1.3, the only version that is allowed");
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
      return refused(
          "it does not speak TLS, but this job's connections are encrypted: start both ends with "
          "the same transport.security");
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return complaint("it is not of its job's authority");
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return complaint("it has expired, or is not valid yet, by the clock there");
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return complaint("none was shown");
    default:
      return Error(ErrorCode::kCorrupt, "its TLS is broken: " + text_of(code));
  }
}

}  // namespace holmes::transport::tls

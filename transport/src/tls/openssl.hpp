#pragma once

// Owners of OpenSSL's objects, and its errors as ours.

#include <memory>
#include <string>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "holmes/base/result.hpp"

namespace holmes::transport::tls {

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using BioMethod = std::unique_ptr<BIO_METHOD, Freed<BIO_meth_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using SslContext = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Ssl = std::unique_ptr<SSL, Freed<SSL_free>>;

/// What OpenSSL says about its last failure in this thread; forgets it.
inline std::string last_error() {
  const auto code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "no reason is known" : reason;
}

}  // namespace holmes::transport::tls

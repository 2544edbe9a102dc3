#pragma once

// The name in a certificate, as a URI among its alternative names:
//   holmes:job/demo-7/host/a0    holmes:job/demo-7/coordinator
// with every byte that is not a letter, digit, '-', '.', '_' or '~' written as %XX, so that no two
// names look the same.

#include <optional>
#include <vector>

#include "holmes/transport/tls.hpp"
#include "tls/openssl.hpp"
#include "wire/codec.hpp"

namespace holmes::transport::tls {

std::string to_uri(const CertifiedName& name);
std::optional<CertifiedName> from_uri(std::string_view uri);

Status add_name(X509& certificate, const CertifiedName& name);
/// The name in a certificate; none if it has not exactly one of ours.
std::optional<CertifiedName> name_of(const X509& certificate);

/// kRefused unless `hello` says what the certificate of who sent it says. `host_names`: of the
/// job's hosts by number, for hellos that say a number.
Status check_claim(const wire::Hello& hello, const std::optional<CertifiedName>& certified,
                   const std::vector<std::string>& host_names);

}  // namespace holmes::transport::tls

#include "tls/name.hpp"

#include <charconv>
#include <limits>

#include <openssl/x509v3.h>

namespace holmes::transport {

std::string to_string(const CertifiedName& name) {
  return (name.host.empty() ? "the coordinator" : "host " + name.host) + " of job " + name.job;
}

namespace tls {

namespace {

constexpr std::string_view kScheme = "holmes:job/";
constexpr std::string_view kCoordinator = "/coordinator";
constexpr std::string_view kHost = "/host/";
constexpr std::string_view kDigits = "0123456789ABCDEF";

bool is_plain(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') ||
         std::string_view("-._~").find(letter) != std::string::npos;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (is_plain(letter)) {
      result += letter;
      continue;
    }
    const auto byte = static_cast<unsigned char>(letter);
    result += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return result;
}

/// None unless `text` is just what escaped() makes of something.
std::optional<std::string> unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    unsigned byte = 0;
    const auto digits = text.substr(i + 1, 2);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || parsed.ptr != digits.data() + 2) return std::nullopt;
    result += static_cast<char>(byte);
    i += 2;
  }
  if (escaped(result) != text) return std::nullopt;
  return result;
}

using GeneralNames = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;

Error refused(std::string what) {
  return Error(ErrorCode::kRefused, std::move(what));
}

/// Whom a hello says it is from.
Result<CertifiedName> claim_of(const wire::Hello& hello,
                               const std::vector<std::string>& host_names) {
  constexpr auto kNone = std::numeric_limits<std::uint32_t>::max();
  if (hello.host.value() == kNone) return CertifiedName{hello.job, hello.host_name};
  if (hello.host.index() >= host_names.size())
    return refused("it says it is host number " + std::to_string(hello.host.value()) +
                   ", but the job has " + std::to_string(host_names.size()) + " hosts");
  const auto& name = host_names[hello.host.index()];
  if (!hello.host_name.empty() && hello.host_name != name)
    return refused("it says it is host " + hello.host_name + " with the number of host " + name);
  return CertifiedName{hello.job, name};
}

}  // namespace

std::string to_uri(const CertifiedName& name) {
  const std::string job = std::string(kScheme) + escaped(name.job);
  if (name.host.empty()) return job + std::string(kCoordinator);
  return job + std::string(kHost) + escaped(name.host);
}

std::optional<CertifiedName> from_uri(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::nullopt;
  uri.remove_prefix(kScheme.size());
  const auto slash = uri.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto job = unescaped(uri.substr(0, slash));
  const auto rest = uri.substr(slash);
  if (!job) return std::nullopt;
  if (rest == kCoordinator) return CertifiedName{*job, ""};
  if (!rest.starts_with(kHost) || rest.size() == kHost.size()) return std::nullopt;
  const auto host = unescaped(rest.substr(kHost.size()));
  if (!host) return std::nullopt;
  return CertifiedName{*job, *host};
}

Status add_name(X509& certificate, const CertifiedName& name) {
  const std::string uri = to_uri(name);
  const GeneralNames names(GENERAL_NAMES_new());
  GENERAL_NAME* const entry = GENERAL_NAME_new();
  ASN1_IA5STRING* const text = ASN1_IA5STRING_new();
  const bool made = names && entry != nullptr && text != nullptr &&
                    ASN1_STRING_set(text, uri.data(), static_cast<int>(uri.size())) == 1;
  if (entry != nullptr) GENERAL_NAME_set0_value(entry, GEN_URI, text);  // owns the text
  const bool pushed = made && sk_GENERAL_NAME_push(names.get(), entry) > 0;
  if (!pushed) GENERAL_NAME_free(entry);
  if (pushed && X509_add1_ext_i2d(&certificate, NID_subject_alt_name, names.get(), 0,
                                  X509V3_ADD_DEFAULT) == 1)
    return {};
  return Error(ErrorCode::kOutOfResources, "a certificate's name: " + last_error());
}

std::optional<CertifiedName> name_of(const X509& certificate) {
  const GeneralNames names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (!names || sk_GENERAL_NAME_num(names.get()) != 1) return std::nullopt;
  const auto* const entry = sk_GENERAL_NAME_value(names.get(), 0);
  if (entry->type != GEN_URI) return std::nullopt;
  const auto* const text = entry->d.uniformResourceIdentifier;
  return from_uri({reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                   static_cast<std::size_t>(ASN1_STRING_length(text))});
}

Status check_claim(const wire::Hello& hello, const std::optional<CertifiedName>& certified,
                   const std::vector<std::string>& host_names) {
  if (!certified) return refused("its certificate names no host of a job");
  HOLMES_TRY_ASSIGN(const auto claim, claim_of(hello, host_names));
  if (claim == *certified) return {};
  return refused("it says it is " + to_string(claim) + ", but its certificate is that of " +
                 to_string(*certified));
}

}  // namespace tls

}  // namespace holmes::transport

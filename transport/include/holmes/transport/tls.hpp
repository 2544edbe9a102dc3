#pragma once

// Mutual TLS 1.3 for the tcp backend. Both ends show a certificate of the job's authority, and what
// a certificate says must be what its owner's hello says: no host can pose as another.
//
// Tls is what one process shows and believes; contexts share it, from any thread. Authority makes
// the certificates of one job: a value that holds a secret key in memory and nowhere else.

#include <chrono>
#include <memory>
#include <string>

#include "holmes/base/credentials.hpp"
#include "holmes/base/result.hpp"

namespace holmes::transport {

/// Whom a certificate is for.
struct CertifiedName {
  std::string job;
  std::string host;  ///< Its name in the cluster file; empty: the job's coordinator.

  friend bool operator==(const CertifiedName&, const CertifiedName&) = default;
};
/// "host a0 of job demo-7".
std::string to_string(const CertifiedName& name);

class Tls {
 public:
  /// kInvalidArgument: texts that are no certificates, or that do not belong together.
  static Result<std::shared_ptr<const Tls>> make(const Credentials& credentials);
  struct State;
  explicit Tls(std::unique_ptr<State> state);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// Whom its own certificate is for.
  const CertifiedName& name() const;
  const State& state() const { return *state_; }

 private:
  const std::unique_ptr<State> state_;
};

/// From when to when, seen from now. Hosts' clocks may differ by an hour.
struct Validity {
  std::chrono::seconds from = -std::chrono::hours(1);
  std::chrono::seconds to = std::chrono::days(30);
};

class Authority {
 public:
  static Result<Authority> make(const std::string& job, const Validity& validity = {});
  Authority(Authority&&) noexcept;
  Authority& operator=(Authority&&) noexcept;
  ~Authority();

  const std::string& job() const { return job_; }
  /// A new key and its certificate. `host` empty: for the coordinator.
  Result<Credentials> issue(const std::string& host, const Validity& validity = {}) const;

 private:
  struct State;
  Authority(std::string job, std::unique_ptr<State> state);

  std::string job_;
  std::unique_ptr<State> state_;
};

/// A job's name with something random behind it that no other job has.
Result<std::string> unique_job_name(const std::string& name);

}  // namespace holmes::transport

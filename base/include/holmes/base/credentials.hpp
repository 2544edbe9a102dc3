#pragma once

// What a process of a job proves itself with: three PEM texts. Who makes them is the transport's
// Authority; this is only the value that is handed on. The key is a secret: it goes over no command
// line, into no environment and into no log.

#include <string>

namespace holmes {

struct Credentials {
  std::string authority;    ///< Certificate of the job's authority: whom the process believes.
  std::string certificate;  ///< Its own.
  std::string key;          ///< Of its own certificate.

  bool empty() const { return certificate.empty(); }
};

}  // namespace holmes

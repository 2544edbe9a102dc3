#pragma once

// Where machines are, seen from here. Plain functions, on the caller's thread; they may block for
// seconds while a name is looked up.

#include <string>

#include "holmes/base/result.hpp"

namespace holmes::launcher {

struct Place {
  std::string address;  ///< The machine's own, as digits.
  std::string own;      ///< This machine's address on the way to it.
  bool here = false;    ///< It is this machine.
};

/// Of a name or an address. kUnavailable: it cannot be looked up, or there is no way to it.
Result<Place> place_of(const std::string& name);

/// "NAME:PORT" or "ADDRESS:PORT" with the address as digits. kInvalidArgument, kUnavailable.
Result<std::string> look_up_endpoint(const std::string& endpoint);

}  // namespace holmes::launcher

#pragma once

// The TOML library, header-only, with one set of options for all who include it: no exceptions for
// bad text, and bounded nesting, since each level is a level of recursion in the library.

#include <stdexcept>

namespace holmes::actors {

/// The library asserts, or in release assumes, what some hostile texts break (a table name that
/// begins with '=' for one). Here its assertions are exceptions: parse within capture().
[[noreturn]] inline void fail_toml_assertion() {
  throw std::logic_error("not valid TOML");
}

}  // namespace holmes::actors

#define TOML_EXCEPTIONS 0
#define TOML_MAX_NESTED_VALUES 16
#define TOML_ASSERT(condition) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::holmes::actors::fail_toml_assertion())
#pragma push_macro("NDEBUG")
#undef NDEBUG  // it would turn the library's assertions into assumptions
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

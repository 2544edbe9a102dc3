#pragma once

// Result<T> is a value or an Error, Status a success or an Error. Member names are those of
// std::expected, which will replace this when the project moves to C++23.

#include <type_traits>
#include <utility>
#include <variant>

#include "holmes/base/assert.hpp"
#include "holmes/base/error.hpp"

namespace holmes {

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = Error;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return checked(), std::get<0>(state_); }
  const T& value() const& { return checked(), std::get<0>(state_); }
  T&& value() && { return checked(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    HOLMES_ASSERT(!has_value(), "asked a successful Result for its error");
    return std::get<1>(state_);
  }

  template <class U>
  T value_or(U&& fallback) const& {
    return has_value() ? value() : static_cast<T>(std::forward<U>(fallback));
  }

 private:
  void checked() const { HOLMES_ASSERT(has_value(), std::get<1>(state_).message().c_str()); }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  using error_type = Error;

  Result() = default;
  Result(Error error) : state_(std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  void value() const { HOLMES_ASSERT(has_value(), std::get<1>(state_).message().c_str()); }
  const Error& error() const {
    HOLMES_ASSERT(!has_value(), "asked a successful Status for its error");
    return std::get<1>(state_);
  }

 private:
  std::variant<std::monostate, Error> state_;
};

using Status = Result<void>;

/// Runs `fn`, turning any exception of a throwing library into kInternal: the one seam of a module.
template <class Fn>
auto capture(Fn&& fn) -> Result<std::invoke_result_t<Fn>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Fn>>) {
      std::forward<Fn>(fn)();
      return {};
    } else {
      return std::forward<Fn>(fn)();
    }
  } catch (const std::exception& e) {
    return Error(ErrorCode::kInternal, e.what());
  }
}

}  // namespace holmes

#define HOLMES_CONCAT_INNER(a, b) a##b
#define HOLMES_CONCAT(a, b) HOLMES_CONCAT_INNER(a, b)

/// Returns the error of `expression` (a Status or Result) from the calling function, if it has one.
#define HOLMES_TRY(expression)                                                           \
  do {                                                                                   \
    if (auto holmes_status = (expression); !holmes_status) return holmes_status.error(); \
  } while (false)

/// HOLMES_TRY_ASSIGN(auto x, f()): x is f()'s value, or the calling function returns f()'s error.
#define HOLMES_TRY_ASSIGN(declaration, expression)             \
  auto HOLMES_CONCAT(holmes_result_, __LINE__) = (expression); \
  if (!HOLMES_CONCAT(holmes_result_, __LINE__))                \
    return HOLMES_CONCAT(holmes_result_, __LINE__).error();    \
  declaration = std::move(HOLMES_CONCAT(holmes_result_, __LINE__)).value()

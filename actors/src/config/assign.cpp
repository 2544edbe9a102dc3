#include "config/assign.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <type_traits>
#include <vector>

#include "holmes/base/suggest.hpp"

namespace holmes::actors {
namespace {

constexpr std::size_t kStringBytesMax = 4096;

template <class T>
constexpr bool kIsInteger = std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t>;
template <class T>
constexpr bool kIsNumber = std::is_floating_point_v<T>;

Error invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.7g", value);
  return text.data();
}

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) {
    text += text.empty() ? "" : ", ";
    text += word;
  }
  return text;
}

Status out_of_range(const Rule& rule, const std::string& value) {
  return invalid(value + " is out of range; it must lie between " + number(rule.min) + " and " +
                 number(rule.max));
}

/// The index of `text` among the rule's choices.
Result<std::size_t> choice(const Rule& rule, const std::string& text) {
  for (std::size_t i = 0; i < rule.choices.size(); ++i) {
    if (rule.choices[i] == text) return i;
  }
  return invalid("'" + text + "' is none of " + joined(rule.choices) +
                 did_you_mean(text, rule.choices));
}

Status check_string(const std::string& text) {
  if (text.empty()) return invalid("must not be empty");
  if (text.size() > kStringBytesMax) {
    return invalid("has over " + std::to_string(kStringBytesMax) + " bytes");
  }
  for (const char letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) {
      return invalid("must not hold control characters");
    }
  }
  return {};
}

template <class T>
Status store(T& target, const Rule& rule, std::int64_t value) {
  const auto number_value = static_cast<double>(value);
  if (number_value < rule.min || number_value > rule.max) {
    return out_of_range(rule, std::to_string(value));
  }
  target = static_cast<T>(value);
  return {};
}

template <class T>
Status store(T& target, const Rule& rule, double value) {
  if (!std::isfinite(value) || value < rule.min || value > rule.max) {
    return out_of_range(rule, number(value));
  }
  target = static_cast<T>(value);
  return {};
}

template <class T>
Status store(T& target, const Rule& rule, const std::string& text) {
  HOLMES_TRY(check_string(text));
  if constexpr (std::is_enum_v<T>) {
    HOLMES_TRY_ASSIGN(const std::size_t index, choice(rule, text));
    target = static_cast<T>(index);
  } else {
    if (!rule.choices.empty()) HOLMES_TRY(choice(rule, text));
    target = text;
  }
  return {};
}

template <class T>
Status assign_node(T& target, const Rule& rule, const Node& node) {
  const auto* integer = std::get_if<std::int64_t>(&node.value);
  if constexpr (std::is_same_v<T, bool>) {
    if (const auto* value = std::get_if<bool>(&node.value)) return target = *value, Status{};
  } else if constexpr (kIsInteger<T>) {
    if (integer != nullptr) return store(target, rule, *integer);
  } else if constexpr (kIsNumber<T>) {
    if (integer != nullptr) return store(target, rule, static_cast<double>(*integer));
    if (const auto* value = std::get_if<double>(&node.value)) return store(target, rule, *value);
  } else {
    if (const auto* value = std::get_if<std::string>(&node.value)) {
      return store(target, rule, *value);
    }
  }
  return invalid("wants " + describe_type(&target, rule) + ", not " + std::string(type_name(node)));
}

template <class T>
Status assign_string(T& target, const Rule& rule, std::string_view text) {
  const char* end = text.data() + text.size();
  const auto wrong = [&] {
    return invalid("wants " + describe_type(&target, rule) + ", not '" + std::string(text) + "'");
  };
  if constexpr (std::is_same_v<T, bool>) {
    if (text != "true" && text != "false") return wrong();
    target = text == "true";
    return {};
  } else if constexpr (kIsInteger<T>) {
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end) return wrong();
    return store(target, rule, value);
  } else if constexpr (kIsNumber<T>) {
    double value = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end) return wrong();
    return store(target, rule, value);
  } else {
    const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
    return store(target, rule, std::string(quoted ? text.substr(1, text.size() - 2) : text));
  }
}

}  // namespace

std::string describe_type(const Target& target, const Rule& rule) {
  return std::visit(
      [&]<class T>(const T*) -> std::string {
        if constexpr (std::is_same_v<T, bool>) return "true or false";
        if constexpr (kIsInteger<T>) return "an integer";
        if constexpr (kIsNumber<T>) return "a number";
        if (!rule.choices.empty()) return "one of " + joined(rule.choices);
        return std::is_same_v<T, std::filesystem::path> ? "a path" : "a string";
      },
      target);
}

std::string describe_range(const Target& target, const Rule& rule) {
  return std::visit(
      [&]<class T>(const T*) -> std::string {
        if constexpr (kIsInteger<T> || kIsNumber<T>) {
          return number(rule.min) + " .. " + number(rule.max);
        }
        return "";
      },
      target);
}

std::string show(const Target& target, const Rule& rule) {
  return std::visit(
      [&]<class T>(const T* value) -> std::string {
        if constexpr (std::is_same_v<T, bool>) {
          return *value ? "true" : "false";
        } else if constexpr (kIsInteger<T>) {
          return std::to_string(*value);
        } else if constexpr (kIsNumber<T>) {
          return number(*value);
        } else if constexpr (std::is_enum_v<T>) {
          return "\"" + std::string(rule.choices[static_cast<std::size_t>(*value)]) + "\"";
        } else {
          return "\"" + std::filesystem::path(*value).string() + "\"";
        }
      },
      target);
}

Status assign(const Target& target, const Rule& rule, const Node& value) {
  return std::visit([&](auto* field) { return assign_node(*field, rule, value); }, target);
}

Status assign_text(const Target& target, const Rule& rule, std::string_view text) {
  return std::visit([&](auto* field) { return assign_string(*field, rule, text); }, target);
}

}  // namespace holmes::actors

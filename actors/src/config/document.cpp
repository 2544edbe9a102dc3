#include "config/document.hpp"

#include <algorithm>

#include "config/toml_library.hpp"
#include "holmes/base/limits.hpp"

namespace holmes::actors {
namespace {

/// Dots of one line: each dot of a key nests a table, which the library does not bound.
constexpr std::ptrdiff_t kDotsOfLineMax = 64;

Error invalid(const std::string& where, const std::string& what) {
  return Error(ErrorCode::kInvalidArgument, where + ": " + what);
}

Status check_size(std::string_view text, const std::string& file) {
  if (text.size() > limits::kConfigBytesMax) {
    return invalid(file, "has " + std::to_string(text.size()) + " bytes; at most " +
                             std::to_string(limits::kConfigBytesMax) + " are read");
  }
  int line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto dots = std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                 text.begin() + static_cast<std::ptrdiff_t>(end), '.');
    if (dots > kDotsOfLineMax) return invalid(place(file, line), "too many dots on one line");
    begin = end + 1;
  }
  return {};
}

Node convert(const toml::node& source);

Table convert_table(const toml::table& source) {
  Table table;
  for (const auto& [key, value] : source) {
    table.push_back(
        {std::string(key.str()), static_cast<int>(key.source().begin.line), convert(value)});
  }
  std::stable_sort(table.begin(), table.end(),
                   [](const Member& a, const Member& b) { return a.line < b.line; });
  return table;
}

Array convert_array(const toml::array& source) {
  Array array;
  for (const toml::node& element : source) array.push_back(convert(element));
  return array;
}

Node convert(const toml::node& source) {
  Node node;
  node.line = static_cast<int>(source.source().begin.line);
  if (const auto* boolean = source.as_boolean()) {
    node.value = boolean->get();
  } else if (const auto* integer = source.as_integer()) {
    node.value = integer->get();
  } else if (const auto* number = source.as_floating_point()) {
    node.value = number->get();
  } else if (const auto* text = source.as_string()) {
    node.value = text->get();
  } else if (const auto* array = source.as_array()) {
    node.value = convert_array(*array);
  } else if (const auto* table = source.as_table()) {
    node.value = convert_table(*table);
  } else {
    node.value = Other{};
  }
  return node;
}

/// Lines [0, count) of `text`.
std::string_view first_lines(std::string_view text, int count) {
  std::size_t end = 0;
  for (int i = 0; i < count && end < text.size(); ++i) {
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  }
  return text.substr(0, end);
}

/// The line at which the library gave up without saying where: the first one with which it does.
int failing_line(std::string_view text) {
  int good = 0;
  int bad = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
  while (bad - good > 1) {
    const int middle = good + (bad - good) / 2;
    const auto parsed = capture([&] { return toml::parse(first_lines(text, middle)).failed(); });
    (parsed ? good : bad) = middle;
  }
  return bad;
}

}  // namespace

std::string_view type_name(const Node& node) {
  constexpr std::string_view kNames[] = {"true or false", "an integer", "a number",      "a string",
                                         "an array",      "a table",    "a date or time"};
  return kNames[node.value.index()];
}

std::string place(const std::string& file, int line) {
  return file + ":" + std::to_string(line);
}

Result<Table> parse_document(std::string_view text, const std::string& file) {
  HOLMES_TRY(check_size(text, file));
  const auto parsed = capture([&]() -> Result<Table> {
    const toml::parse_result result = toml::parse(text);
    if (result) return convert_table(result.table());
    const toml::parse_error& error = result.error();
    return invalid(place(file, static_cast<int>(error.source().begin.line)),
                   std::string(error.description()));
  });
  if (!parsed) return invalid(place(file, failing_line(text)), parsed.error().message());
  return *parsed;
}

}  // namespace holmes::actors

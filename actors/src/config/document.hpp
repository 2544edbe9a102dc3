#pragma once

// A parsed TOML document as plain values with line numbers, so that one translation unit alone
// knows the TOML library. Only what configuration needs: dates are kept as `Other`.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "holmes/base/result.hpp"

namespace holmes::actors {

struct Node;
struct Member;
using Array = std::vector<Node>;
using Table = std::vector<Member>;  // In the order of the file.
struct Other {};

struct Node {
  int line = 0;
  std::variant<bool, std::int64_t, double, std::string, Array, Table, Other> value;
};

struct Member {
  std::string key;
  int line = 0;  ///< Of the key.
  Node node;
};

/// What a value is, for messages: "an integer", "a table", ...
std::string_view type_name(const Node& node);

/// "file:12".
std::string place(const std::string& file, int line);

/// kInvalidArgument "file:line: what is wrong" for text that is not TOML; also for text over
/// limits::kConfigBytesMax and for nesting that no configuration needs.
Result<Table> parse_document(std::string_view text, const std::string& file);

}  // namespace holmes::actors

#pragma once

// The [[...]] entries of a cluster file: reading their fields, and errors that name line and key.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/assign.hpp"
#include "config/document.hpp"

namespace holmes::actors {

/// One [[...]] entry of the file.
struct Entry {
  const std::string* file = nullptr;
  std::string_view section;  ///< "host.nic"
  int line = 0;
  const Table* table = nullptr;

  Error invalid(int at, const std::string& what) const;
  /// The line of `key`, or of the entry where it is not given.
  int line_of(std::string_view key) const;
  /// The value of `key`; nullptr when it is not given.
  const Node* find(std::string_view key) const;
  Error invalid(std::string_view key, const std::string& what) const;
};

struct Field {
  std::string_view name;
  Target target;
  Rule rule = {};
  bool required = false;
};

/// Fills `fields`; `children` are the names of nested entries and of lists, which are read
/// elsewhere.
Status read_fields(const Entry& entry, const std::vector<Field>& fields,
                   const std::vector<std::string_view>& children = {});

/// The entries [[section]] below `table`, under `key`; none is fine.
Result<std::vector<Entry>> entries(const Table& table, std::string_view key,
                                   std::string_view section, const std::string& file);

/// The whole numbers from 0 to below `end` in the list `key` of `entry`, each once; none when it is
/// not given.
Result<std::vector<std::uint32_t>> read_indices(const Entry& entry, std::string_view key,
                                                std::size_t end);

/// Names seen so far and their lines.
class Names {
 public:
  /// `name` is a plain one and new.
  Status add(const Entry& entry, const std::string& what, const std::string& name);
  bool empty() const { return lines_.empty(); }
  bool contains(const std::string& name) const { return lines_.contains(name); }
  std::string near(const std::string& name) const;

 private:
  std::map<std::string, int> lines_;
};

}  // namespace holmes::actors

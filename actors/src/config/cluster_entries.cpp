#include "config/cluster_entries.hpp"

#include <algorithm>

#include "config/cluster_keys.hpp"
#include "holmes/base/assert.hpp"
#include "holmes/base/suggest.hpp"
#include "holmes/partition/cluster.hpp"

namespace holmes::actors {
namespace {

/// Lists of numbers are read elsewhere, so that some of `children` are keys.
bool are_documented(const Entry& entry, const std::vector<Field>& fields,
                    const std::vector<std::string_view>& children) {
  std::size_t known = 0;
  for (const ClusterKey& key : cluster_keys()) {
    if (key.entry != entry.section) continue;
    const bool is_field = std::any_of(fields.begin(), fields.end(), [&](const Field& field) {
      return field.name == key.name && field.required == key.default_text.empty();
    });
    if (is_field) ++known;
    if (!is_field && std::find(children.begin(), children.end(), key.name) == children.end())
      return false;
  }
  return known == fields.size();
}

}  // namespace

Error Entry::invalid(int at, const std::string& what) const {
  return Error(ErrorCode::kInvalidArgument, place(*file, at) + ": " + what);
}

int Entry::line_of(std::string_view key) const {
  for (const Member& member : *table) {
    if (member.key == key) return member.line;
  }
  return line;
}

const Node* Entry::find(std::string_view key) const {
  for (const Member& member : *table) {
    if (member.key == key) return &member.node;
  }
  return nullptr;
}

Error Entry::invalid(std::string_view key, const std::string& what) const {
  return invalid(line_of(key),
                 "[[" + std::string(section) + "]] " + std::string(key) + ": " + what);
}

Status read_fields(const Entry& entry, const std::vector<Field>& fields,
                   const std::vector<std::string_view>& children) {
  HOLMES_ASSERT(are_documented(entry, fields, children),
                "the reader knows the documented keys of a cluster file");
  for (const Member& member : *entry.table) {
    if (std::find(children.begin(), children.end(), member.key) != children.end()) continue;
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& f) { return f.name == member.key; });
    if (field == fields.end()) {
      std::vector<std::string_view> names = children;
      for (const Field& known : fields) names.push_back(known.name);
      return entry.invalid(member.line, "unknown key '" + member.key.substr(0, 64) + "' in [[" +
                                            std::string(entry.section) + "]]" +
                                            did_you_mean(member.key, names));
    }
    if (const Status status = assign(field->target, field->rule, member.node); !status) {
      return entry.invalid(member.key, status.error().message());
    }
  }
  for (const Field& field : fields) {
    if (!field.required) continue;
    const auto given = [&](const Member& member) { return member.key == field.name; };
    if (std::none_of(entry.table->begin(), entry.table->end(), given)) {
      return entry.invalid(entry.line, "[[" + std::string(entry.section) + "]] needs the key '" +
                                           std::string(field.name) + "'");
    }
  }
  return {};
}

Result<std::vector<Entry>> entries(const Table& table, std::string_view key,
                                   std::string_view section, const std::string& file) {
  std::vector<Entry> found;
  for (const Member& member : table) {
    if (member.key != key) continue;
    const auto* array = std::get_if<Array>(&member.node.value);
    const auto wrong = [&](int line) {
      return Error(ErrorCode::kInvalidArgument, place(file, line) + ": '" + std::string(key) +
                                                    "' is a list: write [[" + std::string(section) +
                                                    "]] before each entry");
    };
    if (array == nullptr) return wrong(member.line);
    for (const Node& node : *array) {
      const auto* entry = std::get_if<Table>(&node.value);
      if (entry == nullptr) return wrong(node.line);
      found.push_back({&file, section, node.line, entry});
    }
  }
  return found;
}

Result<std::vector<std::uint32_t>> read_indices(const Entry& entry, std::string_view key,
                                                std::size_t end) {
  std::vector<std::uint32_t> found;
  const Node* node = entry.find(key);
  if (node == nullptr) return found;
  const auto* list = std::get_if<Array>(&node->value);
  if (list == nullptr) {
    return entry.invalid(key,
                         "wants a list of device numbers, not " + std::string(type_name(*node)));
  }
  for (const Node& item : *list) {
    const auto* number = std::get_if<std::int64_t>(&item.value);
    if (number == nullptr) {
      return entry.invalid(key, "wants device numbers, not " + std::string(type_name(item)));
    }
    if (*number < 0 || static_cast<std::uint64_t>(*number) >= end) {
      return entry.invalid(key, std::to_string(*number) + " is no device of the host, which has " +
                                    std::to_string(end) + ", numbered from 0");
    }
    const auto value = static_cast<std::uint32_t>(*number);
    if (std::find(found.begin(), found.end(), value) != found.end()) {
      return entry.invalid(key, "names device " + std::to_string(value) + " twice");
    }
    found.push_back(value);
  }
  return found;
}

Status Names::add(const Entry& entry, const std::string& what, const std::string& name) {
  if (const Status status = partition::check_name(name); !status) {
    return entry.invalid("name", status.error().message());
  }
  const int line = entry.line_of("name");
  const auto [place, added] = lines_.try_emplace(name, line);
  if (added) return {};
  return entry.invalid("name", "two " + what + " are named '" + name + "'; the first is at line " +
                                   std::to_string(place->second) + "; rename one");
}

std::string Names::near(const std::string& name) const {
  std::vector<std::string_view> names;
  for (const auto& [known, line] : lines_) names.push_back(known);
  return did_you_mean(name, names);
}

}  // namespace holmes::actors

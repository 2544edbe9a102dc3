#pragma once

// The files of a machine, or of the recorded tree of one. What cannot be read is simply not there:
// sysfs answers with an error for what a device does not have.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace holmes::transport::nics {

class MachineTree {
 public:
  explicit MachineTree(std::filesystem::path root) : root_(std::move(root)) {}

  /// The text of a small file, without white space at its end.
  std::optional<std::string> text(const std::string& path) const;
  std::optional<long long> number(const std::string& path) const;
  bool exists(const std::string& path) const;
  /// Names in a folder, sorted; none where it is not there.
  std::vector<std::string> names(const std::string& folder) const;
  /// Where a link leads, all links followed; empty: nowhere.
  std::string real(const std::string& path) const;
  /// The last name in the target of a link; empty: no link.
  std::string target_name(const std::string& path) const;

 private:
  std::filesystem::path at(const std::string& path) const { return root_ / path; }

  std::filesystem::path root_;
};

/// "0x1f" and "31" are 31; nothing for other texts.
std::optional<long long> parse_number(const std::string& text);
/// Lines of a text, and words of a line.
std::vector<std::string> lines_of(const std::string& text);
std::vector<std::string> words_of(const std::string& line);

}  // namespace holmes::transport::nics

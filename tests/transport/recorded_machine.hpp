#pragma once

// A recorded machine as a folder: unpacks tests/transport/machines/NAME.txt, of which each line is
// "path = content" ('|' ends a line of the content) or "path -> target of a link".

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "support/temporary_folder.hpp"

namespace holmes::testing {

class RecordedMachine {
 public:
  explicit RecordedMachine(const std::string& name) {
    std::ifstream in(std::filesystem::path(HOLMES_MACHINES) / (name + ".txt"));
    if (!in) throw std::runtime_error("no recorded machine " + name);
    for (std::string line; std::getline(in, line);)
      if (!line.empty() && line[0] != '#') add(line);
  }
  const std::filesystem::path& path() const { return folder_.path(); }

  /// One more line, or another content of a file.
  void add(const std::string& line) {
    const auto link = line.find(" -> ");
    const auto file = line.find(" = ");
    const auto place = folder_.path() / line.substr(0, std::min(link, file));
    std::filesystem::create_directories(place.parent_path());
    if (link < file) return std::filesystem::create_symlink(line.substr(link + 4), place);
    auto content = line.substr(file + 3);
    std::replace(content.begin(), content.end(), '|', '\n');
    std::ofstream(place) << content << "\n";
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace holmes::testing

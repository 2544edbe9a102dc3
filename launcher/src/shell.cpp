#include "shell.hpp"

#include <array>
#include <cstdio>
#include <memory>

namespace holmes::launcher {

std::string shell_quoted(const std::string& word) {
  std::string quoted = "'";
  for (const char letter : word)
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

std::string output_of(const std::string& command) {
  const std::string bounded = "timeout 10 sh -c " + shell_quoted(command) + " </dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(bounded.c_str(), "re"), ::pclose);
  if (!pipe) return "";
  std::string output;
  std::array<char, 4096> block{};
  while (const auto bytes = std::fread(block.data(), 1, block.size(), pipe.get()))
    output.append(block.data(), bytes);
  return output;
}

}  // namespace holmes::launcher

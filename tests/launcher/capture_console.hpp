#pragma once

// A Console that writes to two files of a test, which can be read back.

#include <fcntl.h>

#include "console.hpp"
#include "run_folder.hpp"
#include "temporary_folder.hpp"

namespace holmes::launcher {

class CaptureConsole {
 public:
  CaptureConsole() : console_({out_.get(), error_.get()}) {}
  Console& console() { return console_; }
  std::string out() const { return read_file(folder_.path() / "out"); }
  std::string error() const { return read_file(folder_.path() / "error"); }

 private:
  int open(const char* name) const {
    return ::open((folder_.path() / name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }

  TemporaryFolder folder_;
  Descriptor out_{open("out")};
  Descriptor error_{open("error")};
  Console console_;
};

}  // namespace holmes::launcher

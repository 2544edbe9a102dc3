#include "spawn.hpp"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holmes::launcher {
namespace {

struct Prepared {
  const char* executable;
  char* const* arguments;
  int input;
  int output;
  int failure;  // the child writes errno here if it cannot become the program
  pid_t parent;
};

[[noreturn]] void give_up(int failure, int errno_value) {
  [[maybe_unused]] const auto written = ::write(failure, &errno_value, sizeof errno_value);
  ::_exit(127);
}

/// The child's way to exec. Between fork and exec only async-signal-safe calls are allowed.
[[noreturn]] void become(const Prepared& prepared) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above; then nobody would ever end this process.
  if (::getppid() != prepared.parent) ::_exit(127);
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::dup2(prepared.input, 0) < 0 || ::dup2(prepared.output, 1) < 0 ||
      ::dup2(prepared.output, 2) < 0)
    give_up(prepared.failure, errno);
  // Libraries open sockets without close-on-exec; a child that kept one would hold ports and hide
  // the end of connections.
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execv(prepared.executable, prepared.arguments);
  give_up(prepared.failure, errno);
}

/// Without waiting: a pipe that nobody reads would hold us, and the child's first line, for ever.
Result<Descriptor> open_output(const std::filesystem::path& path) {
  Descriptor output(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644));
  const bool unread_pipe = !output && errno == ENXIO;
  if (!output && !unread_pipe) return system_error("cannot write " + path.string(), errno);
  struct stat facts {};
  if (unread_pipe || (::fstat(output.get(), &facts) == 0 && S_ISFIFO(facts.st_mode)))
    return Error(ErrorCode::kInvalidArgument, path.string() + " is a pipe; move it away");
  ::fcntl(output.get(), F_SETFL, O_APPEND);
  return output;
}

/// A pipe takes 64 KiB without anybody reading.
Result<Descriptor> open_input(const std::string& text) {
  if (text.empty()) {
    Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!nothing) return system_error("cannot read /dev/null", errno);
    return nothing;
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("cannot make a pipe", errno);
  Descriptor to_read(ends[0]);
  const Descriptor to_write(ends[1]);
  ::fcntl(to_write.get(), F_SETFL, O_NONBLOCK);
  if (::write(to_write.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()))
    return to_read;
  return system_error("cannot write into a pipe", errno);
}

/// Waits until the child has become the program (the pipe closes) or has said why it cannot.
int failure_of(int pipe) {
  int errno_value = 0;
  ssize_t got = 0;
  do got = ::read(pipe, &errno_value, sizeof errno_value);
  while (got < 0 && errno == EINTR);
  return got == sizeof errno_value ? errno_value : 0;
}

}  // namespace

Result<int> spawn(const Program& program) {
  HOLMES_TRY_ASSIGN(const Descriptor output, open_output(program.output));
  HOLMES_TRY_ASSIGN(const Descriptor input, open_input(program.input));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("cannot make a pipe", errno);
  const Descriptor from_child(ends[0]);
  Descriptor to_parent(ends[1]);

  std::vector<std::string> arguments = program.arguments;
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const Prepared prepared{program.executable.c_str(),
                          pointers.data(),
                          input.get(),
                          output.get(),
                          to_parent.get(),
                          ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return system_error("cannot start a process", errno);
  if (pid == 0) become(prepared);
  to_parent = Descriptor();
  if (const int errno_value = failure_of(from_child.get()); errno_value != 0) {
    ::waitpid(pid, nullptr, 0);
    return system_error("cannot run " + program.executable, errno_value);
  }
  return static_cast<int>(pid);
}

Descriptor watch_process(int pid) {
  // By number: glibc 2.36 declares its function without C linkage.
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace holmes::launcher

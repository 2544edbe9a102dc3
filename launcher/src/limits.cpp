#include "limits.hpp"

#include <cxxabi.h>
#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "console.hpp"
#include "exit_codes.hpp"

namespace holmes::launcher {
namespace {

constexpr rlim_t kDescriptorsMax = 65'536;
constexpr rlim_t kStackBytes = rlim_t{8} << 20;
constexpr rlim_t kStackBytesMin = rlim_t{1} << 20;

/// Raises the soft limit to `wanted`, or as far as the hard one allows.
void raise(__rlimit_resource resource, rlim_t wanted) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(resource, &limit);
}

/// Threads get the size that the limit had when the process began.
void enlarge_thread_stacks() {
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0) return;
  std::size_t bytes = 0;
  ::pthread_attr_getstacksize(&attributes, &bytes);
  if (bytes < kStackBytesMin) {
    ::pthread_attr_setstacksize(&attributes, kStackBytes);
    ::pthread_setattr_default_np(&attributes);
  }
  ::pthread_attr_destroy(&attributes);
}

bool is_shortage(const std::error_code& code) {
  return code == std::errc::resource_unavailable_try_again ||
         code == std::errc::not_enough_memory || code == std::errc::too_many_files_open ||
         code == std::errc::too_many_files_open_in_system;
}

[[noreturn]] void end(const std::string& what) {
  write_all(2, "holmes: the system has no more " + what + "\n");
  ::_exit(kExitFailed);
}

[[noreturn]] void on_terminate() {
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    end("memory for this process; give it more (ulimit -v, ulimit -d, a container's limit), or "
        "train a smaller model or micro-batch");
  } catch (const std::system_error& error) {
    if (is_shortage(error.code()))
      end("threads, memory or descriptors for this process (" + std::string(error.what()) +
          "); raise ulimit -u, -v or -n");
  } catch (...) {
    // Nobody foresaw it: the library's handler says more about it than could be said here.
  }
  __gnu_cxx::__verbose_terminate_handler();
  std::abort();
}

}  // namespace

void raise_limits() {
  raise(RLIMIT_NOFILE, kDescriptorsMax);
  raise(RLIMIT_STACK, kStackBytes);
  enlarge_thread_stacks();
}

Status check_descriptors(std::size_t hosts) {
  // Measured: 26 for 4 hosts, while agents need less.
  constexpr std::size_t kForItself = 28;
  constexpr std::size_t kForHost = 4;
  const std::size_t needed = kForItself + kForHost * hosts;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return {};
  return Error(ErrorCode::kOutOfResources,
               "this process may open " + std::to_string(limit.rlim_cur) + " files, a job on " +
                   std::to_string(hosts) + " hosts needs about " + std::to_string(needed) +
                   "; raise the limit (ulimit -n)");
}

void say_when_resources_end() {
  std::set_terminate(on_terminate);
}

}  // namespace holmes::launcher

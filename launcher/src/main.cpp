// Constructs everything and passes it down: nothing below this file is a singleton.
#include <array>
#include <climits>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "cli.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "credentials.hpp"
#include "exit_codes.hpp"
#include "failure.hpp"
#include "holmes/actors/session.hpp"
#include "launch.hpp"
#include "limits.hpp"
#include "log_sink.hpp"
#include "place.hpp"
#include "printable.hpp"
#include "signals.hpp"
#include "simulate.hpp"
#include "train.hpp"

namespace holmes::launcher {
namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

partition::NcclOverrides nccl_overrides() {
  return {variable("NCCL_SOCKET_IFNAME"), variable("NCCL_IB_HCA"), variable("NCCL_IB_DISABLE")};
}

bool wants_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const auto value = environment(name); !value.empty())
      return value.find("UTF-8") != std::string_view::npos ||
             value.find("utf8") != std::string_view::npos;
  return false;
}

/// What the command line did not say of an agent: the machine's name, and torchrun's variables.
Status complete(actors::AgentInvitation& invitation) {
  if (invitation.host_name.empty()) {
    std::array<char, HOST_NAME_MAX + 1> name{};
    ::gethostname(name.data(), name.size() - 1);
    invitation.host_name = name.data();
  }
  auto& coordinator = invitation.coordinator;
  if (coordinator.empty()) {
    const auto address = environment("MASTER_ADDR");
    const auto port = environment("MASTER_PORT");
    if (address.empty() || port.empty())
      return Error(
          ErrorCode::kInvalidArgument,
          "where is the coordinator? give --rdzv-endpoint ADDRESS:PORT, or set MASTER_ADDR "
          "and MASTER_PORT");
    coordinator = std::string(address) + ":" + std::string(port);
  }
  HOLMES_TRY_ASSIGN(coordinator, look_up_endpoint(coordinator));
  return {};
}

// How long readers of the output may take at the end of a job.
constexpr std::chrono::seconds kReaderDone{30};
constexpr std::chrono::seconds kReaderStopped{1};

struct Program {
  Console& console;
  LogSink& sink;
  LogOptions log;

  int operator()(const Finished& finished) const {
    if (!finished.output.empty()) console.print(finished.output);
    if (!finished.error.empty()) console.log(printable(finished.error));
    return whole(finished.exit_code);
  }
  int operator()(TrainCommand command) const {
    command.nccl = nccl_overrides();
    return with_services([&](const TrainServices& services) { return train(command, services); });
  }
  int operator()(LaunchCommand command) const {
    command.train.nccl = nccl_overrides();
    return with_services([&](const TrainServices& services) { return launch(command, services); });
  }
  int operator()(const ShowKeysCommand&) const { return whole(show_keys(console)); }
  int operator()(PlanCommand command) const {
    command.nccl = nccl_overrides();
    return whole(show_plan(command, console));
  }
  int operator()(SimulateCommand command) const {
    command.nccl = nccl_overrides();
    return whole(simulate(command, console));
  }
  int operator()(const GenerateCommand& command) const { return whole(generate(command, console)); }
  int operator()(const BenchCommand& command) const { return whole(bench(command, console)); }
  int operator()(NicsCommand command) const {
    command.nccl = nccl_overrides();
    command.gid_index = variable("NCCL_IB_GID_INDEX");
    return whole(show_nics(command, console));
  }
  int operator()(const SecurityCommand& command) const { return whole(security(command, console)); }
  int operator()(const DataCommand& command) const {
    const SteadyClock clock;
    return whole(data(command, console, clock));
  }
  int operator()(CheckpointCommand command) const {
    command.nccl = nccl_overrides();
    return whole(checkpoint(command, console));
  }
  int operator()(AgentCommand command) const {
    ignore_write_signals();
    block_stop_signals();
    if (const auto found = complete(command.invitation); !found)
      return report_failure(found.error(), console);
    actors::AgentOptions options{
        command.invitation, Logger(sink, "agent"), std::chrono::seconds(command.wait_s), {}};
    if (!command.credentials.empty()) {
      auto credentials = read_credentials(command.credentials);
      if (!credentials) return report_failure(credentials.error(), console);
      options.credentials = *std::move(credentials);
    }
    const auto agent = actors::start_agent(std::move(options));
    if (!agent) return report_failure(agent.error(), console);
    const SignalWatcher signals([&agent](int count) {
      if (count > 1) ::_exit(kExitFailed);
      (*agent)->request_leave();
    });
    return (*agent)->wait();
  }

 private:
  int with_services(const std::function<int(const TrainServices&)>& run) const {
    ignore_write_signals();
    block_stop_signals();  // before anything starts a thread
    const SteadyClock clock;
    const bool color = environment("NO_COLOR").empty() && environment("TERM") != "dumb";
    console.write_in_background();
    const int code = run({console, clock, Logger(sink, "train"), log, color, wants_unicode(),
                          actors::load_job, actors::start_session});
    release_stop_signals();
    console.finish(code == kExitDone ? kReaderDone : kReaderStopped);
    return code;
  }
  /// Results that did not arrive are no success.
  int whole(int code) const {
    if (code != kExitDone || console.output_error() == 0) return code;
    return report_failure(system_error("cannot write the result to stdout", console.output_error()),
                          console);
  }
};

/// A file or socket that took the number of a closed standard stream would be written into.
/// Writing to what is opened here is an error, as it is without.
void open_standard_streams() {
  for (int descriptor : {0, 1, 2})
    if (::fcntl(descriptor, F_GETFD) < 0) {
      // The lowest free number is taken, which is this one.
      [[maybe_unused]] const int opened = ::open("/dev/null", O_RDONLY);
    }
}

int run(const std::vector<std::string>& arguments) {
  Console console(Console::Descriptors{});
  const CommandLine line = parse_command_line(arguments);
  const auto sink = make_log_sink(console, line.log);
  return std::visit(Program{console, *sink, line.log}, line.command);
}

}  // namespace
}  // namespace holmes::launcher

int main(int count, char** arguments) {
  holmes::launcher::open_standard_streams();
  holmes::launcher::say_when_resources_end();
  holmes::launcher::raise_limits();
  return holmes::launcher::run(std::vector<std::string>(arguments + 1, arguments + count));
}

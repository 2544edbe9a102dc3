// Trains a job in the background and serves how it goes over HTTP, to this machine alone.
//
// Usage: service JOB [PORT]     JOB: a job file; PORT: 0 or none: any free one, which is printed
//
//   GET /status      the job's health as JSON
//   GET /metrics     the same and more for Prometheus
//   GET /generate?prompt=TEXT&tokens=N    the newest checkpoint continues a text
//   POST /stop       finishes the step in work and saves a checkpoint
//
// When the run folder has a checkpoint the job goes on from it. The service goes on when the job
// has ended; SIGTERM or SIGINT stops both, and the job saves first.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "generator.hpp"
#include "holmes/actors/job_config.hpp"
#include "holmes/actors/local_agents.hpp"
#include "holmes/model/checkpoint.hpp"
#include "metrics.hpp"
#include "pages.hpp"

namespace service {
namespace {

using namespace holmes;

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
constexpr std::size_t kThreads = 4;
constexpr std::size_t kBodyBytesMax = 64 * 1024;

/// Before any thread starts: signals wait until main() takes them. The library installs no handler.
sigset_t hold_back_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

void limit(httplib::Server& server) {
  // tidy-allow(new-delete): the server takes it so
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(kBodyBytesMax);
  server.set_keep_alive_timeout(1);
  server.set_read_timeout(std::chrono::seconds(5));
  server.set_write_timeout(std::chrono::seconds(5));
}

/// Serves until a signal comes; what is in work is answered first.
void serve(httplib::Server& server, const sigset_t& signals, Generator& generator) {
  std::atomic<bool> listened = false;
  std::thread listening([&] {
    server.listen_after_bind();
    listened = true;
  });
  int signal = 0;
  sigwait(&signals, &signal);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // a second one ends the process at once
  generator.stop();
  while (!server.is_running() && !listened)  // stop() before that would go unheard
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  server.stop();
  listening.join();
}

int run(const std::string& job_file, int port) {
  const sigset_t signals = hold_back_signals();
  const auto job = actors::load_job({job_file, {}});
  if (!job) {
    std::fprintf(stderr, "service: %s\n", job.error().message().c_str());
    return kBadUsage;
  }
  const auto checkpoints = job->run.folder / "checkpoints";
  Metrics metrics(job->cluster);
  Generator generator(checkpoints);
  actors::LocalAgents agents;
  actors::SessionOptions options;
  options.job = *job;
  options.resume = model::find_latest(checkpoints).has_value();
  options.starter = &agents;
  options.on_event = [&](const actors::Event& event) { metrics.note(event); };
  const auto session = actors::start_session(std::move(options));
  if (!session) {
    std::fprintf(stderr, "service: %s\n", session.error().message().c_str());
    return kBadUsage;
  }
  httplib::Server server;
  limit(server);
  add_pages(server, {**session, metrics, generator});
  const int bound = port == 0                                ? server.bind_to_any_port("127.0.0.1")
                    : server.bind_to_port("127.0.0.1", port) ? port
                                                             : -1;
  if (bound < 0) {
    std::fprintf(stderr, "service: port %d of 127.0.0.1 is taken; name another\n", port);
    return kFailed;
  }
  std::printf("service: http://127.0.0.1:%d\n", bound);
  std::fflush(stdout);
  serve(server, signals, generator);
  (*session)->request_stop();
  const auto outcome = (*session)->wait();
  std::printf("service: the job %s\n", std::string(to_string(outcome)).c_str());
  return outcome == actors::Outcome::kFailed ? kFailed : 0;
}

}  // namespace
}  // namespace service

int main(int count, char** arguments) {
  if (count < 2 || count > 3) {
    std::fprintf(stderr, "usage: service JOB [PORT]\n");
    return 2;
  }
  return service::run(arguments[1], count == 3 ? std::atoi(arguments[2]) : 0);
}

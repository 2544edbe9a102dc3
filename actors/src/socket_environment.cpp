#include "socket_environment.hpp"

#include "file_store.hpp"
#include "holmes/transport/shaped.hpp"
#include "text_batches.hpp"

namespace holmes::actors {

namespace {

/// Loopback address of a NIC; both numbers are one higher so that no part is 0.
std::string loopback_address(HostId host, NicId nic) {
  return "127." + std::to_string(host.value() + 1) + "." + std::to_string(nic.value() + 1) + ".1";
}

class SocketEnvironment final : public HostEnvironment {
 public:
  SocketEnvironment(transport::EventLoop& loop, Logger log)
      : loop_(loop), log_(std::move(log)), control_(open("")) {}

  Executor& executor() override { return loop_; }
  Executor& member_executor() override { return loop_; }
  transport::Context& control_context() override { return *control_; }

  std::unique_ptr<transport::Context> open_nic(const partition::Cluster& cluster, HostId host,
                                               NicId nic, bool emulate) override {
    const auto& about = cluster.hosts.at(host.index()).nics.at(nic.index());
    auto context = open(loopback_address(host, nic));
    if (!emulate) return context;
    return transport::make_shaped_context(std::move(context),
                                          {about.gbit_s, from_seconds(about.latency_us * 1e-6)});
  }

  transport::Endpoint listen_at(const partition::Cluster&, HostId host, NicId nic) override {
    return {loopback_address(host, nic) + ":0"};
  }

  std::unique_ptr<ComputeQueue> open_device(const partition::Device&) override {
    return std::make_unique<ThreadComputeQueue>(clock_, false,
                                                [] { model::prepare_compute_thread(); });
  }
  std::unique_ptr<ComputeQueue> open_disk() override {
    return std::make_unique<ThreadComputeQueue>(clock_, false);
  }
  std::unique_ptr<model::Engine> make_engine() override { return model::make_cpu_engine(); }

  Result<std::unique_ptr<BatchSource>> open_batches(const JobConfig& job) override {
    HOLMES_TRY(need_text(job));
    return make_text_batches(job, text_);
  }
  Result<std::unique_ptr<StateStore>> open_store(const JobConfig& job) override {
    HOLMES_TRY(need_text(job));
    return make_file_store(job, text_->hash());
  }
  PassObserver pass_observer() override { return {}; }

 private:
  std::unique_ptr<transport::Context> open(std::string address) {
    transport::TcpOptions options;
    options.local_address = std::move(address);
    options.logger = log_.named("tcp");
    return transport::make_tcp_context(loop_, std::move(options));
  }
  Status need_text(const JobConfig& job) {
    if (text_ != nullptr) return {};
    HOLMES_TRY_ASSIGN(text_, open_text(job));
    return {};
  }

  transport::EventLoop& loop_;
  SteadyClock clock_;
  Logger log_;
  std::unique_ptr<transport::Context> control_;
  std::shared_ptr<const model::TokenFile> text_;
};

}  // namespace

std::unique_ptr<HostEnvironment> make_socket_environment(transport::EventLoop& loop, Logger log) {
  return std::make_unique<SocketEnvironment>(loop, std::move(log));
}

}  // namespace holmes::actors

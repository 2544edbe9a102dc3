#include "socket_environment.hpp"

#include "addresses.hpp"
#include "file_store.hpp"
#include "holmes/base/address.hpp"
#include "holmes/model/cuda.hpp"
#include "holmes/transport/shaped.hpp"
#include "text_batches.hpp"

namespace holmes::actors {

namespace {

/// Loopback address of a NIC; both numbers are one higher so that no part is 0.
std::string loopback_address(HostId host, NicId nic) {
  return "127." + std::to_string(host.value() + 1) + "." + std::to_string(nic.value() + 1) + ".1";
}

Result<transport::FoundNics> find_machine_nics() {
  HOLMES_TRY_ASSIGN(const auto facts, transport::machine_facts());
  return transport::find_nics(facts, {});
}

class SocketEnvironment final : public HostEnvironment {
 public:
  SocketEnvironment(transport::EventLoop& loop, Logger log,
                    std::shared_ptr<const transport::Tls> tls)
      : loop_(loop), log_(std::move(log)), tls_(std::move(tls)), control_(open({}, tls_)) {}

  Executor& executor() override { return loop_; }
  Executor& member_executor() override { return loop_; }
  transport::Context& control_context() override { return *control_; }

  Result<OpenNic> open_nic(const JobConfig& job, HostId host, NicId nic) override {
    const auto& about = job.cluster.hosts.at(host.index()).nics.at(nic.index());
    if (job.transport.nics == NicSource::kInterfaces) return open_interface(job, host, nic);
    const std::string address = loopback_address(host, nic);
    const transport::Endpoint at{with_port(address, 0)};
    HOLMES_TRY_ASSIGN(auto context, open_for(job, about, address));
    if (!job.transport.emulate) return OpenNic{std::move(context), at};
    return OpenNic{transport::make_shaped_context(
                       std::move(context), {about.gbit_s, from_seconds(about.latency_us * 1e-6)}),
                   at};
  }

  std::unique_ptr<ComputeQueue> open_device(const partition::Device& device) override {
    return std::make_unique<ThreadComputeQueue>(clock_, device.is_paced(),
                                                [] { model::prepare_compute_thread(); });
  }
  std::unique_ptr<ComputeQueue> open_disk() override {
    return std::make_unique<ThreadComputeQueue>(clock_, false);
  }
  Result<std::unique_ptr<model::Engine>> make_engine(const JobConfig& job,
                                                     const partition::Device& device,
                                                     std::uint32_t gpu) override {
    if (device.kind == kCudaDevice)
      return model::make_cuda_engine({.device = gpu, .tf32 = job.train.tf32});
    return model::make_cpu_engine();
  }

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
  std::unique_ptr<transport::Context> open(transport::TcpOptions options,
                                           std::shared_ptr<const transport::Tls> tls) {
    options.logger = log_.named("tcp");
    options.tls = std::move(tls);
    return transport::make_tcp_context(loop_, std::move(options));
  }
  /// A NIC's.
  Result<std::unique_ptr<transport::Context>> open_for(const JobConfig& job,
                                                       const partition::Nic& nic,
                                                       std::string address) {
    transport::TcpOptions options;
    options.local_address = std::move(address);
    if (!uses_tls(job, nic)) return open(std::move(options), nullptr);
    if (tls_ == nullptr)
      return Error(ErrorCode::kInvalidArgument,
                   "the job's connections are under TLS, but this agent has no credentials");
    for (const auto& host : job.cluster.hosts) options.host_names.push_back(host.name);
    return open(std::move(options), tls_);
  }
  Result<OpenNic> open_interface(const JobConfig& job, HostId host, NicId nic) {
    const auto& about = job.cluster.hosts[host.index()];
    const auto& wanted = about.nics[nic.index()];
    if (!wanted.use || !wanted.port_up) return OpenNic{open({}, nullptr), {}};
    HOLMES_TRY_ASSIGN(const std::string address,
                      interface_address(about, wanted, find_machine_nics));
    const std::uint32_t first = job.transport.nic_port;
    const std::uint32_t port = first == 0 ? 0 : first + nic.value();
    HOLMES_TRY_ASSIGN(auto context, open_for(job, wanted, address));
    return OpenNic{std::move(context), {with_port(address, port)}};
  }
  Status need_text(const JobConfig& job) {
    if (text_ != nullptr) return {};
    HOLMES_TRY_ASSIGN(text_, open_text(job));
    return {};
  }

  transport::EventLoop& loop_;
  SteadyClock clock_;
  Logger log_;
  const std::shared_ptr<const transport::Tls> tls_;
  std::unique_ptr<transport::Context> control_;
  std::shared_ptr<const model::TokenFile> text_;
};

}  // namespace

std::unique_ptr<HostEnvironment> make_socket_environment(
    transport::EventLoop& loop, Logger log, std::shared_ptr<const transport::Tls> tls) {
  return std::make_unique<SocketEnvironment>(loop, std::move(log), std::move(tls));
}

}  // namespace holmes::actors

#pragma once

// A full mesh of ranks in one process, on sim or tcp, driven by the test's own thread.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "holmes/transport/collectives.hpp"
#include "holmes/transport/sim.hpp"
#include "holmes/transport/tcp.hpp"

namespace holmes::transport {

class Mesh {
 public:
  using Links = std::vector<std::shared_ptr<Connection>>;

  virtual ~Mesh() = default;
  /// Runs tasks until `done`; false when that does not happen in a generous time.
  virtual bool run_until(const std::function<bool()>& done) = 0;
  virtual Context& context(std::size_t rank) = 0;
  virtual Endpoint address(std::size_t rank) = 0;

  std::size_t ranks() const { return links.size(); }
  /// links[a][b]: the connection of rank a to rank b.
  std::vector<Links> links;
  BufferPool pool{2 * kGiB};

  void in_task(const std::function<void()>& body) {
    bool ran = false;
    context(0).executor().post([&] {
      body();
      ran = true;
    });
    ASSERT_TRUE(run_until([&] { return ran; }));
  }

  /// The higher rank dials the lower.
  void connect(std::size_t ranks) {
    links.assign(ranks, Links(ranks));
    for (std::size_t rank = 0; rank < ranks; ++rank)
      in_task([&] {
        listeners_.push_back(context(rank)
                                 .listen(address(rank), who(rank),
                                         [this, rank](std::shared_ptr<Connection> accepted) {
                                           const auto peer = accepted->peer().host.index();
                                           links[rank][peer] = std::move(accepted);
                                         },
                                         {})
                                 .value());
      });
    for (std::size_t a = 1; a < ranks; ++a)
      for (std::size_t b = 0; b < a; ++b)
        in_task([&] {
          context(a).connect(listeners_[b]->endpoint(), who(a), std::chrono::seconds(10),
                             [this, a, b](Result<std::shared_ptr<Connection>> result) {
                               if (result) links[a][b] = *result;
                             });
        });
    ASSERT_TRUE(run_until([&] {
      for (std::size_t a = 0; a < ranks; ++a)
        for (std::size_t b = 0; b < ranks; ++b)
          if (a != b && links[a][b] == nullptr) return false;
      return true;
    }));
  }

  /// What owners do at the end of a generation.
  void supersede_all() {
    in_task([&] {
      for (auto& row : links)
        for (auto& link : row)
          if (link != nullptr) link->supersede(Generation(1000));
    });
  }
  void close_all() {
    in_task([&] {
      for (auto& row : links)
        for (auto& link : row)
          if (link != nullptr) link->close();
      listeners_.clear();
    });
    run_until([&] { return pool.stats().buffers_lent == 0; });
    links.clear();
  }

  static Identity who(std::size_t rank) {
    return {"collectives", HostId(static_cast<std::uint32_t>(rank)), NicId(3), Epoch(1)};
  }

 protected:
  std::vector<std::unique_ptr<Listener>> listeners_;
};

class SimMesh final : public Mesh {
 public:
  explicit SimMesh(std::size_t ranks, std::uint64_t seed = 1) : loop_(seed), network_(loop_, seed) {
    network_.add_fabric("fabric", 10.0, std::chrono::microseconds(20),
                        std::chrono::microseconds(9));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      network_.add_nic(name(rank), "fabric");
      contexts_.push_back(network_.make_context(name(rank), loop_));
    }
    connect(ranks);
  }
  bool run_until(const std::function<bool()>& done) override {
    return loop_.run_until(done, std::chrono::seconds(60));
  }
  Context& context(std::size_t rank) override { return *contexts_.at(rank); }
  Endpoint address(std::size_t rank) override { return {name(rank) + ":0"}; }
  static std::string name(std::size_t rank) { return "h" + std::to_string(rank) + "/nic"; }
  SimNetwork& network() { return network_; }
  TimePoint now() const { return loop_.now(); }

 private:
  SimLoop loop_;
  SimNetwork network_;
  std::vector<std::unique_ptr<Context>> contexts_;
};

class TcpMesh final : public Mesh {
 public:
  explicit TcpMesh(std::size_t ranks, std::uint8_t bulk_sockets = 1, bool encrypted = false) {
    const auto authority = Authority::make(who(0).job).value();
    TcpOptions options{"127.0.0.1", false, std::chrono::seconds(5), Logger(), bulk_sockets, 0};
    for (std::size_t rank = 0; rank < ranks; ++rank)
      options.host_names.push_back("h" + std::to_string(rank));
    for (const auto& name : options.host_names) {
      if (encrypted) options.tls = Tls::make(authority.issue(name).value()).value();
      contexts_.push_back(make_tcp_context(loop_, options));
    }
    connect(ranks);
  }
  bool run_until(const std::function<bool()>& done) override {
    return loop_.run_until(done, std::chrono::seconds(30));
  }
  Context& context(std::size_t rank) override { return *contexts_.at(rank); }
  Endpoint address(std::size_t) override { return {"127.0.0.1:0"}; }

 private:
  EventLoop loop_;
  std::vector<std::unique_ptr<Context>> contexts_;
};

}  // namespace holmes::transport

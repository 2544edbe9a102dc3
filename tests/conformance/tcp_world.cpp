#include "holmes/transport/tcp.hpp"

#include "world.hpp"

namespace holmes::transport::conformance {

namespace {

class TcpWorld final : public World {
 public:
  TcpWorld(bool checksum, std::uint8_t bulk_sockets, bool shaped, bool encrypted = false) {
    const auto authority = Authority::make("job-1").value();
    const std::vector<std::string> names{"h0", "h1"};
    for (const char* address : {"127.0.0.1", "127.0.0.2"}) {
      TcpOptions options{address,  checksum,     std::chrono::milliseconds(500),
                         Logger(), bulk_sockets, 0};
      const auto& name = names.at(contexts_.size());
      if (encrypted) options.tls = Tls::make(authority.issue(name).value()).value();
      options.host_names = names;
      contexts_.push_back(make_tcp_context(loop_, options));
      if (shaped)
        contexts_.back() = make_shaped_context(std::move(contexts_.back()), kConformanceShape);
    }
  }

  Context& context(int side) override { return *contexts_.at(static_cast<std::size_t>(side)); }
  Endpoint address(int side) override { return {side == 0 ? "127.0.0.1:0" : "127.0.0.2:0"}; }
  Endpoint nobody() override { return {"127.0.0.3:1"}; }
  bool run_until(const std::function<bool()>& done) override {
    return loop_.run_until(done, std::chrono::seconds(20));
  }
  void settle() override {
    loop_.run_until([] { return false; }, std::chrono::milliseconds(20));
  }

 private:
  EventLoop loop_;
  std::vector<std::unique_ptr<Context>> contexts_;
};

}  // namespace

std::unique_ptr<World> make_tcp_world(bool checksum, std::uint8_t bulk_sockets) {
  return std::make_unique<TcpWorld>(checksum, bulk_sockets, false);
}

std::unique_ptr<World> make_tls_world(std::uint8_t bulk_sockets) {
  return std::make_unique<TcpWorld>(false, bulk_sockets, false, true);
}

std::unique_ptr<World> make_shaped_tcp_world() {
  return std::make_unique<TcpWorld>(false, std::uint8_t{1}, true);
}

}  // namespace holmes::transport::conformance

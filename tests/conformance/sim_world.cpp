#include "holmes/transport/sim.hpp"

#include "world.hpp"

namespace holmes::transport::conformance {

namespace {

class SimWorld final : public World {
 public:
  explicit SimWorld(bool shaped) {
    network_.add_fabric("ethernet", 10.0, std::chrono::microseconds(50),
                        std::chrono::microseconds(5));
    for (const char* nic : {"host-0/eth0", "host-1/eth0"}) {
      network_.add_nic(nic, "ethernet");
      contexts_.push_back(network_.make_context(nic, loop_));
      if (shaped)
        contexts_.back() = make_shaped_context(std::move(contexts_.back()), kConformanceShape);
    }
  }

  Context& context(int side) override { return *contexts_.at(static_cast<std::size_t>(side)); }
  Endpoint address(int side) override { return {side == 0 ? "host-0/eth0:0" : "host-1/eth0:0"}; }
  Endpoint nobody() override { return {"host-1/eth0:7"}; }
  bool run_until(const std::function<bool()>& done) override {
    return loop_.run_until(done, std::chrono::seconds(20));
  }
  void settle() override {
    loop_.run_until([] { return false; }, std::chrono::milliseconds(20));
  }

 private:
  SimLoop loop_{1};
  SimNetwork network_{loop_, 1};
  std::vector<std::unique_ptr<Context>> contexts_;
};

}  // namespace

std::unique_ptr<World> make_sim_world() {
  return std::make_unique<SimWorld>(false);
}

std::unique_ptr<World> make_shaped_sim_world() {
  return std::make_unique<SimWorld>(true);
}

}  // namespace holmes::transport::conformance

#include "shaped/connection.hpp"

namespace holmes::transport {

namespace {

std::shared_ptr<Connection> shape(std::shared_ptr<Connection> inner,
                                  const std::shared_ptr<Shaper>& shaper) {
  auto connection = std::make_shared<ShapedConnection>(std::move(inner), shaper);
  connection->start();
  return connection;
}

class ShapedContextImpl final : public ShapedContext {
 public:
  ShapedContextImpl(std::unique_ptr<Context> inner, const ShapeOptions& options)
      : inner_(std::move(inner)), shaper_(std::make_shared<Shaper>(inner_->executor(), options)) {}

  Executor& executor() override { return inner_->executor(); }

  Result<std::unique_ptr<Listener>> listen(const Endpoint& at, const Identity& self,
                                           AcceptHandler accepted, RefuseHandler refused) override {
    return inner_->listen(
        at, self,
        [shaper = shaper_, accepted = std::move(accepted)](std::shared_ptr<Connection> connection) {
          accepted(shape(std::move(connection), shaper));
        },
        std::move(refused));
  }

  void connect(const Endpoint& remote, const Identity& self, Duration deadline,
               ConnectHandler done) override {
    inner_->connect(
        remote, self, deadline,
        [shaper = shaper_, done = std::move(done)](Result<std::shared_ptr<Connection>> result) {
          if (!result) return done(std::move(result));
          done(shape(std::move(*result), shaper));
        });
  }

  void set_shape(const ShapeOptions& options) override { shaper_->set(options); }

 private:
  std::unique_ptr<Context> inner_;
  std::shared_ptr<Shaper> shaper_;
};

}  // namespace

std::unique_ptr<ShapedContext> make_shaped_context(std::unique_ptr<Context> inner,
                                                   const ShapeOptions& options) {
  return std::make_unique<ShapedContextImpl>(std::move(inner), options);
}

}  // namespace holmes::transport

#include "suite.hpp"

#include <cstring>

#include "holmes/base/random.hpp"

namespace holmes::transport::conformance {

Suite::~Suite() {
  in_task([this] {
    if (a_) a_->close();
    if (b_) b_->close();
  });
  settle();
  in_task([this] {
    a_.reset();
    b_.reset();
    listener_.reset();
  });
  world_.reset();
  EXPECT_EQ(pool_.stats().buffers_lent, 0u) << "a buffer did not come back to its pool";
}

void Suite::in_task(const std::function<void()>& body) {
  bool ran = false;
  world_->context(0).executor().post([&] {
    in_call_ = true;
    body();
    in_call_ = false;
    ran = true;
  });
  ASSERT_TRUE(run_until([&] { return ran; }));
}

Identity Suite::identity(int side, const std::string& job) {
  return {job, HostId(static_cast<std::uint32_t>(side)), NicId(static_cast<std::uint32_t>(side)),
          Epoch(7)};
}

void Suite::listen(const Identity& self) {
  in_task([&] {
    auto listener = world_->context(1).listen(
        world_->address(1), self,
        [this](std::shared_ptr<Connection> connection) {
          b_ = std::move(connection);
          b_->on_control([this](const Buffer& message) { controls_b_.push_back(text(message)); });
          b_->on_closed([this](const Error& error) { closed_b_.push_back(error); });
        },
        [this](const Error& error) { refused_.push_back(error); });
    ASSERT_TRUE(listener) << listener.error().message();
    listener_ = std::move(*listener);
  });
}

std::shared_ptr<Outcome> Suite::dial(const Endpoint& remote, const Identity& self,
                                     Duration deadline) {
  auto outcome = std::make_shared<Outcome>();
  in_task([&] {
    const auto done = [this, outcome](Result<std::shared_ptr<Connection>> result) {
      EXPECT_FALSE(in_call_) << "a handler ran inside the call";
      ++outcome->count;
      if (!result) {
        outcome->error = result.error();
        return;
      }
      a_ = *result;
      a_->on_control([this](const Buffer& message) { controls_a_.push_back(text(message)); });
      a_->on_closed([this](const Error& error) { closed_a_.push_back(error); });
    };
    world_->context(0).connect(remote, self, deadline, done);
  });
  return outcome;
}

void Suite::connect_pair() {
  listen(identity(1));
  const auto dialled = dial(listener_->endpoint(), identity(0), std::chrono::seconds(10));
  ASSERT_TRUE(run_until([&] { return dialled->done() && (dialled->error || b_ != nullptr); }));
  ASSERT_TRUE(dialled->ok()) << dialled->error->message();
}

template <class T>
std::function<void(Result<T>)> Suite::note(const std::shared_ptr<Outcome>& outcome) {
  return [this, outcome](Result<T> result) {
    EXPECT_FALSE(in_call_) << "a handler ran inside the call";
    ++outcome->count;
    if (!result) {
      outcome->error = result.error();
    } else if constexpr (std::is_same_v<T, Buffer>) {
      outcome->buffer = std::move(*result);
    }
  };
}

std::shared_ptr<Outcome> Suite::send_control(const std::shared_ptr<Connection>& from,
                                             std::string text) {
  auto outcome = std::make_shared<Outcome>();
  auto message = pool_.acquire(text.size()).value();
  std::memcpy(message.mutable_bytes().data(), text.data(), text.size());
  in_task([&] { from->send_control(std::move(message), note<void>(outcome)); });
  return outcome;
}

std::shared_ptr<Outcome> Suite::send(const std::shared_ptr<Connection>& from, const BulkTag& tag,
                                     std::size_t bytes, std::uint64_t seed) {
  auto outcome = std::make_shared<Outcome>();
  in_task([&] {
    from->send_bulk(tag, shape(bytes), pattern(pool_, bytes, seed), note<void>(outcome));
  });
  return outcome;
}

std::shared_ptr<Outcome> Suite::receive(const std::shared_ptr<Connection>& at, const BulkTag& tag,
                                        std::size_t bytes) {
  auto outcome = std::make_shared<Outcome>();
  in_task([&] {
    at->receive_bulk(tag, shape(bytes), pool_.acquire(bytes).value(), note<Buffer>(outcome));
  });
  return outcome;
}

BulkTag Suite::tag(std::uint32_t number, std::uint64_t generation) {
  BulkTag tag;
  tag.generation = Generation(generation);
  tag.node = number;
  return tag;
}

TensorShape Suite::shape(std::size_t bytes) {
  return {DType::kU8, {static_cast<std::uint32_t>(bytes)}};
}

Buffer Suite::pattern(BufferPool& pool, std::size_t bytes, std::uint64_t seed) {
  auto buffer = pool.acquire(bytes).value();
  Random random(seed);
  for (auto& byte : buffer.mutable_bytes()) byte = static_cast<std::byte>(random());
  return buffer;
}

bool Suite::has_pattern(const Buffer& buffer, std::size_t bytes, std::uint64_t seed) {
  if (buffer.size() != bytes) return false;
  Random random(seed);
  for (const auto byte : buffer.bytes())
    if (byte != static_cast<std::byte>(random())) return false;
  return true;
}

std::string Suite::text(const Buffer& buffer) {
  return std::string(reinterpret_cast<const char*>(buffer.data()), buffer.size());
}

}  // namespace holmes::transport::conformance

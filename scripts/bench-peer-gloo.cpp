// The all-reduce of Gloo, as scripts/bench-collectives measures it: every rank repeats it on the
// same fp32 buffer, in place; rank 0 prints median and best time in seconds, and its CPU time.
// Usage: bench-peer-gloo RANK RANKS FOLDER BYTES SECONDS ALGORITHM
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

namespace {

using Floats = std::vector<float>;
using ContextPtr = std::shared_ptr<gloo::rendezvous::Context>;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Algorithm>
std::function<void()> classic(const ContextPtr& context, Floats& data) {
  const auto algorithm = std::make_shared<Algorithm>(context, std::vector<float*>{data.data()},
                                                     static_cast<int>(data.size()));
  return [algorithm] { algorithm->run(); };
}

std::function<void()> modern(const ContextPtr& context, Floats& data,
                             gloo::AllreduceOptions::Algorithm algorithm) {
  return [context, algorithm, &data] {
    gloo::AllreduceOptions options(context);
    options.setOutput(data.data(), data.size());
    options.setAlgorithm(algorithm);
    options.setReduceFunction(
        [](void* out, const void* a, const void* b, size_t n) { gloo::sum<float>(out, a, b, n); });
    gloo::allreduce(options);
  };
}

std::function<void()> make(const std::string& name, const ContextPtr& context, Floats& data) {
  if (name == "ring_chunked") return classic<gloo::AllreduceRingChunked<float>>(context, data);
  if (name == "halving_doubling")
    return classic<gloo::AllreduceHalvingDoubling<float>>(context, data);
  if (name == "ring") return modern(context, data, gloo::AllreduceOptions::Algorithm::RING);
  return modern(context, data, gloo::AllreduceOptions::Algorithm::BCUBE);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const int rank = std::atoi(argv[1]);
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  const auto context = std::make_shared<gloo::rendezvous::Context>(rank, std::atoi(argv[2]));
  gloo::rendezvous::FileStore store(argv[3]);
  context->connectFullMesh(store, device);
  Floats data(static_cast<std::size_t>(std::atoll(argv[4])) / sizeof(float));
  const auto reduce = make(argv[6], context, data);
  double each = 0;
  for (int i = 0; i < 4; ++i) {
    const double start = now_seconds();
    reduce();
    each = now_seconds() - start;
  }
  double wanted = std::atof(argv[5]) / each;
  gloo::BroadcastOptions share(context);
  share.setRoot(0);
  share.setOutput(&wanted, 1);
  gloo::broadcast(share);
  std::vector<double> times(static_cast<std::size_t>(std::clamp(wanted, 3.0, 1e6)));
  const double cpu = cpu_seconds();
  for (auto& time : times) {
    const double start = now_seconds();
    reduce();
    time = now_seconds() - start;
  }
  const double cpu_each = (cpu_seconds() - cpu) / static_cast<double>(times.size());
  std::sort(times.begin(), times.end());
  if (rank == 0)
    std::printf("{\"median_s\": %.9f, \"best_s\": %.9f, \"cpu_s\": %.9f}\n",
                times[times.size() / 2], times.front(), cpu_each);
  gloo::BarrierAllToAll(context).run();
  return 0;
}

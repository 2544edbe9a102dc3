#include "adapter.hpp"

#include <algorithm>

namespace holmes::actors {

namespace {

constexpr int kLooksInFavour = 2;
/// What a change costs besides moving state: everybody stops and begins again.
constexpr double kChangeSeconds = 0.25;

double median_of(const std::deque<double>& values) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

void keep(std::deque<double>& values, double value, std::size_t most) {
  values.push_back(value);
  if (values.size() > most) values.pop_front();
}

}  // namespace

void Adapter::heard(DeviceId device, double slowness) {
  constexpr double kAbsurd = 1e6;
  if (slowness > 1 / kAbsurd && slowness < kAbsurd)
    keep(slowness_[device], slowness, options_.reports);
}

void Adapter::step_took(Duration time) {
  // The first step of a generation has all that had to be made ready in it.
  if (steps_++ > 0) keep(steps_s_, seconds(time), 2 * options_.steps);
}

void Adapter::begin() {
  slowness_.clear();
  steps_s_.clear();
  steps_ = 0;
  next_look_ = options_.steps + pause_;
  looks_in_favour_ = 0;
}

bool Adapter::is_time_to_look(const std::vector<DeviceId>& devices) const {
  return steps_ >= next_look_ && steps_s_.size() >= options_.steps &&
         std::all_of(devices.begin(), devices.end(), [this](DeviceId device) {
           const auto at = slowness_.find(device);
           return at != slowness_.end() && at->second.size() >= options_.reports;
         });
}

partition::Cluster Adapter::measured(const partition::Cluster& declared,
                                     const partition::Cluster& believed) const {
  std::deque<double> ratios;  // of what is believed
  auto cluster = believed;
  std::vector<partition::Device*> unheard;
  std::uint32_t number = 0;
  for (std::size_t host = 0; host < cluster.hosts.size(); ++host)
    for (std::size_t i = 0; i < cluster.hosts[host].devices.size(); ++i, ++number) {
      auto& device = cluster.hosts[host].devices[i];
      const auto at = slowness_.find(DeviceId(number));
      if (at == slowness_.end()) {
        unheard.push_back(&device);
        continue;
      }
      const auto& as_declared = declared.hosts[host].devices[i];
      const double slowness = median_of(at->second);
      ratios.push_back(as_declared.tflops / slowness / device.tflops);
      device.tflops = as_declared.tflops / slowness;
      device.training_tflops = as_declared.training_tflops / slowness;
    }
  if (ratios.empty()) return cluster;
  const double median = median_of(ratios);
  for (auto* device : unheard) {  // as much off as the others
    device->tflops *= median;
    device->training_tflops *= median;
  }
  return cluster;
}

bool Adapter::differs(const partition::Cluster& measured,
                      const partition::Cluster& believed) const {
  std::deque<double> ratios;
  for (std::size_t host = 0; host < measured.hosts.size(); ++host)
    for (std::size_t i = 0; i < measured.hosts[host].devices.size(); ++i)
      ratios.push_back(measured.hosts[host].devices[i].tflops /
                       believed.hosts[host].devices[i].tflops);
  const double median = median_of(ratios);
  return std::any_of(ratios.begin(), ratios.end(), [&](double ratio) {
    return std::max(ratio / median, median / ratio) > 1 + options_.change_min;
  });
}

bool Adapter::gains(double now_s, double then_s, std::uint64_t steps_left) const {
  return then_s < (1 - options_.gain_min) * now_s &&
         (now_s - then_s) * static_cast<double>(steps_left) > kChangeSeconds;
}

bool Adapter::looked(bool in_favour) {
  next_look_ = steps_ + options_.steps;
  looks_in_favour_ = in_favour ? looks_in_favour_ + 1 : 0;
  return looks_in_favour_ >= kLooksInFavour;
}

double Adapter::median_step_s() const {
  return median_of(steps_s_);
}

void Adapter::took_it() {
  before_s_ = median_step_s();
}

bool Adapter::has_failed() {
  if (!before_s_ || steps_s_.size() < 2 * options_.steps) return false;
  const double before_s = *std::exchange(before_s_, std::nullopt);
  if (median_step_s() < before_s) {
    pause_ = 0;
    return false;
  }
  pause_ = std::min(options_.steps_max, std::max(options_.steps, 4 * pause_));
  return true;
}

void Adapter::took_it_back() {
  before_s_.reset();
}

}  // namespace holmes::actors

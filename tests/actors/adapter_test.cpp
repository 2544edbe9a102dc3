// Goal: a job changes its plan when devices have changed for good and it pays, and not otherwise.
// Method: reports and looks as values.
#include "adapter.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "holmes/base/random.hpp"

namespace holmes::actors {
namespace {

const std::vector<DeviceId> kDevices{DeviceId(0), DeviceId(1)};

partition::Cluster two_hosts() {
  partition::Cluster cluster;
  for (const char* name : {"a0", "b0"}) {
    partition::Host host;
    host.name = name;
    host.devices.push_back({"cpu", 1, 2.0, 4});
    cluster.hosts.push_back(host);
  }
  return cluster;
}

class AdapterTest : public testing::Test {
 protected:
  /// So many steps, each with a report of every device.
  void train(std::size_t steps, double first, double second, double step_s = 1) {
    for (std::size_t i = 0; i < steps; ++i) {
      adapter_.heard(DeviceId(0), first);
      adapter_.heard(DeviceId(1), second);
      adapter_.step_took(from_seconds(step_s));
    }
  }
  double speed(std::size_t host) const {
    return adapter_.measured(two_hosts(), two_hosts()).hosts[host].devices[0].tflops;
  }

  Adapter adapter_{{.gain_min = 0.1, .reports = 4, .steps = 3}};
};

TEST_F(AdapterTest, LooksOnlyWhenEnoughIsKnown) {
  adapter_.begin();
  EXPECT_FALSE(adapter_.is_time_to_look(kDevices));
  train(3, 1, 1);
  EXPECT_FALSE(adapter_.is_time_to_look(kDevices)) << "four reports are wanted";
  train(1, 1, 1);
  EXPECT_TRUE(adapter_.is_time_to_look(kDevices));
  EXPECT_FALSE(adapter_.is_time_to_look({DeviceId(0), DeviceId(7)})) << "nothing heard of one";
  adapter_.begin();
  EXPECT_FALSE(adapter_.is_time_to_look(kDevices)) << "a generation begins anew";
}

TEST_F(AdapterTest, SpeedsAreTheMedianOfWhatWasHeardLast) {
  adapter_.begin();
  train(10, 1, 1);
  train(3, 2, 4);
  train(1, 1000, 4);
  EXPECT_DOUBLE_EQ(speed(0), 1.0);
  EXPECT_DOUBLE_EQ(speed(1), 0.5);
}

// Else a spare host would seem to be faster than all that train, wherever declared speeds are off.
TEST_F(AdapterTest, WhoWasNotHeardOfIsAsMuchOffAsTheOthers) {
  auto believed = two_hosts();
  believed.hosts[1].devices[0].tflops = 0.8;
  adapter_.heard(DeviceId(0), 4);
  const auto measured = adapter_.measured(two_hosts(), believed);
  EXPECT_DOUBLE_EQ(measured.hosts[0].devices[0].tflops, 0.5);
  EXPECT_DOUBLE_EQ(measured.hosts[1].devices[0].tflops, 0.2);
  EXPECT_FALSE(adapter_.differs(measured, believed));
}

TEST_F(AdapterTest, NonsenseIsNotHeard) {
  for (const double slowness : {0.0, -1.0, 1e-320, 1e300, std::numeric_limits<double>::quiet_NaN(),
                                std::numeric_limits<double>::infinity()})
    for (int i = 0; i < 10; ++i) adapter_.heard(DeviceId(0), slowness);
  EXPECT_DOUBLE_EQ(speed(0), 2.0);
}

TEST_F(AdapterTest, OnlyADeviceThatChangedAgainstTheOthersCounts) {
  const auto differs = [this](double first, double second) {
    auto measured = two_hosts();
    measured.hosts.push_back(measured.hosts[0]);
    auto believed = measured;
    measured.hosts[0].devices[0].tflops *= first;
    measured.hosts[1].devices[0].tflops *= second;
    measured.hosts[2].devices[0].tflops *= second;
    return adapter_.differs(measured, believed);
  };
  EXPECT_FALSE(differs(1, 1));
  EXPECT_FALSE(differs(0.3, 0.3)) << "all are alike";
  EXPECT_FALSE(differs(0.9, 1)) << "noise";
  EXPECT_TRUE(differs(0.3, 1));
  EXPECT_TRUE(differs(1, 0.3));
}

TEST_F(AdapterTest, TwoLooksInARowMustSpeakForIt) {
  adapter_.begin();
  train(4, 1, 1);
  EXPECT_FALSE(adapter_.looked(true)) << "the first time";
  EXPECT_FALSE(adapter_.looked(false));
  EXPECT_FALSE(adapter_.looked(true)) << "the first time again";
  EXPECT_FALSE(adapter_.is_time_to_look(kDevices)) << "a few steps later";
  train(3, 1, 1);
  EXPECT_TRUE(adapter_.is_time_to_look(kDevices));
  EXPECT_TRUE(adapter_.looked(true));
}

TEST_F(AdapterTest, AGainMustBeLargeEnoughForTheStepsThatAreLeft) {
  EXPECT_TRUE(adapter_.gains(0.1, 0.05, 1000));
  EXPECT_FALSE(adapter_.gains(0.1, 0.095, 1000)) << "too little of a step";
  EXPECT_FALSE(adapter_.gains(0.1, 0.05, 3)) << "too few steps";
  EXPECT_FALSE(adapter_.gains(0.1, 0.2, 1000));
}

TEST_F(AdapterTest, AChangeThatDidNotHelpIsTakenBackOnceAndLooksBecomeRare) {
  adapter_.begin();
  train(6, 1, 3, 2.0);
  adapter_.took_it();
  adapter_.begin();
  train(6, 1, 3, 2.1);
  EXPECT_FALSE(adapter_.has_failed()) << "too early to say";
  train(1, 1, 3, 2.1);
  EXPECT_TRUE(adapter_.has_failed());
  EXPECT_FALSE(adapter_.has_failed()) << "once";
  adapter_.begin();
  train(5, 1, 3, 2.0);
  EXPECT_FALSE(adapter_.is_time_to_look(kDevices));
  train(5, 1, 3, 2.0);
  EXPECT_TRUE(adapter_.is_time_to_look(kDevices));
}

TEST_F(AdapterTest, AChangeThatHelpedStays) {
  adapter_.begin();
  train(6, 1, 3, 2.0);
  adapter_.took_it();
  adapter_.begin();
  train(20, 1, 3, 1.2);
  EXPECT_FALSE(adapter_.has_failed());
  EXPECT_TRUE(adapter_.is_time_to_look(kDevices));
}

// The median of the last reports stays within what a plan must promise.
TEST_F(AdapterTest, NoiseOfAFifthMovesNothingFar) {
  Random random(7);
  Adapter adapter({.reports = 10});
  for (int i = 0; i < 1000; ++i) {
    adapter.heard(DeviceId(0), 0.8 + 0.4 * random.uniform());
    if (i < 10) continue;
    const auto cluster = adapter.measured(two_hosts(), two_hosts());
    EXPECT_NEAR(cluster.hosts[0].devices[0].tflops, 2.0, 0.4);
  }
}

}  // namespace
}  // namespace holmes::actors

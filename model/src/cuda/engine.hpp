#pragma once

// The engine that computes on a Device, whatever that is: the plugin's GPU (load_plugin.cpp) or one
// that tests emulate. It owns the device.

#include "cuda/device.hpp"
#include "holmes/model/gpt.hpp"

namespace holmes::model::cuda {

/// The engine that computes on `device`.
std::unique_ptr<Engine> make_device_engine(std::unique_ptr<Device> device);

}  // namespace holmes::model::cuda

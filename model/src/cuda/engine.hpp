#pragma once

#include "cuda/device.hpp"
#include "holmes/model/gpt.hpp"

namespace holmes::model::cuda {

/// The engine that computes on `device`.
std::unique_ptr<Engine> make_device_engine(std::unique_ptr<Device> device);

}  // namespace holmes::model::cuda

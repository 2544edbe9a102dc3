#include "sim/memory_store.hpp"

#include <algorithm>

namespace holmes::actors {

Status MemoryStore::load(const std::string& folder, std::span<const LayerState> layers) {
  const auto model = published_.find(folder);
  if (model == published_.end())
    return Error(ErrorCode::kNotFound, "there is no checkpoint " + folder);
  for (const auto& layer : layers) {
    const auto& values = model->second.at(layer.table->number);
    std::copy(values.parameters.begin(), values.parameters.end(), layer.parameters.begin());
    const auto part = [&](const std::vector<float>& all, std::span<float> out) {
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(layer.shard.begin), out.size(),
                  out.begin());
    };
    part(values.exp_avg, layer.exp_avg);
    part(values.exp_avg_sq, layer.exp_avg_sq);
  }
  return {};
}

Result<std::vector<SavedFile>> MemoryStore::save(const SaveRequest& request) {
  if (full_) return Error(ErrorCode::kOutOfResources, "no space left on the simulated disk");
  auto& model = unfinished_[request.step];
  for (const auto& layer : request.layers) {
    auto& values = model[layer.table->number];
    values.parameters.resize(layer.table->elements);
    values.exp_avg.resize(layer.table->elements);
    values.exp_avg_sq.resize(layer.table->elements);
    if (request.writes_parameters)
      std::copy(layer.parameters.begin(), layer.parameters.end(), values.parameters.begin());
    const auto at = static_cast<std::ptrdiff_t>(layer.shard.begin);
    std::copy(layer.exp_avg.begin(), layer.exp_avg.end(), values.exp_avg.begin() + at);
    std::copy(layer.exp_avg_sq.begin(), layer.exp_avg_sq.end(), values.exp_avg_sq.begin() + at);
  }
  return std::vector<SavedFile>{{"member-" + std::to_string(request.member), 0, ""}};
}

Result<std::string> MemoryStore::publish(Step step, const std::vector<SavedFile>&) {
  const auto name = folder(step);
  published_[name] = std::move(unfinished_[step]);
  unfinished_.erase(step);
  return name;
}

const MemoryStore::Model* MemoryStore::checkpoint(Step step) const {
  const auto model = published_.find(folder(step));
  return model == published_.end() ? nullptr : &model->second;
}

}  // namespace holmes::actors

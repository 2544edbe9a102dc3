// Jobs that a program builds from values are held to what a job file is held to.

#include <algorithm>
#include <cctype>

#include "holmes/actors/job_config.hpp"

namespace holmes::actors {
namespace {

/// "job:12: [train] ..." without the line of a text that nobody has seen.
Error without_line(const Error& error) {
  const std::string& message = error.message();
  const auto colon = message.find(':');
  const auto end = message.find(':', colon == std::string::npos ? colon : colon + 1);
  if (end == std::string::npos) return error;
  const bool is_line = std::all_of(message.begin() + static_cast<std::ptrdiff_t>(colon) + 1,
                                   message.begin() + static_cast<std::ptrdiff_t>(end),
                                   [](unsigned char c) { return std::isdigit(c) != 0; });
  return is_line ? Error(error.code(), message.substr(0, colon) + message.substr(end)) : error;
}

}  // namespace

Result<JobConfig> checked_job(const JobConfig& job) {
  JobConfig filled = job;
  if (filled.cluster.hosts.empty())
    filled.cluster.hosts.push_back({"localhost", "", "", {partition::Device{}}, {}});
  auto& rate = filled.train.learning_rate;
  if (rate.decay_steps == 0) rate.decay_steps = std::max<std::uint64_t>(1, filled.train.steps);
  const auto shape = partition::checked_shape(filled.train.shape);
  if (!shape) return shape.error().in("job");
  filled.train.shape = *shape;
  if (const auto sound = partition::validate(filled.cluster); !sound)
    return sound.error().in("cluster");
  const auto checked = parse_resolved_job(to_toml(filled), to_toml(filled.cluster));
  if (!checked) return without_line(checked.error());
  filled.data.tokenizer = checked->data.tokenizer;
  return filled;
}

}  // namespace holmes::actors

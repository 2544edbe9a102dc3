#pragma once

// What is printed when training has ended: figures beside what they are to be compared with.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "foresight.hpp"
#include "holmes/actors/job_config.hpp"
#include "holmes/actors/session.hpp"
#include "holmes/base/units.hpp"

namespace holmes::launcher {

struct Summary {
  actors::Outcome outcome = actors::Outcome::kFailed;
  std::optional<double> validation_nats;  ///< Per token.
  std::optional<double> gzip_nats;        ///< Per byte of the validation text.
  bool byte_tokens = false;               ///< A token is a byte: the two can be compared.
  std::filesystem::path checkpoint;       ///< Empty: none was saved.
  Duration duration{};
  std::vector<std::string> hosts_lost = {};  ///< By name, in order.
  std::optional<StepTimes> step_times = {};  ///< Nothing when too few steps were made.
};

std::string summary_text(const Summary& summary);
/// {"event": "ended", ...}
std::string summary_json(const Summary& summary);

/// What gzip -9 needs for the validation part of the job's text, in nats per byte. kOutOfResources
/// when that part is so long that nobody would wait for the figure.
Result<double> gzip_nats_of_validation(const actors::JobConfig& job);

}  // namespace holmes::launcher

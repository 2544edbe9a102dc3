#include "summary.hpp"

#include <cerrno>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gzip_bound.hpp"
#include "holmes/base/units.hpp"
#include "holmes/model/data.hpp"
#include "printable.hpp"
#include "progress.hpp"

namespace holmes::launcher {
namespace {

/// Some ten seconds of one core.
constexpr std::uint64_t kGzipBytesMax = 64 * kMiB;

std::string_view outcome_name(actors::Outcome outcome) {
  switch (outcome) {
    case actors::Outcome::kFinished:
      return "finished";
    case actors::Outcome::kInterrupted:
      return "interrupted";
    case actors::Outcome::kFailed:
      return "failed";
  }
  return "unknown";
}

Result<std::vector<std::byte>> read_part(const std::filesystem::path& file,
                                         const model::TokenRange& bytes) {
  std::vector<std::byte> part(bytes.size());
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(bytes.begin));
  in.read(reinterpret_cast<char*>(part.data()), static_cast<std::streamsize>(part.size()));
  if (!in) return system_error("cannot read " + file.string(), errno);
  return part;
}

}  // namespace

std::string summary_text(const Summary& summary) {
  std::string text;
  if (summary.validation_nats)
    text += fmt::format("validation loss {:.4f} nats per {}\n", *summary.validation_nats,
                        summary.byte_tokens ? "byte" : "token");
  if (summary.gzip_nats)
    text +=
        fmt::format("gzip -9 needs   {:.4f} nats per byte for the same text\n", *summary.gzip_nats);
  if (summary.step_times) text += "time of a step  " + step_times_text(*summary.step_times) + "\n";
  if (!summary.checkpoint.empty())
    text += fmt::format("checkpoint      {}\n", printable(summary.checkpoint.string()));
  if (!summary.hosts_lost.empty())
    text += fmt::format("hosts lost      {}: {}\n", summary.hosts_lost.size(),
                        printable(fmt::format("{}", fmt::join(summary.hosts_lost, ", "))));
  text += fmt::format("{} after {}", outcome_name(summary.outcome),
                      human_duration(seconds(summary.duration)));
  return text;
}

std::string summary_json(const Summary& summary) {
  nlohmann::ordered_json json{{"event", "ended"},
                              {"outcome", outcome_name(summary.outcome)},
                              {"duration_s", seconds(summary.duration)}};
  if (summary.validation_nats) json["validation_loss"] = *summary.validation_nats;
  if (summary.gzip_nats) json["gzip9_nats_per_byte"] = *summary.gzip_nats;
  if (const auto& times = summary.step_times)
    json["step_time"] = {{"predicted_s", times->predicted_s},
                         {"measured_median_s", times->measured_s},
                         {"steps", times->steps},
                         {"ratio", times->ratio()},
                         {"calibrated", times->calibrated}};
  if (!summary.checkpoint.empty()) json["checkpoint"] = summary.checkpoint.string();
  if (!summary.hosts_lost.empty()) json["hosts_lost"] = summary.hosts_lost;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<double> gzip_nats_of_validation(const actors::JobConfig& job) {
  if (!job.data.tokens.empty())
    return Error(ErrorCode::kInvalidArgument, "there is no text to compress, only tokens");
  HOLMES_TRY_ASSIGN(const auto tokens, model::open_byte_text(job.data.text));
  HOLMES_TRY_ASSIGN(const auto parts,
                    model::split(*tokens, job.data.validation, job.train.sequence));
  if (parts.validation.size() > kGzipBytesMax)
    return Error(ErrorCode::kOutOfResources,
                 "the validation text is too long to compress it for a "
                 "comparison");
  HOLMES_TRY_ASSIGN(const auto text, read_part(job.data.text, parts.validation));
  return gzip_nats_per_byte(text);
}

}  // namespace holmes::launcher

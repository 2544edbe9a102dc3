#include "config/job_checks.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "holmes/base/address.hpp"
#include "holmes/model/tokenizer.hpp"

namespace holmes::actors {
namespace {

using Keys = std::vector<std::string>;

/// Where the value that does not fit was given: on the command line before in the file, and the
/// file as a whole when all are defaults.
std::string where(const Draft& draft, const Keys& keys) {
  std::string found = draft.file;
  bool in_file = false;
  for (const auto& key : keys) {
    const auto place = draft.places.find(key);
    if (place == draft.places.end()) continue;
    if (place->second.starts_with("--set ")) return place->second;
    if (!in_file) found = place->second;
    in_file = true;
  }
  return found;
}

Error invalid(const Draft& draft, const Keys& keys, const std::string& what) {
  return Error(ErrorCode::kInvalidArgument, where(draft, keys) + ": " + what);
}

std::string text(std::uint64_t value) {
  return std::to_string(value);
}

/// The keys of [model] that a message names, in its order.
Keys keys_in(const std::string& message) {
  std::map<std::size_t, std::string> found;
  for (const Key& key : config_keys()) {
    if (key.section != "model") continue;
    const std::string name = "model." + std::string(key.name);
    const auto at = message.find(name);
    if (at != std::string::npos && found[at].size() < name.size()) found[at] = name;
  }
  Keys keys;
  for (auto& [at, name] : found) keys.push_back(std::move(name));
  return keys;
}

Status check_model(Draft& draft) {
  const auto& model = draft.job.model;
  if (const Status status = model::validate(model); !status) {
    const auto& message = status.error().message();
    return invalid(draft, keys_in(message), message);
  }
  constexpr std::uint32_t kByteValues = 256;
  if (draft.job.data.tokenizer == "bytes" && model.vocabulary < kByteValues) {
    return invalid(draft, {"model.vocabulary"},
                   "model.vocabulary = " + text(model.vocabulary) +
                       " is too small for data.tokenizer = \"bytes\", which needs 256");
  }
  std::uint32_t& sequence = draft.job.train.sequence;
  if (!draft.is_set("train.sequence")) sequence = model.sequence;
  if (sequence > model.sequence) {
    return invalid(draft, {"train.sequence", "model.sequence"},
                   "train.sequence = " + text(sequence) + " is longer than model.sequence = " +
                       text(model.sequence) + "; lower it or raise model.sequence");
  }
  return {};
}

/// Tokens need no tokenizer; a path means the same file whoever reads it.
void settle_tokenizer(Draft& draft) {
  auto& data = draft.job.data;
  if (!data.tokens.empty() && !draft.is_set("data.tokenizer")) data.tokenizer = model::kNoTokenizer;
  if (!names_tokenizer_file(draft.job)) return;
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(data.tokenizer, failed);
  if (!failed) data.tokenizer = absolute.lexically_normal().string();
}

Status check_shape(Draft& draft) {
  auto& shape = draft.job.train.shape;
  const auto checked = partition::checked_shape(shape);
  if (!checked) {
    return invalid(draft, {"train.reduction_leaves", "train.batch", "train.micro_batch"},
                   checked.error().message());
  }
  shape = *checked;
  return {};
}

Status check_learning_rate(Draft& draft) {
  const auto& train = draft.job.train;
  auto& rate = draft.job.train.learning_rate;
  constexpr float kDefaultShare = 10;
  if (!draft.is_set("train.lr_min")) rate.floor = rate.peak / kDefaultShare;
  if (rate.floor > rate.peak) {
    return invalid(draft, {"train.lr_min", "train.lr"},
                   "train.lr_min is above train.lr; lower it or raise train.lr");
  }
  if (!draft.is_set("train.decay_steps")) rate.decay_steps = train.steps;
  if (rate.warmup_steps > rate.decay_steps) {
    const bool given = draft.is_set("train.decay_steps");
    return invalid(draft, {"train.warmup_steps", "train.decay_steps", "train.steps"},
                   "train.warmup_steps = " + text(rate.warmup_steps) +
                       " is above train.decay_steps = " + text(rate.decay_steps) +
                       (given ? "" : " (by default train.steps)") +
                       "; lower train.warmup_steps too (0: no warm-up) or raise " +
                       (given ? "train.decay_steps" : "train.steps"));
  }
  return {};
}

Status check_resilience(const Draft& draft) {
  const auto& resilience = draft.job.resilience;
  if (resilience.timeout_ms >= 2 * resilience.heartbeat_ms) return {};
  return invalid(draft, {"resilience.timeout_ms", "resilience.heartbeat_ms"},
                 "resilience.timeout_ms = " + text(resilience.timeout_ms) +
                     " is less than two heartbeats of " + text(resilience.heartbeat_ms) +
                     " ms; one late heartbeat would lose a host");
}

std::string gib(double bytes) {
  constexpr double kBytes = 1024.0 * 1024 * 1024;
  std::array<char, 32> result{};
  std::snprintf(result.data(), result.size(), "%.3g GiB", bytes / kBytes);
  return result.data();
}

/// The least that any layout needs: weights and gradients once, the largest activation. What a
/// layout really needs is more; this refuses what can never fit.
Status check_memory(const Draft& draft) {
  const auto& job = draft.job;
  const auto cost = model_cost(job);
  const double parameters = 1.0 * cost.blocks * static_cast<double>(cost.block_parameters) +
                            static_cast<double>(cost.head_parameters) +
                            (cost.tied_head ? 0 : static_cast<double>(cost.embedding_parameters));
  const double widest = std::max(job.model.channels, job.model.padded_vocabulary());
  const double activation = 4.0 * job.train.shape.micro_batch * job.train.sequence * widest;
  double memory = 0;
  double largest = 0;
  for (const auto& host : job.cluster.hosts) {
    for (const auto& device : host.devices) {
      memory += device.memory_gib;
      largest = std::max(largest, device.memory_gib);
    }
  }
  constexpr double kGib = 1024.0 * 1024 * 1024;
  if (8 * parameters > memory * kGib) {
    return invalid(draft, {"model.channels", "model.layers", "model.vocabulary"},
                   "the model's weights and gradients need " + gib(8 * parameters) +
                       ", but the devices of the cluster have " + gib(memory * kGib) +
                       " in all (memory_gib); make the model smaller or the cluster larger");
  }
  if (activation > largest * kGib) {
    return invalid(draft, {"train.micro_batch", "train.sequence", "model.vocabulary"},
                   "one activation of a micro-batch needs " + gib(activation) +
                       ", but no device has more than " + gib(largest * kGib) +
                       "; lower train.micro_batch or train.sequence");
  }
  return {};
}

Status check_plan(const Draft& draft) {
  const auto plan = plan_of(draft.job);
  if (plan) return {};
  return invalid(
      draft,
      {"parallel.tensor", "parallel.pipeline", "parallel.data", "cluster.file", "model.layers"},
      plan.error().message());
}

/// Both files of the data set are there; what is in them is checked when they are opened.
Status check_tokens(const Draft& draft) {
  const auto& prefix = draft.job.data.tokens;
  for (const char* suffix : {".idx", ".bin"}) {
    std::error_code error;
    if (std::filesystem::is_regular_file(prefix.string() + suffix, error)) continue;
    return invalid(draft, {"data.tokens"},
                   "data.tokens: there is no file " + prefix.string() + suffix +
                       "; name a data set without .bin or .idx (holmes data build makes one)");
  }
  return {};
}

}  // namespace

Status check_job(Draft& draft) {
  settle_tokenizer(draft);
  HOLMES_TRY(check_model(draft));
  HOLMES_TRY(check_shape(draft));
  HOLMES_TRY(check_learning_rate(draft));
  HOLMES_TRY(check_resilience(draft));
  HOLMES_TRY(check_memory(draft));
  return check_plan(draft);
}

bool uses_tls(const JobConfig& job) {
  const auto& transport = job.transport;
  if (transport.security != Security::kAuto) return transport.security == Security::kTls;
  return transport.nics == NicSource::kInterfaces || !is_loopback(transport.listen);
}

bool uses_tls(const JobConfig& job, const partition::Nic& nic) {
  const bool trusted = job.cluster.fabrics.at(nic.fabric.index()).trusted;
  return uses_tls(job) && !(job.transport.plain_on_trusted && trusted);
}

bool names_tokenizer_file(const JobConfig& job) {
  const auto& name = job.data.tokenizer;
  return name != "bytes" && name != model::kNoTokenizer;
}

Status check_text(const Draft& draft) {
  const auto& file = draft.job.data.text;
  const auto& tokens = draft.job.data.tokens;
  if (!tokens.empty() && !file.empty()) {
    return invalid(draft, {"data.tokens", "data.text"},
                   "data.text and data.tokens are both set; train on one of them");
  }
  if (!tokens.empty()) return check_tokens(draft);
  if (draft.job.data.tokenizer == model::kNoTokenizer) {
    return invalid(draft, {"data.tokenizer"},
                   "data.tokenizer = \"none\" is for data.tokens; text needs a tokenizer");
  }
  if (file.empty()) {
    return invalid(draft, {}, "data.text is not set; name the text to train on under [data]");
  }
  const auto wrong = [&](const std::string& what) {
    return invalid(draft, {"data.text"}, "data.text: " + file.string() + " " + what);
  };
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) {
    return wrong("does not exist; " +
                 std::string(file.filename() == "bible.txt"
                                 ? "scripts/demo (or scripts/demo --quick) makes this text; for "
                                   "one of your own: --set data.text=FILE"
                             : where(draft, {"data.text"}).starts_with("--set ")
                                 ? "paths given by --set are relative to the current folder"
                                 : "paths in a job file are relative to its folder"));
  }
  if (!std::filesystem::is_regular_file(status)) return wrong("is not a regular file");
  const auto size = std::filesystem::file_size(file, error);
  if (error) return wrong(error.message());
  if (size == 0) return wrong("is empty");
  return {};
}

}  // namespace holmes::actors

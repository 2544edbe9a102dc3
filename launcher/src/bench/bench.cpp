#include "bench/bench.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include "bench/work.hpp"
#include "exit_codes.hpp"
#include "failure.hpp"
#include "holmes/base/units.hpp"
#include "holmes/transport/tls.hpp"

namespace holmes::launcher {
namespace {

constexpr int kRounds = 3;

using Work = Result<Figures> (*)(const BenchCommand&, std::uint32_t, RankLine&);

Result<Figures> measure(const BenchCommand& command, std::uint32_t ranks, Work work) {
  return run_ranks(ranks, kGathers,
                   [&](std::uint32_t rank, RankLine& line) { return work(command, rank, line); });
}

/// The better of two.
void keep_best(std::optional<Figures>& best, const Figures& other) {
  if (!best || other.median_s < best->median_s) best = other;
}

Status check(const BenchCommand& command) {
  const auto bad = [](const std::string& what) {
    return Error(ErrorCode::kInvalidArgument, "bench: " + what);
  };
  if (command.transport != "tcp")
    return bad("transport \"" + command.transport + "\" is not there to be measured; use tcp");
  if (command.ranks < 2 || command.ranks > 64) return bad("--ranks: between 2 and 64");
  if (command.bytes == 0 || command.bytes > 4 * kGiB || command.bytes % 4 != 0)
    return bad("--bytes: a multiple of 4, at most 4 GiB");
  if (command.what == "p2p" && command.ranks != 2) return bad("p2p has two ranks");
  return {};
}

nlohmann::ordered_json head(const BenchCommand& command) {
  return {{"bench", command.what},          {"transport", command.transport},
          {"ranks", command.ranks},         {"ranks_as", "processes"},
          {"bytes", command.bytes},         {"bulk_sockets", command.bulk_sockets},
          {"busy_poll", command.busy_poll}, {"tls", command.tls}};
}

/// Bytes that cross the bus of each rank, as NCCL's tests count them.
double bus_bytes(const BenchCommand& command) {
  const double ranks = command.ranks;
  const double share = static_cast<double>(command.bytes) * (ranks - 1) / ranks;
  if (command.what == "p2p") return static_cast<double>(command.bytes);
  return command.what == "allreduce" ? 2 * share : share;
}

Status make_credentials(BenchCommand& command) {
  if (!command.tls) return {};
  HOLMES_TRY_ASSIGN(const auto authority, transport::Authority::make(kBenchJob));
  for (std::uint32_t rank = 0; rank < command.ranks; ++rank) {
    HOLMES_TRY_ASSIGN(auto credentials, authority.issue(rank_name(rank)));
    command.credentials.push_back(std::move(credentials));
  }
  return {};
}

Result<nlohmann::ordered_json> run(BenchCommand command) {
  HOLMES_TRY(check(command));
  HOLMES_TRY(make_credentials(command));
  const bool p2p = command.what == "p2p";
  std::optional<Figures> best;
  std::optional<Figures> raw;
  std::vector<double> shares;
  BenchCommand raw_command = command;
  raw_command.bytes = static_cast<std::uint64_t>(bus_bytes(command));
  for (int round = 0; round < kRounds; ++round) {  // in turns, since the machine's speed moves
    if (command.ranks == 2) {
      HOLMES_TRY_ASSIGN(const auto figures, measure(raw_command, 2, raw_work));
      keep_best(raw, figures);
      shares.push_back(figures.median_s);
    }
    HOLMES_TRY_ASSIGN(const auto figures,
                      measure(command, command.ranks, p2p ? exchange_work : collective_work));
    keep_best(best, figures);
    if (!shares.empty()) shares.back() /= figures.median_s;
  }
  auto json = head(command);
  if (!p2p) json["algorithm"] = command.algorithm;
  const double bytes = bus_bytes(command);
  json["bus_gbytes_per_s"] = bytes / best->median_s * 1e-9;
  json["bus_gbytes_per_s_best"] = bytes / best->best_s * 1e-9;
  json["latency_us_median"] = best->median_s * 1e6;
  json["latency_us_p99"] = best->p99_s * 1e6;
  json["cpu_s_per_gbyte"] = best->cpu_s / (bytes * 1e-9);
  json["repetitions"] = best->repetitions;
  if (raw) {
    std::sort(shares.begin(), shares.end());
    json["raw_gbytes_per_s"] = bytes / raw->median_s * 1e-9;
    json["share_of_raw_median"] = shares[shares.size() / 2];
  }
  if (p2p) {
    HOLMES_TRY_ASSIGN(const auto trip, measure(command, 2, round_trip_work));
    json["round_trip_64_us_median"] = trip.median_s * 1e6;
    json["round_trip_64_us_p99"] = trip.p99_s * 1e6;
  }
  return json;
}

std::string table(const nlohmann::ordered_json& json) {
  std::string out;
  for (const auto& [key, value] : json.items()) {
    char line[160];
    if (value.is_number_float())
      std::snprintf(line, sizeof line, "%-26s %.3f\n", key.c_str(), value.get<double>());
    else
      std::snprintf(line, sizeof line, "%-26s %s\n", key.c_str(),
                    value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
    out += line;
  }
  return out;
}

}  // namespace

int bench(const BenchCommand& command, Console& console) {
  const auto result = run(command);
  if (!result) return report_failure(result.error(), console, command.json);
  console.print(command.json ? result->dump() : table(*result));
  return kExitDone;
}

}  // namespace holmes::launcher

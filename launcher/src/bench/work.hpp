#pragma once

// What the ranks of each benchmark do.

#include "bench/bench.hpp"
#include "bench/ranks.hpp"

namespace holmes::launcher {

/// Times that a body calls RankLine::all_gather.
constexpr int kGathers = 3;
constexpr const char* kBenchJob = "bench";
inline std::string rank_name(std::uint32_t rank) {
  return "rank" + std::to_string(rank);
}

/// One plain socket between two ranks, both ways at once.
Result<Figures> raw_work(const BenchCommand& command, std::uint32_t rank, RankLine& line);
/// One bulk payload each way at once, again and again.
Result<Figures> exchange_work(const BenchCommand& command, std::uint32_t rank, RankLine& line);
/// A control message of 64 bytes there and back.
Result<Figures> round_trip_work(const BenchCommand& command, std::uint32_t rank, RankLine& line);
/// The collective that the command names, in place, again and again.
Result<Figures> collective_work(const BenchCommand& command, std::uint32_t rank, RankLine& line);

}  // namespace holmes::launcher

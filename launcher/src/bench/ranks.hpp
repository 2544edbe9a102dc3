#pragma once

// The processes of a benchmark: forked before anything has a thread, each on one end of a socket
// pair to the parent, through which addresses and results go.

#include <functional>
#include <vector>

#include "bench/figures.hpp"
#include "holmes/base/result.hpp"
#include "run_folder.hpp"

namespace holmes::launcher {

/// A rank's line to the parent. Every call blocks.
class RankLine {
 public:
  explicit RankLine(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  /// Gives this rank's text and gets those of all ranks.
  Result<std::vector<std::string>> all_gather(const std::string& own);
  /// What this rank found out, last of all.
  Status report(const Result<Figures>& figures);

  // The parent's side.
  Result<std::string> read_text();
  Status write_text(const std::string& text);
  Result<Figures> read_report();

 private:
  Descriptor descriptor_;
};

/// The work of one rank.
using RankBody = std::function<Result<Figures>(std::uint32_t rank, RankLine& line)>;

/// Runs `body` in `ranks` processes; rank 0's figures, or the first error. `gathers` is how often
/// the body calls all_gather.
Result<Figures> run_ranks(std::uint32_t ranks, int gathers, const RankBody& body);

}  // namespace holmes::launcher

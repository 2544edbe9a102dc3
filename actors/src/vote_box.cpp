#include "vote_box.hpp"

#include <algorithm>
#include <cmath>

namespace holmes::actors {

Result<std::optional<Vote>> VoteBox::add(Vote vote) {
  const auto refused = [&vote](const char* why) {
    return Error(ErrorCode::kCorrupt, "device " + std::to_string(vote.from.value()) + why +
                                          " in step " + std::to_string(vote.step.value()));
  };
  if (!voters_.contains(vote.from)) return refused(" has no vote here");
  auto& gathering = by_step_[vote.step];
  if (!gathering.voted.insert(vote.from).second) return refused(" voted twice");
  if (gathering.voted.size() == 1) {
    gathering.merged = std::move(vote);
  } else {
    auto& merged = gathering.merged;
    merged.squares.insert(merged.squares.end(), vote.squares.begin(), vote.squares.end());
    merged.losses.insert(merged.losses.end(), vote.losses.begin(), vote.losses.end());
  }
  if (gathering.voted.size() < voters_.size()) return std::optional<Vote>();
  std::optional<Vote> complete = std::move(gathering.merged);
  by_step_.erase(complete->step);
  return complete;
}

double fold_norm(const Vote& vote) {
  auto squares = vote.squares;
  std::sort(squares.begin(), squares.end(), [](const auto& a, const auto& b) {
    return std::pair(a.layer, a.first_chunk) < std::pair(b.layer, b.first_chunk);
  });
  double sum = 0;
  for (const auto& run : squares)
    for (const double square : run.squares) sum += square;
  return std::sqrt(sum);
}

double fold_loss(const Vote& vote) {
  auto losses = vote.losses;
  std::sort(losses.begin(), losses.end(),
            [](const auto& a, const auto& b) { return a.micro_batch < b.micro_batch; });
  double sum = 0;
  for (const auto& item : losses) sum += static_cast<double>(item.loss);
  return losses.empty() ? 0 : sum / static_cast<double>(losses.size());
}

}  // namespace holmes::actors

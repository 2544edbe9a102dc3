#include "resumption.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "routes.hpp"

namespace holmes::actors {

namespace {

/// Covers what each member needs with pieces that somebody holds.
class Mover {
 public:
  explicit Mover(const TransferInput& input) : in_(input) {}

  bool serve_member(std::size_t stage, std::size_t share) {
    const auto& shares = in_.plan.stages[stage].shares;
    const DeviceId device = shares[share].device;
    for (const auto number : layers(stage)) {
      const auto& table = in_.table[number];
      for (std::size_t owner = 0; owner < shares.size(); ++owner) {
        const auto use = owner == share ? StateUse::kShard : StateUse::kReplica;
        if (!serve({0, use, {}, device, {number, table.updated(owner, shares.size())}, {}}))
          return false;
      }
      const auto& head = in_.table.back();
      if (number == 0 && !serve({0, StateUse::kTiedCopy, {}, device, {head.number, head.tied}, {}}))
        return false;
    }
    const auto keeper = in_.keepers.find(device);
    return keeper == in_.keepers.end() || serve_keeper(stage, share, keeper->second);
  }

  std::vector<StateTransfer> take() { return std::move(transfers_); }

 private:
  bool serve_keeper(std::size_t stage, std::size_t share, DeviceId keeper) {
    const auto& shares = in_.plan.stages[stage].shares;
    for (const auto number : layers(stage))
      if (!serve({0,
                  StateUse::kKeptShard,
                  {},
                  keeper,
                  {number, in_.table[number].updated(share, shares.size())},
                  shares[share].device}))
        return false;
    return true;
  }

  /// Cuts `wanted` into runs that one source has.
  bool serve(const StateTransfer& wanted) {
    auto rest = wanted.piece.elements;
    while (!rest.empty()) {
      StateTransfer run = wanted;
      const auto end = choose(run, rest.begin);
      if (!end) return false;
      run.number = static_cast<std::uint32_t>(transfers_.size());
      run.piece.elements = {rest.begin, std::min(*end, rest.end)};
      if (in_.cluster.host_of(run.source) != in_.cluster.host_of(run.destination))
        sent_[run.source] += run.piece.elements.size() * state_parts(run.use);
      rest.begin = run.piece.elements.end;
      transfers_.push_back(run);
    }
    return true;
  }

  /// Sets the source of `run` to the best holder of element `at`; returns where its piece ends.
  std::optional<std::size_t> choose(StateTransfer& run, std::size_t at) const {
    using Rank = std::tuple<bool, bool, std::size_t>;
    std::optional<Rank> best;
    std::size_t end = 0;
    const HostId here = in_.cluster.host_of(run.destination);
    for (const auto& state : in_.held)
      for (const auto& piece : state.pieces) {
        if (piece.layer != run.piece.layer || at < piece.elements.begin || at >= piece.elements.end)
          continue;
        const HostId there = in_.cluster.host_of(state.device);
        if (there != here && !fastest_nics(in_.cluster, there, here)) continue;
        const auto burden = sent_.find(state.device);
        const Rank rank{state.device != run.destination, there != here,
                        burden == sent_.end() ? 0 : burden->second};
        if (best && *best <= rank) continue;
        best = rank;
        run.source = state.device;
        end = piece.elements.end;
      }
    if (!best) return std::nullopt;
    return end;
  }

  std::vector<std::uint32_t> layers(std::size_t stage) const {
    return stage_layers(in_.plan, StageIndex(static_cast<std::uint32_t>(stage)), in_.model);
  }

  const TransferInput& in_;
  std::map<DeviceId, std::size_t> sent_;  // elements that leave their host
  std::vector<StateTransfer> transfers_;
};

}  // namespace

Resumption resume_from(Step begun, const std::optional<CommittedStep>& last_heard,
                       const std::vector<CommittedStep>& seen, const std::vector<HeldState>& held) {
  Resumption resumption;
  resumption.first_step = last_heard ? Step(last_heard->step.value() + 1) : begun;
  std::map<Step, CommittedStep> commits;
  for (const auto& commit : seen)
    if (commit.step >= resumption.first_step) commits.emplace(commit.step, commit);
  for (const auto& [step, commit] : commits) resumption.unheard.push_back(commit);
  std::optional<CommittedStep> last = last_heard;
  if (!commits.empty()) {
    last = commits.rbegin()->second;
    resumption.first_step = Step(last->step.value() + 1);
  }
  for (const auto& state : held)
    if (last && state.updates == last->step && state.reduced)
      resumption.settle_norm = last->gradient_norm;
  return resumption;
}

bool is_usable(const HeldState& state, Step first_step) {
  if (state.updates == first_step) return true;
  return state.reduced && state.updates.value() + 1 == first_step.value();
}

std::optional<std::vector<StateTransfer>> state_transfers(const TransferInput& input) {
  Mover mover(input);
  for (std::size_t stage = 0; stage < input.plan.stages.size(); ++stage)
    for (std::size_t share = 0; share < input.plan.stages[stage].shares.size(); ++share)
      if (!mover.serve_member(stage, share)) return std::nullopt;
  return mover.take();
}

}  // namespace holmes::actors

#include "holmes/transport/message.hpp"

namespace holmes::transport {

namespace {

const char* name(BulkKind kind) {
  switch (kind) {
    case BulkKind::kActivation:
      return "activation";
    case BulkKind::kActivationGradient:
      return "activation gradient";
    case BulkKind::kGradientPartial:
      return "gradient partial";
    case BulkKind::kTiedGradient:
      return "tied gradient";
    case BulkKind::kParameters:
      return "parameters";
    case BulkKind::kTiedParameters:
      return "tied parameters";
    case BulkKind::kState:
      return "state";
    case BulkKind::kCollective:
      return "collective";
    case BulkKind::kReducedGradient:
      return "reduced gradient";
  }
  return "unknown payload";
}

bool has_micro_batch(BulkKind kind) {
  return kind == BulkKind::kActivation || kind == BulkKind::kActivationGradient;
}

}  // namespace

std::string to_string(const BulkTag& tag) {
  const auto number = [](auto id) { return std::to_string(id.value()); };
  std::string out = std::string(name(tag.kind)) + " of step " + number(tag.step);
  if (tag.kind == BulkKind::kCollective)
    return "collective " + number(tag.step) + " of group " + number(tag.stage) + ", round " +
           number(tag.micro_batch) + ", piece " + number(tag.layer) + " (rank " +
           number(tag.source) + " to rank " + number(tag.destination) + ", generation " +
           number(tag.generation) + ")";
  out += has_micro_batch(tag.kind)
             ? ", micro-batch " + number(tag.micro_batch)
             : ", layer " + number(tag.layer) + ", node " + std::to_string(tag.node);
  return out + ", stage " + number(tag.stage) + " (device " + number(tag.source) + " to device " +
         number(tag.destination) + ", generation " + number(tag.generation) + ")";
}

}  // namespace holmes::transport

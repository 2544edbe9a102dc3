#pragma once

// Puts a value of a file or of the command line into a field: type, range and choices are checked
// here for all keys of both files.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "config/document.hpp"
#include "holmes/actors/job_config.hpp"
#include "holmes/base/result.hpp"
#include "holmes/partition/cluster.hpp"
#include "holmes/partition/cost.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::actors {

/// Where a value goes. Enumerations take one of Rule::choices, by its index.
using Target = std::variant<bool*, std::uint32_t*, std::uint64_t*, float*, double*, std::string*,
                            std::filesystem::path*, partition::Strategy*, partition::ScheduleKind*,
                            partition::NicKind*, partition::SplitRule*, partition::Recompute*,
                            partition::OptimizerKind*, partition::Collective*, OnLoss*, NicSource*,
                            Security*, model::Family*, model::Head*>;

/// What a value must be.
struct Rule {
  double min = 0;  ///< Of numbers, inclusive.
  double max = 0;
  std::span<const std::string_view> choices = {};  ///< Of strings and enumerations.
};

/// "integer", "number", "true or false", "string", "path", "one of ...".
std::string describe_type(const Target& target, const Rule& rule);
/// "1 .. 100", or nothing where there is no range.
std::string describe_range(const Target& target, const Rule& rule);
/// The value as one would write it in a file.
std::string show(const Target& target, const Rule& rule);

/// Errors say what is wrong without where: the caller knows that.
Status assign(const Target& target, const Rule& rule, const Node& value);
/// The same from a command line, where strings need no quotes.
Status assign_text(const Target& target, const Rule& rule, std::string_view text);

}  // namespace holmes::actors

#pragma once

// The nearest valid name for a misspelt one.

#include <span>
#include <string>
#include <string_view>

namespace holmes {

/// Letters to add, drop, change or swap with the neighbour to turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// "; did you mean 'x'?" with the nearest of `names`, or nothing when none is near.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> names);

}  // namespace holmes

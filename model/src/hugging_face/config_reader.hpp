#pragma once

// What the readers of each family's config.json share. The functions throw std::invalid_argument
// with the key and what would do; parse_model_config() is the seam that makes errors of it.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "holmes/model/gpt.hpp"

namespace holmes::model {

/// The keys of one object.
struct KnownKeys {
  /// They are read elsewhere, or change nothing of what the model computes: names, tokens, how it
  /// was or is trained or stored, what other programs shall return.
  std::set<std::string_view> any_value;
  /// Those that may only have one of these values: the model is the one that Holmes computes.
  nlohmann::json one_value;
};

/// `where` stands before the keys: "" or "rope_scaling.".
void check_keys(const nlohmann::json& object, const KnownKeys& known,
                const std::string& where = "");

/// A whole number that must be there.
std::uint32_t whole_number(const nlohmann::json& object, const std::string& key);
/// Any number that must be there.
double real_number(const nlohmann::json& object, const std::string& key);

GptConfig read_gpt2_config(const nlohmann::json& object);
GptConfig read_llama_config(const nlohmann::json& object);

}  // namespace holmes::model

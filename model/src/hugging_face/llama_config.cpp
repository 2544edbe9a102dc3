#include <stdexcept>

#include "hugging_face/config_reader.hpp"

namespace holmes::model {
namespace {

using nlohmann::json;

const KnownKeys& known_keys() {
  static const KnownKeys kKeys{{"_name_or_path",
                                "architectures",
                                "attention_dropout",
                                "bos_token_id",
                                "dtype",
                                "eos_token_id",
                                "head_dim",
                                "hidden_size",
                                "initializer_range",
                                "intermediate_size",
                                "max_position_embeddings",
                                "model_type",
                                "num_attention_heads",
                                "num_hidden_layers",
                                "num_key_value_heads",
                                "pad_token_id",
                                "pretraining_tp",
                                "rms_norm_eps",
                                "rope_parameters",
                                "rope_scaling",
                                "rope_theta",
                                "tie_word_embeddings",
                                "torch_dtype",
                                "transformers_version",
                                "use_cache",
                                "vocab_size",
                                "holmes"},
                               json::object({
                                   {"hidden_act", json::array({"silu"})},
                                   {"attention_bias", json::array({false})},
                                   {"mlp_bias", json::array({false})},
                                   {"partial_rotary_factor", json::array({1.0})},
                                   {"add_cross_attention", json::array({false})},
                                   {"is_encoder_decoder", json::array({false})},
                               })};
  return kKeys;
}

/// A whole number above 0 (which would mean something else in our own configuration).
std::uint32_t positive(const json& object, const std::string& key) {
  const auto value = whole_number(object, key);
  if (value == 0) throw std::invalid_argument("\"" + key + "\" is 0; it must be at least 1");
  return value;
}

/// Null counts as not given.
bool is_given(const json& object, const std::string& key) {
  return object.contains(key) && !object.at(key).is_null();
}

const KnownKeys& known_rope_keys(bool scaled) {
  static const KnownKeys kPlain{{"rope_theta", "rope_type", "type"},
                                json::object({{"partial_rotary_factor", json::array({1.0})}})};
  static const KnownKeys kScaled{{"rope_theta", "rope_type", "type", "factor", "low_freq_factor",
                                  "high_freq_factor", "original_max_position_embeddings"},
                                 kPlain.one_value};
  return scaled ? kScaled : kPlain;
}

/// "rope_scaling" (older) or "rope_parameters" (newer, with the base in it).
void read_rope(const json& object, const std::string& name, Rope& rope) {
  if (!object.is_object())
    throw std::invalid_argument("\"" + name + "\" is " + object.dump() + ", no object");
  const auto type = object.value("rope_type", object.value("type", json("default")));
  if (type != "default" && type != "llama3")
    throw std::invalid_argument("\"" + name + "\" has rope_type " + type.dump() +
                                ", only \"default\" and \"llama3\" are computed");
  const bool scaled = type == "llama3";
  check_keys(object, known_rope_keys(scaled), name + ".");
  if (is_given(object, "rope_theta")) rope.theta = real_number(object, "rope_theta");
  if (!scaled) return;
  rope.factor = real_number(object, "factor");
  rope.low_factor = real_number(object, "low_freq_factor");
  rope.high_factor = real_number(object, "high_freq_factor");
  rope.original_sequence = whole_number(object, "original_max_position_embeddings");
}

bool read_tied(const json& object) {
  const auto tied = object.value("tie_word_embeddings", json(false));
  if (!tied.is_boolean())
    throw std::invalid_argument("\"tie_word_embeddings\" is " + tied.dump() +
                                ", neither true nor false");
  return tied.get<bool>();
}

}  // namespace

// What is left out has the values that transformers gives it.
GptConfig read_llama_config(const json& object) {
  constexpr double kEpsilon = 1e-6;
  GptConfig config;
  config.family = Family::kLlama;
  config.layers = whole_number(object, "num_hidden_layers");
  config.heads = whole_number(object, "num_attention_heads");
  config.channels = whole_number(object, "hidden_size");
  config.sequence = whole_number(object, "max_position_embeddings");
  config.vocabulary = whole_number(object, "vocab_size");
  config.feed_forward = positive(object, "intermediate_size");
  check_keys(object, known_keys());
  if (is_given(object, "num_key_value_heads"))
    config.kv_heads = positive(object, "num_key_value_heads");
  if (is_given(object, "head_dim")) config.head_channels = positive(object, "head_dim");
  config.norm_epsilon =
      is_given(object, "rms_norm_eps") ? real_number(object, "rms_norm_eps") : kEpsilon;
  config.head = read_tied(object) ? Head::kTied : Head::kUntied;
  if (is_given(object, "rope_theta")) config.rope.theta = real_number(object, "rope_theta");
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (is_given(object, key)) read_rope(object.at(key), key, config.rope);
  return config;
}

}  // namespace holmes::model

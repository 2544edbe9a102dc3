#include <limits>
#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "holmes/model/hugging_face.hpp"

namespace holmes::model {
namespace {

using nlohmann::json;

/// Keys that change nothing of what the model computes: names, tokens, how it was or is trained or
/// stored, what other programs shall return.
const std::set<std::string_view>& keys_without_effect() {
  static const std::set<std::string_view> kKeys{"_name_or_path",
                                                "architectures",
                                                "attn_pdrop",
                                                "bos_token_id",
                                                "dtype",
                                                "embd_pdrop",
                                                "eos_token_id",
                                                "gradient_checkpointing",
                                                "initializer_range",
                                                "model_type",
                                                "n_ctx",
                                                "n_embd",
                                                "n_head",
                                                "n_layer",
                                                "n_positions",
                                                "output_past",
                                                "pad_token_id",
                                                "predict_special_tokens",
                                                "reorder_and_upcast_attn",
                                                "resid_pdrop",
                                                "summary_activation",
                                                "summary_first_dropout",
                                                "summary_proj_to_labels",
                                                "summary_type",
                                                "summary_use_proj",
                                                "task_specific_params",
                                                "torch_dtype",
                                                "transformers_version",
                                                "use_cache",
                                                "vocab_size",
                                                "holmes"};
  return kKeys;
}

/// Keys that may only have the value under which the model is the one that Holmes computes.
const json& keys_with_one_value() {
  static const json kKeys = json::object({
      {"activation_function", json::array({"gelu_new", "gelu_pytorch_tanh"})},
      {"layer_norm_epsilon", json::array({1e-5})},
      {"scale_attn_weights", json::array({true})},
      {"scale_attn_by_inverse_layer_idx", json::array({false})},
      {"tie_word_embeddings", json::array({true})},
      {"add_cross_attention", json::array({false})},
      {"is_encoder_decoder", json::array({false})},
  });
  return kKeys;
}

std::uint32_t number(const json& object, const std::string& key) {
  if (!object.contains(key)) throw std::invalid_argument("\"" + key + "\" is missing");
  const auto& value = object.at(key);
  if (!value.is_number_unsigned() || value > std::numeric_limits<std::uint32_t>::max())
    throw std::invalid_argument("\"" + key + "\" is " + value.dump() + ", no whole number");
  return value.get<std::uint32_t>();
}

void check_key(const std::string& key, const json& value, std::uint32_t channels) {
  if (keys_without_effect().contains(key)) return;
  if (key == "n_inner") {
    if (value.is_null() || value == 4 * std::uint64_t{channels}) return;
    throw std::invalid_argument("\"n_inner\" is " + value.dump() +
                                ", only four times n_embd is computed");
  }
  if (!keys_with_one_value().contains(key))
    throw std::invalid_argument("\"" + key + "\" is not known, and might change the model" +
                                "; remove it if it does not");
  const auto& allowed = keys_with_one_value().at(key);
  for (const auto& each : allowed)
    if (each == value) return;
  throw std::invalid_argument("\"" + key + "\" is " + value.dump() + ", only " +
                              allowed.front().dump() + " is computed");
}

GptConfig read(const json& object) {
  if (!object.is_object()) throw std::invalid_argument("no JSON object");
  const auto type = object.value("model_type", json());
  if (type != "gpt2")
    throw std::invalid_argument("\"model_type\" is " + type.dump() +
                                ", only \"gpt2\" can be read so far");
  GptConfig config;
  config.layers = number(object, "n_layer");
  config.heads = number(object, "n_head");
  config.channels = number(object, "n_embd");
  config.sequence = number(object, "n_positions");
  config.vocabulary = number(object, "vocab_size");
  for (const auto& [key, value] : object.items()) check_key(key, value, config.channels);
  // A checkpoint of Holmes counts the padded rows.
  if (object.contains("holmes")) config.vocabulary = number(object.at("holmes"), "vocabulary");
  if (const auto valid = validate(config); !valid)
    throw std::invalid_argument(valid.error().message());
  return config;
}

}  // namespace

Result<GptConfig> parse_gpt2_config(std::string_view text, const std::string& name) {
  const auto object = capture([&] { return json::parse(text); });
  if (!object)
    return Error(ErrorCode::kCorrupt, name + " is not valid JSON: " + object.error().message());
  auto config = capture([&] { return read(*object); });
  if (!config) return Error(ErrorCode::kInvalidArgument, name + ": " + config.error().message());
  return config;
}

}  // namespace holmes::model

#include <stdexcept>

#include "hugging_face/config_reader.hpp"

namespace holmes::model {
namespace {

using nlohmann::json;

const KnownKeys& known_keys() {
  static const KnownKeys kKeys{
      {"_name_or_path",
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
       "n_inner",
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
       "holmes"},
      json::object({
          {"activation_function", json::array({"gelu_new", "gelu_pytorch_tanh"})},
          {"layer_norm_epsilon", json::array({1e-5})},
          {"scale_attn_weights", json::array({true})},
          {"scale_attn_by_inverse_layer_idx", json::array({false})},
          {"tie_word_embeddings", json::array({true})},
          {"add_cross_attention", json::array({false})},
          {"is_encoder_decoder", json::array({false})},
      })};
  return kKeys;
}

}  // namespace

GptConfig read_gpt2_config(const json& object) {
  GptConfig config;
  config.layers = whole_number(object, "n_layer");
  config.heads = whole_number(object, "n_head");
  config.channels = whole_number(object, "n_embd");
  config.sequence = whole_number(object, "n_positions");
  config.vocabulary = whole_number(object, "vocab_size");
  check_keys(object, known_keys());
  const auto inner = object.value("n_inner", json());
  if (!inner.is_null() && inner != 4 * std::uint64_t{config.channels})
    throw std::invalid_argument("\"n_inner\" is " + inner.dump() +
                                ", only four times n_embd is computed");
  return config;
}

}  // namespace holmes::model

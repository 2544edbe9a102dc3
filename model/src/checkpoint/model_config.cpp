// The model as a config.json, with the keys of Hugging Face's transformers.

#include <nlohmann/json.hpp>

#include "checkpoint/manifest.hpp"

namespace holmes::model {
namespace {

using nlohmann::ordered_json;

ordered_json gpt2_config(const GptConfig& model) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", model.padded_vocabulary()},
          {"n_positions", model.sequence},
          {"n_ctx", model.sequence},
          {"n_embd", model.channels},
          {"n_layer", model.layers},
          {"n_head", model.heads},
          {"n_inner", nullptr},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", 1e-5},
          {"initializer_range", 0.02},
          {"resid_pdrop", 0.0},
          {"embd_pdrop", 0.0},
          {"attn_pdrop", 0.0},
          {"tie_word_embeddings", true}};
}

ordered_json rope_scaling(const Rope& rope) {
  if (rope.factor <= 1) return nullptr;
  return {{"rope_type", "llama3"},
          {"factor", rope.factor},
          {"low_freq_factor", rope.low_factor},
          {"high_freq_factor", rope.high_factor},
          {"original_max_position_embeddings", rope.original_sequence}};
}

ordered_json llama_config(const GptConfig& model) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", model.padded_vocabulary()},
          {"max_position_embeddings", model.sequence},
          {"hidden_size", model.channels},
          {"intermediate_size", model.feed_forward_width()},
          {"num_hidden_layers", model.layers},
          {"num_attention_heads", model.heads},
          {"num_key_value_heads", model.kv_head_count()},
          {"head_dim", model.head_width()},
          {"hidden_act", "silu"},
          {"rms_norm_eps", model.norm_epsilon},
          {"rope_theta", model.rope.theta},
          {"rope_scaling", rope_scaling(model.rope)},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"attention_dropout", 0.0},
          {"initializer_range", 0.02},
          {"tie_word_embeddings", model.tied()}};
}

}  // namespace

std::string encode_config(const GptConfig& model) {
  constexpr int kIndent = 1;
  auto object = model.family == Family::kLlama ? llama_config(model) : gpt2_config(model);
  object["bos_token_id"] = nullptr;
  object["eos_token_id"] = nullptr;
  object["torch_dtype"] = "float32";
  object["holmes"] = {{"vocabulary", model.vocabulary},
                      {"vocabulary_padding", model.vocabulary_padding}};
  return object.dump(kIndent) + "\n";
}

}  // namespace holmes::model

#include "hugging_face/config_reader.hpp"

#include <limits>
#include <stdexcept>

#include "holmes/model/hugging_face.hpp"

namespace holmes::model {

using nlohmann::json;

void check_keys(const json& object, const KnownKeys& known, const std::string& where) {
  for (const auto& [key, value] : object.items()) {
    if (known.any_value.contains(key)) continue;
    const std::string name = "\"" + where + key + "\"";
    if (!known.one_value.contains(key))
      throw std::invalid_argument(name +
                                  " is not known, and might change the model; remove it if it "
                                  "does not");
    const auto& allowed = known.one_value.at(key);
    bool is_allowed = false;
    for (const auto& each : allowed) is_allowed = is_allowed || each == value;
    if (!is_allowed)
      throw std::invalid_argument(name + " is " + value.dump() + ", only " +
                                  allowed.front().dump() + " is computed");
  }
}

std::uint32_t whole_number(const json& object, const std::string& key) {
  if (!object.contains(key)) throw std::invalid_argument("\"" + key + "\" is missing");
  const auto& value = object.at(key);
  if (!value.is_number_unsigned() || value > std::numeric_limits<std::uint32_t>::max())
    throw std::invalid_argument("\"" + key + "\" is " + value.dump() + ", no whole number");
  return value.get<std::uint32_t>();
}

double real_number(const json& object, const std::string& key) {
  if (!object.contains(key)) throw std::invalid_argument("\"" + key + "\" is missing");
  const auto& value = object.at(key);
  if (!value.is_number())
    throw std::invalid_argument("\"" + key + "\" is " + value.dump() + ", no number");
  return value.get<double>();
}

namespace {

GptConfig read(const json& object) {
  if (!object.is_object()) throw std::invalid_argument("no JSON object");
  const auto type = object.value("model_type", json());
  if (type != "gpt2" && type != "llama")
    throw std::invalid_argument("\"model_type\" is " + type.dump() +
                                ", only \"gpt2\" and \"llama\" can be read so far");
  auto config = type == "gpt2" ? read_gpt2_config(object) : read_llama_config(object);
  // A checkpoint of Holmes counts the padded rows.
  if (object.contains("holmes"))
    config.vocabulary = whole_number(object.at("holmes"), "vocabulary");
  if (const auto valid = validate(config); !valid)
    throw std::invalid_argument(valid.error().message());
  return config;
}

}  // namespace

Result<GptConfig> parse_model_config(std::string_view text, const std::string& name) {
  const auto object = capture([&] { return json::parse(text); });
  if (!object)
    return Error(ErrorCode::kCorrupt, name + " is not valid JSON: " + object.error().message());
  auto config = capture([&] { return read(*object); });
  if (!config) return Error(ErrorCode::kInvalidArgument, name + ": " + config.error().message());
  return config;
}

}  // namespace holmes::model

// Reads tokenizer.json, and vocab.json with merges.txt. What a file asks for and this program does
// not do is refused by name: other ids than the reference implementation's would be worse.
#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "tokenizer/bpe_tokenizer.hpp"
#include "tokenizer/byte_alphabet.hpp"

namespace holmes::model {
namespace {

using nlohmann::json;

// The readers below throw; the two functions at the end turn that into an error.

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument(what);
}

void require(const Status& status, const std::string& where) {
  if (!status) refuse(where + ": " + status.error().message());
}

/// The member, or null where there is none.
const json& member(const json& object, const char* key) {
  static const json kNull;
  if (!object.is_object())
    refuse("an object is expected where \"" + std::string(key) + "\" is read");
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string text(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_string()) refuse("\"" + std::string(key) + "\" is no text");
  return value.get<std::string>();
}

bool flag(const json& object, const char* key, bool otherwise) {
  const json& value = member(object, key);
  if (value.is_null()) return otherwise;
  if (!value.is_boolean()) refuse("\"" + std::string(key) + "\" is neither true nor false");
  return value.get<bool>();
}

std::uint32_t token_id(const json& value, const std::string& token) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 0x7FFFFFFFU) {
    refuse("the id of \"" + token + "\" is no whole number");
  }
  return value.get<std::uint32_t>();
}

std::string token_bytes(const std::string& token) {
  const auto bytes = from_byte_alphabet(token);
  if (!bytes) refuse("\"" + token + "\" has characters that stand for no byte: not byte-level");
  return *bytes;
}

/// `specials`: tokens of the vocabulary that are special, and need not be spelled in bytes.
void read_vocabulary(const json& vocabulary, const std::set<std::string>& specials,
                     BpeModel& model) {
  if (!vocabulary.is_object()) refuse("the vocabulary is no object of tokens and ids");
  for (const auto& [token, id] : vocabulary.items()) {
    if (specials.contains(token)) continue;
    require(model.add_token(token_bytes(token), token_id(id, token)), "vocabulary");
  }
}

void add_merge(const std::string& left, const std::string& right, std::size_t number,
               BpeModel& model) {
  require(model.add_merge(token_bytes(left), token_bytes(right)),
          "merge " + std::to_string(number));
}

/// "left right".
void add_merge_line(const std::string& line, std::size_t number, BpeModel& model) {
  const auto blank = line.find(' ');
  if (blank == std::string::npos || line.find(' ', blank + 1) != std::string::npos) {
    refuse("merge " + std::to_string(number) + " is not two tokens with a blank between: \"" +
           line.substr(0, 100) + "\"");
  }
  add_merge(line.substr(0, blank), line.substr(blank + 1), number, model);
}

void read_merges(const json& merges, BpeModel& model) {
  if (!merges.is_array()) refuse("\"merges\" is no list");
  std::size_t number = 0;
  for (const auto& item : merges) {
    ++number;
    if (item.is_string()) {
      add_merge_line(item.get<std::string>(), number, model);
    } else if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string()) {
      add_merge(item[0].get<std::string>(), item[1].get<std::string>(), number, model);
    } else {
      refuse("merge " + std::to_string(number) + " is no pair of tokens");
    }
  }
}

void refuse_unless_off(const json& object, const char* key) {
  const json& value = member(object, key);
  const bool off = value.is_null() || value == false || value == 0 || value == 0.0 || value == "";
  if (!off) refuse("model: \"" + std::string(key) + "\" is set, which is not supported");
}

void read_model(const json& model, const std::set<std::string>& specials, BpeParts& parts) {
  const json& type = member(model, "type");
  if (!type.is_null() && type != "BPE") {
    refuse("the model is of type " + type.dump() + "; only \"BPE\" is supported");
  }
  for (const char* key :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}) {
    refuse_unless_off(model, key);
  }
  read_vocabulary(member(model, "vocab"), specials, parts.model);
  read_merges(member(model, "merges"), parts.model);
  if (flag(model, "ignore_merges", false)) parts.model.ignore_merges();
  require(parts.model.finish(), "vocabulary");
}

void add_rule(std::string_view pattern, BpeParts& parts) {
  auto rule = make_regex_rule(pattern);
  if (!rule) refuse("pre_tokenizer: " + rule.error().message());
  parts.rules.push_back(*std::move(rule));
}

std::string escaped(const std::string& plain) {
  std::string pattern;
  for (const char c : plain) {
    const auto byte = static_cast<unsigned char>(c);
    const bool word = byte >= 0x80 || std::isalnum(byte) != 0;
    if (!word) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

void read_split(const json& object, BpeParts& parts) {
  const std::string behavior = text(object, "behavior");
  const bool inverted = flag(object, "invert", false);
  // Whatever a rule would remove lies between matches, and is kept here: text survives.
  if (behavior != "Isolated" && !(behavior == "Removed" && inverted)) {
    refuse("pre_tokenizer: Split with behavior \"" + behavior +
           "\" is not supported; \"Isolated\" is");
  }
  const json& pattern = member(object, "pattern");
  if (!member(pattern, "Regex").is_null()) return add_rule(text(pattern, "Regex"), parts);
  add_rule(escaped(text(pattern, "String")), parts);
}

/// Returns whether it is, or has, a ByteLevel.
bool read_pre_tokenizer(const json& object, BpeParts& parts, bool first) {
  const std::string type = text(object, "type");
  if (type == "Sequence") {
    const json& items = member(object, "pretokenizers");
    if (!items.is_array()) refuse("pre_tokenizer: a Sequence has no list \"pretokenizers\"");
    bool byte_level = false;
    for (const auto& item : items) {
      if (byte_level) refuse("pre_tokenizer: ByteLevel is not the last one");
      if (member(item, "type") == "Sequence") refuse("pre_tokenizer: a Sequence in a Sequence");
      byte_level = read_pre_tokenizer(item, parts, first && &item == &items.front());
    }
    return byte_level;
  }
  if (type == "ByteLevel") {
    parts.prefix_space = flag(object, "add_prefix_space", true);
    if (parts.prefix_space && !first) {
      refuse("pre_tokenizer: add_prefix_space after another rule is not supported");
    }
    if (flag(object, "use_regex", true)) add_rule(kGpt2Pattern, parts);
    return true;
  }
  if (type == "Split") return read_split(object, parts), false;
  if (type == "Digits") {
    add_rule(flag(object, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)", parts);
    return false;
  }
  refuse("pre_tokenizer: \"" + type + "\" is not supported");
}

void read_normalizer(const json& object, BpeParts& parts) {
  if (object.is_null()) return;
  const std::string type = text(object, "type");
  if (type == "Sequence") {
    const json& items = member(object, "normalizers");
    if (!items.is_array()) refuse("normalizer: a Sequence has no list \"normalizers\"");
    for (const auto& item : items) {
      if (member(item, "type") == "Sequence") refuse("normalizer: a Sequence in a Sequence");
      read_normalizer(item, parts);
    }
    return;
  }
  if (type == "NFC") return parts.normalizers.push_back(Normalization::kNfc);
  if (type == "NFD") return parts.normalizers.push_back(Normalization::kNfd);
  if (type == "NFKC") return parts.normalizers.push_back(Normalization::kNfkc);
  if (type == "NFKD") return parts.normalizers.push_back(Normalization::kNfkd);
  refuse("normalizer: \"" + type + "\" is not supported");
}

std::set<std::string> read_added_tokens(const json& tokens, BpeParts& parts) {
  std::set<std::string> names;
  if (tokens.is_null()) return names;
  if (!tokens.is_array()) refuse("\"added_tokens\" is no list");
  for (const auto& token : tokens) {
    const std::string content = text(token, "content");
    const std::string where = "added token \"" + content + "\"";
    if (content.empty()) refuse(where + ": no text");
    for (const char* key : {"lstrip", "rstrip", "single_word"}) {
      if (flag(token, key, false)) refuse(where + ": \"" + key + "\" is not supported");
    }
    if (!names.insert(content).second) refuse(where + ": given twice");
    const auto id = token_id(member(token, "id"), content);
    constexpr std::uint32_t kIdMax = 16'000'000;
    if (id > kIdMax) refuse(where + ": the id " + std::to_string(id) + " is too large");
    parts.specials.push_back({content, id});
  }
  return names;
}

void check_special_ids(const BpeParts& parts) {
  std::set<std::uint32_t> ids;
  for (const auto& special : parts.specials) {
    const bool taken =
        special.id < parts.model.vocabulary() && !parts.model.bytes(special.id).empty();
    if (taken || !ids.insert(special.id).second) {
      refuse("added token \"" + special.content + "\": its id is another token's");
    }
  }
}

BpeParts read_tokenizer(const std::string& content) {
  const json object = json::parse(content);
  BpeParts parts;
  const auto specials = read_added_tokens(member(object, "added_tokens"), parts);
  read_normalizer(member(object, "normalizer"), parts);
  const json& pre_tokenizer = member(object, "pre_tokenizer");
  if (pre_tokenizer.is_null() || !read_pre_tokenizer(pre_tokenizer, parts, true)) {
    refuse("pre_tokenizer: no ByteLevel; only byte-level BPE is supported");
  }
  const json& model = member(object, "model");
  if (!model.is_object()) refuse("\"model\" is missing");
  read_model(model, specials, parts);
  check_special_ids(parts);
  return parts;
}

void read_merge_lines(const std::string& merges, BpeModel& model) {
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < merges.size();) {
    const auto end = std::min(merges.find('\n', begin), merges.size());
    std::string line = merges.substr(begin, end - begin);
    if (line.ends_with('\r')) line.pop_back();
    const bool version = begin == 0 && line.starts_with("#version");
    begin = end + 1;
    if (line.empty() || version) continue;
    add_merge_line(line, ++number, model);
  }
}

BpeParts read_vocab_and_merges(const std::string& vocab, const std::string& merges) {
  const std::string special = "<|endoftext|>";
  const json vocabulary = json::parse(vocab);
  BpeParts parts;
  const json& id = member(vocabulary, special.c_str());
  if (!id.is_null()) parts.specials.push_back({special, token_id(id, special)});
  read_vocabulary(vocabulary, {special}, parts.model);
  read_merge_lines(merges, parts.model);
  require(parts.model.finish(), "vocabulary");
  check_special_ids(parts);
  parts.rules.push_back(make_gpt2_rule());
  return parts;
}

Result<std::unique_ptr<Tokenizer>> made(Result<BpeParts> parts, const std::string& name,
                                        std::vector<TokenizerFile> files) {
  if (!parts) return Error(ErrorCode::kCorrupt, name + ": " + parts.error().message());
  parts->files = std::move(files);
  return make_bpe_tokenizer(*std::move(parts));
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> parse_tokenizer_json(std::string content,
                                                        const std::string& name) {
  auto parts = capture([&] { return read_tokenizer(content); });
  return made(std::move(parts), name, {{"tokenizer.json", std::move(content)}});
}

Result<std::unique_ptr<Tokenizer>> parse_vocab_and_merges(std::string vocab, std::string merges,
                                                          const std::string& name) {
  auto parts = capture([&] { return read_vocab_and_merges(vocab, merges); });
  return made(std::move(parts), name,
              {{"vocab.json", std::move(vocab)}, {"merges.txt", std::move(merges)}});
}

}  // namespace holmes::model

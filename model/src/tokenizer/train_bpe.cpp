// Training of a byte-level BPE. Pairs are counted once over the different words, then kept up to
// date: each merge touches only the words that have its pair.
#include <algorithm>
#include <array>
#include <queue>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "holmes/base/assert.hpp"
#include "holmes/base/random.hpp"
#include "holmes/model/tokenizer.hpp"
#include "tokenizer/byte_alphabet.hpp"
#include "tokenizer/splitter.hpp"
#include "tokenizer/utf8.hpp"

namespace holmes::model {
namespace {

constexpr std::uint32_t kBytes = 256;
constexpr const char* kEndOfText = "<|endoftext|>";

struct Word {
  std::vector<std::uint32_t> parts;
  std::uint64_t count = 0;
};

using Pair = std::pair<std::uint32_t, std::uint32_t>;

struct PairHash {
  std::size_t operator()(const Pair& pair) const {
    return mix64(std::uint64_t{pair.first} << 32 | pair.second);
  }
};

struct Occurrences {
  std::uint64_t count = 0;
  std::vector<std::uint32_t> words;  ///< With the pair, now or before; some several times.
};

class Merger {
 public:
  explicit Merger(std::vector<Word> words) : words_(std::move(words)) {
    for (std::uint32_t i = 0; i < words_.size(); ++i) count_pairs(i);
    for (const auto& [pair, found] : pairs_) queue_.push({found.count, pair});
  }

  /// The most frequent pair, of equally frequent ones the first by ids; merged into the token
  /// that `id_of` gives. Nothing when no pair occurs twice.
  template <class IdOf>
  bool merge_next(const IdOf& id_of) {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(best.pair);
      if (found == pairs_.end() || found->second.count == 0) continue;
      if (found->second.count != best.count) {  // an old count: once more with the new one
        queue_.push({found->second.count, best.pair});
        continue;
      }
      if (best.count < 2) return false;
      const Pair merged = best.pair;
      const std::uint32_t id = id_of(merged);
      const auto words = std::move(found->second.words);
      pairs_.erase(found);
      grown_.clear();
      for (const std::uint32_t word : words) apply(word, merged, id);
      std::sort(grown_.begin(), grown_.end());
      grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
      for (const Pair& pair : grown_) {
        if (const auto grown = pairs_.find(pair); grown != pairs_.end()) {
          queue_.push({grown->second.count, pair});
        }
      }
      return true;
    }
    return false;
  }

 private:
  struct Candidate {
    std::uint64_t count = 0;
    Pair pair;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  void count_pairs(std::uint32_t index) {
    const Word& word = words_[index];
    for (std::size_t i = 0; i + 1 < word.parts.size(); ++i) {
      grow({word.parts[i], word.parts[i + 1]}, index);
    }
  }

  void grow(const Pair& pair, std::uint32_t word) {
    auto& found = pairs_[pair];
    found.count += words_[word].count;
    if (found.words.empty() || found.words.back() != word) found.words.push_back(word);
  }

  void shrink(const Pair& pair, std::uint64_t count) {
    const auto found = pairs_.find(pair);
    if (found == pairs_.end()) return;  // the pair that is being merged
    HOLMES_ASSERT(found->second.count >= count, "a pair is counted less often than it occurs");
    found->second.count -= count;
  }

  void apply(std::uint32_t index, const Pair& pair, std::uint32_t id) {
    Word& word = words_[index];
    auto& parts = word.parts;
    bool has = false;
    for (std::size_t i = 0; i + 1 < parts.size() && !has; ++i) {
      has = Pair(parts[i], parts[i + 1]) == pair;
    }
    if (!has) return;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) shrink({parts[i], parts[i + 1]}, word.count);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < parts.size(); ++kept) {
      const bool match = i + 1 < parts.size() && Pair(parts[i], parts[i + 1]) == pair;
      parts[kept] = match ? id : parts[i];
      i += match ? 2 : 1;
    }
    parts.resize(kept);
    count_pairs(index);
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      if (parts[i] == id || parts[i + 1] == id) grown_.emplace_back(parts[i], parts[i + 1]);
    }
  }

  std::vector<Word> words_;
  std::unordered_map<Pair, Occurrences, PairHash> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<Pair> grown_;
};

std::string write_tokenizer(const std::vector<std::string>& tokens,
                            const std::vector<Pair>& merges) {
  using nlohmann::ordered_json;
  ordered_json vocabulary = ordered_json::object();
  std::vector<std::string> names;
  for (const auto& token : tokens) names.push_back(to_byte_alphabet(token));
  // nlohmann's ordered object looks keys up one by one: built by hand it stays linear.
  auto& entries = vocabulary.get_ref<ordered_json::object_t&>();
  for (std::size_t id = 0; id < names.size(); ++id) entries.push_back({names[id], id});
  entries.push_back({kEndOfText, names.size()});
  ordered_json list = ordered_json::array();
  for (const auto& [left, right] : merges) list.push_back(names[left] + " " + names[right]);
  const ordered_json byte_level = {{"type", "ByteLevel"},
                                   {"add_prefix_space", false},
                                   {"trim_offsets", true},
                                   {"use_regex", true}};
  const ordered_json end = {{"id", names.size()}, {"content", kEndOfText}, {"single_word", false},
                            {"lstrip", false},    {"rstrip", false},       {"normalized", false},
                            {"special", true}};
  const ordered_json object = {{"version", "1.0"},
                               {"truncation", nullptr},
                               {"padding", nullptr},
                               {"added_tokens", ordered_json::array({end})},
                               {"normalizer", nullptr},
                               {"pre_tokenizer", byte_level},
                               {"post_processor", nullptr},
                               {"decoder", byte_level},
                               {"model",
                                {{"type", "BPE"},
                                 {"dropout", nullptr},
                                 {"unk_token", nullptr},
                                 {"continuing_subword_prefix", nullptr},
                                 {"end_of_word_suffix", nullptr},
                                 {"fuse_unk", false},
                                 {"byte_fallback", false},
                                 {"ignore_merges", false},
                                 {"vocab", std::move(vocabulary)},
                                 {"merges", std::move(list)}}}};
  return object.dump(1) + "\n";
}

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

}  // namespace

struct BpeTrainer::State {
  /// About a gigabyte of words.
  static constexpr std::size_t kWordsMax = 8'000'000;
  /// Longer pieces (of blanks, of lines drawn with dashes) teach nothing and cost most.
  static constexpr std::size_t kWordBytesMax = 128;
  std::unordered_map<std::string, std::uint64_t, TextHash, std::equal_to<>> words;

  void add(std::string_view word) {
    if (word.size() > kWordBytesMax) return;
    if (const auto found = words.find(word); found != words.end()) {
      ++found->second;
      return;
    }
    for (std::uint64_t rare = 1; words.size() >= kWordsMax; ++rare) {
      std::erase_if(words, [rare](const auto& entry) { return entry.second <= rare; });
    }
    words.emplace(word, 1);
  }
};

BpeTrainer::BpeTrainer() : state_(std::make_unique<State>()) {}
BpeTrainer::~BpeTrainer() = default;

void BpeTrainer::add(std::string_view text) {
  while (!text.empty()) {
    auto good = text.substr(0, valid_prefix(text));
    text.remove_prefix(good.size());
    while (!good.empty()) {
      const auto length = gpt2_piece(good);
      state_->add(good.substr(0, length));
      good.remove_prefix(length);
    }
    if (!text.empty()) text.remove_prefix(broken_prefix(text));
  }
}

Result<std::string> BpeTrainer::train(std::uint32_t vocabulary) const {
  if (vocabulary <= kBytes) {
    return Error(ErrorCode::kInvalidArgument,
                 "a vocabulary of " + std::to_string(vocabulary) +
                     " is too small; 256 bytes and the end of a text need 257");
  }
  std::vector<std::string> tokens;
  std::array<std::uint32_t, kBytes> id_of_byte{};
  for (std::uint32_t rank = 0; rank < kBytes; ++rank) {
    tokens.emplace_back(1, static_cast<char>(byte_of_rank(rank)));
    id_of_byte[byte_of_rank(rank)] = rank;
  }
  // In the order of their text, so that the result does not hang on the hash.
  std::vector<std::pair<std::string_view, std::uint64_t>> sorted(state_->words.begin(),
                                                                 state_->words.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<Word> words;
  for (const auto& [text, count] : sorted) {
    Word word{{}, count};
    for (const char c : text) word.parts.push_back(id_of_byte[static_cast<unsigned char>(c)]);
    words.push_back(std::move(word));
  }
  Merger merger(std::move(words));
  std::unordered_map<std::string, std::uint32_t> ids;
  std::vector<Pair> merges;
  // Two pairs can spell the same token, which is then one.
  const auto id_of = [&](const Pair& pair) {
    merges.push_back(pair);
    std::string text = tokens[pair.first] + tokens[pair.second];
    const auto [entry, is_new] = ids.emplace(text, static_cast<std::uint32_t>(tokens.size()));
    if (is_new) tokens.push_back(std::move(text));
    return entry->second;
  };
  while (tokens.size() + 1 < vocabulary && merger.merge_next(id_of)) {
  }
  return write_tokenizer(tokens, merges);
}

}  // namespace holmes::model

// Rules given as regular expressions, by PCRE2. The expressions are written for engines in which
// \s is Unicode's White_Space; PCRE2's differs in a character, so that \s is spelled out.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "holmes/base/assert.hpp"
#include "tokenizer/splitter.hpp"

namespace holmes::model {
namespace {

constexpr std::string_view kWhiteSpace = R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a})"
                                         R"(\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

/// The same expression with \s and, outside of brackets, \S spelled out.
std::string spelled_out(std::string_view pattern) {
  std::string result;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      const std::string spaces(kWhiteSpace);
      if (next == 's') {
        result += in_class ? spaces : "[" + spaces + "]";
      } else if (next == 'S' && !in_class) {
        result += "[^" + spaces + "]";
      } else {
        result += c;
        result += next;
      }
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    result += c;
  }
  return result;
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

class RegexRule final : public SplitRule {
 public:
  explicit RegexRule(pcre2_code* code)
      : code_(code), context_(pcre2_match_context_create(nullptr)) {
    HOLMES_ASSERT(context_ != nullptr, "no memory for a regular expression");
    // A bound on what a hostile expression can cost; ordinary ones are far below it.
    constexpr std::uint32_t kMatchLimit = 10'000'000;
    pcre2_set_match_limit(context_.get(), kMatchLimit);
  }

  void split(std::string_view text, std::vector<std::size_t>& ends) const override {
    const std::unique_ptr<pcre2_match_data, FreeMatch> match(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    HOLMES_ASSERT(match != nullptr, "no memory for a match");
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    std::size_t done = 0;
    // An empty match cuts nothing; the search goes on for one that is not empty.
    const std::uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    while (done < text.size()) {
      const int found = pcre2_match(code_.get(), subject, text.size(), done, options, match.get(),
                                    context_.get());
      if (found < 0) break;  // no match any more, or the limit: the rest is one piece
      const auto* where = pcre2_get_ovector_pointer(match.get());
      if (where[0] > done) ends.push_back(where[0]);
      ends.push_back(where[1]);
      done = where[1];
    }
    if (done < text.size()) ends.push_back(text.size());
  }

 private:
  std::unique_ptr<pcre2_code, FreeCode> code_;
  std::unique_ptr<pcre2_match_context, FreeContext> context_;
};

}  // namespace

Result<std::unique_ptr<SplitRule>> make_regex_rule(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return make_gpt2_rule();
  const std::string text = spelled_out(pattern);
  int problem = 0;
  PCRE2_SIZE at = 0;
  auto* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &problem, &at, nullptr);
  if (code == nullptr) {
    std::array<PCRE2_UCHAR, 200> why{};
    pcre2_get_error_message(problem, why.data(), why.size());
    return Error(ErrorCode::kInvalidArgument,
                 "the regular expression \"" + std::string(pattern.substr(0, 200)) +
                     "\" is not understood: " + reinterpret_cast<const char*>(why.data()));
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is no JIT it is interpreted
  return std::unique_ptr<SplitRule>(std::make_unique<RegexRule>(code));
}

}  // namespace holmes::model

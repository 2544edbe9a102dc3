// Reads changes as people write them.

#include <charconv>
#include <optional>

#include "holmes/base/suggest.hpp"
#include "holmes/partition/timeline.hpp"

namespace holmes::partition {
namespace {

constexpr std::string_view kForms =
    "; write 'fabric NAME at 40 s to 0.3', 'link FROM TO at 40 s to 0.3', 'host NAME at 40 s to "
    "0.3' or 'host NAME at 40 s dies'";

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::optional<double> number_of(std::string_view word) {
  double value = 0;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || stop != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<double> unit_of(std::string_view word) {
  if (word == "s") return 1;
  if (word == "ms") return 1e-3;
  if (word == "min") return 60;
  if (word == "h") return 3600;
  return std::nullopt;
}

/// The words of one change, taken from the front.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), words_(words_of(text)) {}

  std::string_view next() { return at_ < words_.size() ? words_[at_++] : std::string_view{}; }
  bool done() const { return at_ == words_.size(); }
  bool eat(std::string_view word) { return next() == word; }

  /// "40 s", "40s".
  std::optional<double> time_s() {
    const std::string_view word = next();
    const std::size_t digits = std::min(word.find_first_not_of("0123456789.eE+-"), word.size());
    const auto value = number_of(word.substr(0, digits));
    const auto unit = unit_of(digits < word.size() ? word.substr(digits) : next());
    if (!value || !unit) return std::nullopt;
    return *value * *unit;
  }

  Error wrong(const std::string& what) const {
    return Error(ErrorCode::kInvalidArgument,
                 "change '" + std::string(text_.substr(0, 100)) + "': " + what);
  }

 private:
  std::string_view text_;
  std::vector<std::string_view> words_;
  std::size_t at_ = 0;
};

template <class T>
Result<std::size_t> find_named(const Reader& reader, const std::vector<T>& all,
                               std::string_view kind, std::string_view name) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) return i;
    names.push_back(all[i].name);
  }
  return reader.wrong("the cluster has no " + std::string(kind) + " '" + std::string(name) + "'" +
                      did_you_mean(name, names));
}

Result<std::size_t> find_link(const Reader& reader, const Cluster& cluster, std::string_view from,
                              std::string_view to) {
  for (std::size_t i = 0; i < cluster.links.size(); ++i) {
    const Link& link = cluster.links[i];
    if ((link.from == from && link.to == to) || (link.from == to && link.to == from)) return i;
  }
  return reader.wrong("the cluster file has no [[link]] between '" + std::string(from) + "' and '" +
                      std::string(to) + "'");
}

/// What it is about.
Status read_subject(Reader& reader, const Cluster& cluster, SpeedChange& change) {
  const std::string_view kind = reader.next();
  const std::string_view name = reader.next();
  if (kind == "fabric") {
    change.what = SpeedChange::What::kFabric;
    HOLMES_TRY_ASSIGN(change.index, find_named(reader, cluster.fabrics, kind, name));
  } else if (kind == "host") {
    change.what = SpeedChange::What::kHost;
    HOLMES_TRY_ASSIGN(change.index, find_named(reader, cluster.hosts, kind, name));
  } else if (kind == "link") {
    change.what = SpeedChange::What::kLink;
    HOLMES_TRY_ASSIGN(change.index, find_link(reader, cluster, name, reader.next()));
  } else {
    return reader.wrong("it begins with none of fabric, link, host" + std::string(kForms));
  }
  return {};
}

}  // namespace

Result<Change> parse_change(std::string_view text, const Cluster& cluster) {
  Reader reader(text);
  Change change;
  HOLMES_TRY(read_subject(reader, cluster, change.speed));
  if (!reader.eat("at")) return reader.wrong("'at' and a time are missing" + std::string(kForms));
  const auto at_s = reader.time_s();
  if (!at_s || !(*at_s >= 0 && *at_s < 1e9))
    return reader.wrong("a time is a number and s, ms, min or h, for example 40 s");
  change.speed.at_s = *at_s;
  const std::string_view verb = reader.next();
  if (verb == "dies") {
    if (change.speed.what != SpeedChange::What::kHost) return reader.wrong("only hosts die");
    change.dies = true;
  } else if (verb == "to") {
    const auto factor = number_of(reader.next());
    if (!factor || !(*factor > 1e-6 && *factor < 1e6))
      return reader.wrong("the speed after 'to' is a factor above 0, for example 0.3");
    change.speed.factor = *factor;
  } else {
    return reader.wrong("after the time comes 'to' or 'dies'" + std::string(kForms));
  }
  if (!reader.done()) return reader.wrong("words are left over" + std::string(kForms));
  return change;
}

}  // namespace holmes::partition

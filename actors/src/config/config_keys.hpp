#pragma once

// The one list of a job file's keys: type, default, range and help. The parser, --set, the
// suggestions for misspelt names, `holmes train --keys` and the documentation all come from it.

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "config/assign.hpp"
#include "holmes/actors/job_config.hpp"

namespace holmes::actors {

/// A job while it is read: with what is not part of the result, and where each value came from.
struct Draft {
  JobConfig job;
  std::filesystem::path cluster_file;
  std::string file;                           ///< Name of the job file, for messages.
  std::map<std::string, std::string> places;  ///< "train.batch" -> "job.toml:12" or "--set ...".

  bool is_set(const std::string& key) const { return places.contains(key); }
};

struct Section {
  std::string_view name;
  std::string_view help;
};

struct Key {
  std::string_view section;
  std::string_view name;
  Target (*target)(Draft&);
  Rule rule;
  std::string_view default_text;  ///< Where the default is no constant.
  std::string_view help;
};

std::span<const Section> config_sections();
std::span<const Key> config_keys();

/// nullptr when there is none.
const Section* find_section(std::string_view name);
const Key* find_key(std::string_view section, std::string_view name);

/// "unknown section [trian]; did you mean 'train'?"
std::string unknown_section(std::string_view name);
/// "unknown key 'micro_bach' in [train]; did you mean 'micro_batch'?", or where the key belongs.
std::string unknown_key(std::string_view section, std::string_view name);

}  // namespace holmes::actors

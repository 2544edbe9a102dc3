// Reads a job file: sections and keys from the table, then --set, then the checks between keys.

#include <algorithm>
#include <string>

#include "config/choose_hosts.hpp"
#include "config/cluster_keys.hpp"
#include "config/config_keys.hpp"
#include "config/document.hpp"
#include "config/job_checks.hpp"
#include "config/local_hosts.hpp"
#include "config/text_file.hpp"

namespace holmes::actors {
namespace {

Error invalid(const std::string& where, const std::string& what) {
  return Error(ErrorCode::kInvalidArgument, where + ": " + what);
}

std::string full_name(const Key& key) {
  return std::string(key.section) + "." + std::string(key.name);
}

/// Inputs named in a file are relative to that file's folder.
void resolve(const Key& key, const std::filesystem::path& folder, Draft& draft) {
  if (key.section != "data" && key.section != "cluster") return;
  const Target target = key.target(draft);
  if (const auto* path = std::get_if<std::filesystem::path*>(&target)) {
    **path = (folder / **path).lexically_normal();
  }
  if (key.name == "tokenizer" && names_tokenizer_file(draft.job)) {
    draft.job.data.tokenizer = (folder / draft.job.data.tokenizer).lexically_normal().string();
  }
}

Status read_section(const Section& section, const Table& table, const std::filesystem::path& folder,
                    Draft& draft) {
  for (const Member& member : table) {
    const std::string at = place(draft.file, member.line);
    const Key* key = find_key(section.name, member.key);
    if (key == nullptr) return invalid(at, unknown_key(section.name, member.key));
    if (const Status status = assign(key->target(draft), key->rule, member.node); !status) {
      return invalid(at, "[" + std::string(section.name) + "] " + member.key + ": " +
                             status.error().message());
    }
    draft.places[full_name(*key)] = at;
    resolve(*key, folder, draft);
  }
  return {};
}

/// [[fabric]], [[host]] and so on.
bool is_cluster_entry(const Member& member) {
  const auto entries = cluster_entries();
  return std::holds_alternative<Array>(member.node.value) &&
         std::any_of(entries.begin(), entries.end(),
                     [&](const ClusterEntry& entry) { return entry.name == member.key; });
}

Status read_file(const Table& root, const std::filesystem::path& folder, Draft& draft) {
  for (const Member& member : root) {
    const std::string at = place(draft.file, member.line);
    const auto* table = std::get_if<Table>(&member.node.value);
    const Section* section = find_section(member.key);
    if (is_cluster_entry(member)) {
      return invalid(at, "[[" + member.key +
                             "]] belongs to a cluster file, but a job file was expected; a job "
                             "names its cluster file: [cluster] file = \"...\", or --set "
                             "cluster.file=...");
    }
    if (section == nullptr) {
      for (const Key& key : config_keys()) {
        if (table == nullptr && key.name == member.key) {
          return invalid(at, "key '" + member.key + "' stands outside its section; put it below [" +
                                 std::string(key.section) + "]");
        }
      }
      return invalid(at, unknown_section(member.key));
    }
    if (table == nullptr) {
      return invalid(
          at, "'" + member.key + "' is a section: write [" + member.key + "] and its keys below");
    }
    HOLMES_TRY(read_section(*section, *table, folder, draft));
  }
  return {};
}

Status apply_override(const std::string& text, Draft& draft) {
  const std::size_t equals = text.find('=');
  const std::size_t dot = std::min(text.find('.'), equals);
  if (equals == std::string::npos || dot == equals) {
    return invalid("--set " + text.substr(0, 100), "write --set section.key=value");
  }
  const std::string section = text.substr(0, dot);
  const std::string name = text.substr(dot + 1, equals - dot - 1);
  const std::string at = "--set " + text.substr(0, equals).substr(0, 100);
  if (find_section(section) == nullptr) return invalid(at, unknown_section(section));
  const Key* key = find_key(section, name);
  if (key == nullptr) return invalid(at, unknown_key(section, name));
  const Status status =
      assign_text(key->target(draft), key->rule, std::string_view(text).substr(equals + 1));
  if (!status) return invalid(at, status.error().message());
  draft.places[full_name(*key)] = at;
  return {};
}

/// What only training asks for.
Status check_trainable(const Draft& draft) {
  HOLMES_TRY(check_text(draft));
  const bool emulated = draft.job.transport.nics == NicSource::kLoopback;
  if (!emulated || draft.cluster_file.empty()) return {};
  return check_hosts_are_local(draft.cluster_file);
}

partition::Cluster one_host() {
  partition::Cluster cluster;
  cluster.hosts.push_back({"localhost", "", "", {partition::Device{}}, {}});
  return cluster;
}

Status read_cluster(Draft& draft) {
  if (draft.cluster_file.empty()) {
    draft.job.cluster = one_host();
    return {};
  }
  auto cluster = load_cluster(draft.cluster_file);
  if (!cluster) {
    // The cluster file's own errors name its lines; a file that is not there was named here.
    std::error_code ignored;
    if (std::filesystem::is_regular_file(draft.cluster_file, ignored)) return cluster.error();
    return cluster.error().in(draft.places.at("cluster.file") + ": [cluster] file");
  }
  draft.job.cluster = std::move(*cluster);
  return {};
}

/// `source` without its file: that is `text`, called `name`.
Result<Draft> read_job(std::string_view text, const std::string& name,
                       const std::filesystem::path& folder, const ConfigSource& source) {
  Draft draft;
  draft.file = name;
  HOLMES_TRY_ASSIGN(const Table root, parse_document(text, name));
  HOLMES_TRY(read_file(root, folder, draft));
  for (const std::string& override_text : source.overrides) {
    HOLMES_TRY(apply_override(override_text, draft));
  }
  HOLMES_TRY(read_cluster(draft));
  HOLMES_TRY(partition::apply(source.nccl, draft.job.cluster));
  if (!source.hosts.empty()) HOLMES_TRY(choose_hosts(source.hosts, draft.job.cluster));
  HOLMES_TRY(check_job(draft));
  return draft;
}

/// Agents are told absolute paths: the folder we work in may have a name that no file may hold.
Status check_readable_by_agents(const JobConfig& job) {
  const auto again = parse_resolved_job(to_toml(job), to_toml(job.cluster));
  if (again) return {};
  return again.error().in("the job cannot be told to its hosts, with the paths " +
                          std::filesystem::absolute(job.run.folder).string() + " and " +
                          std::filesystem::absolute(job.data.text).string());
}

}  // namespace

Result<JobConfig> parse_job(std::string_view text, const std::string& name,
                            const std::vector<std::string>& overrides,
                            const std::filesystem::path& folder) {
  HOLMES_TRY_ASSIGN(Draft draft, read_job(text, name, folder, {{}, overrides}));
  return std::move(draft.job);
}

Result<JobConfig> parse_resolved_job(std::string_view job, std::string_view cluster) {
  Draft draft;
  draft.file = "job";
  HOLMES_TRY_ASSIGN(const Table root, parse_document(job, draft.file));
  HOLMES_TRY(read_file(root, {}, draft));
  HOLMES_TRY_ASSIGN(draft.job.cluster, parse_cluster(cluster, "cluster"));
  HOLMES_TRY(check_job(draft));
  return std::move(draft.job);
}

Result<JobConfig> load_job(const ConfigSource& source) {
  HOLMES_TRY_ASSIGN(const std::string text, read_text_file(source.file));
  HOLMES_TRY_ASSIGN(Draft draft,
                    read_job(text, source.file.string(), source.file.parent_path(), source));
  if (source.needs_text) {
    HOLMES_TRY(check_trainable(draft));
    HOLMES_TRY(check_readable_by_agents(draft.job));
  }
  return std::move(draft.job);
}

}  // namespace holmes::actors

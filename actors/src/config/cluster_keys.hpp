#pragma once

// The one list of a cluster file's entries and keys, for `holmes train --keys` and the
// documentation. read_fields() asserts that the reader knows these keys and no others.

#include <span>
#include <string>
#include <string_view>

namespace holmes::actors {

struct ClusterEntry {
  std::string_view name;  ///< "host.nic", written [[host.nic]]
  std::string_view help;
};

struct ClusterKey {
  std::string_view entry;
  std::string_view name;
  std::string_view type;
  std::string_view default_text;  ///< "": it must be given.
  std::string_view help;
};

std::span<const ClusterEntry> cluster_entries();
std::span<const ClusterKey> cluster_keys();

/// All of them, in the form of describe_keys().
std::string describe_cluster_keys();

}  // namespace holmes::actors

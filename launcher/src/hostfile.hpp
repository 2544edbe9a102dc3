#pragma once

// Lists of hosts as people have them already: the hostfiles of Open MPI and DeepSpeed, lists on the
// command line, and what is left out of them. Text in, values out.

#include <string>
#include <string_view>
#include <vector>

#include "holmes/actors/job_config.hpp"

namespace holmes::launcher {

/// A line for each host: "NAME", "NAME slots=N" (max_slots is read over) or "NAME:N"; what follows
/// a '#' is not read. `name` stands for the file in errors.
Result<std::vector<actors::HostChoice>> parse_hostfile(std::string_view text,
                                                       const std::string& name);

/// "a0,a1:4,b0": names, each with an optional number of slots.
Result<std::vector<actors::HostChoice>> parse_host_list(std::string_view text);

/// What --hosts means: a file where there is one of that name, else a list.
Result<std::vector<actors::HostChoice>> read_hosts(const std::string& file_or_list);

/// Those of `all` that `include` names (empty: all) and `exclude` does not; both are lists of
/// names. kInvalidArgument: a name that is not in `all`, or nobody is left.
Result<std::vector<actors::HostChoice>> select_hosts(std::vector<actors::HostChoice> all,
                                                     const std::string& include,
                                                     const std::string& exclude);

}  // namespace holmes::launcher

#pragma once

// Agents on other hosts by the user's own ssh: what is run there, and who is at the other end. The
// user's ssh configuration decides about users, keys, ports and aliases.
//
// Threads: plain functions, on the caller's thread; reach() may block for seconds.

#include <string>
#include <vector>

#include "holmes/actors/session.hpp"
#include "log_sink.hpp"
#include "spawn.hpp"

namespace holmes::launcher {

/// How agents are started on other hosts.
struct SshOptions {
  std::string command = "ssh";                ///< For a shell: may have options, "ssh -p 2222".
  std::string executable;                     ///< Path of holmes there.
  std::vector<std::string> environment = {};  ///< "NAME=VALUE", for the agents.
};

/// From argv[0] on, for /bin/sh: runs `words` as the agent of `target`. Without a target: here.
std::vector<std::string> start_words(const SshOptions& options, const std::string& target,
                                     const std::vector<std::string>& words);

/// Where a host is, seen from here.
struct Reached {
  std::string target;   ///< What ssh is given; empty: it is this machine.
  std::string address;  ///< Its own, as digits.
  std::string own;      ///< This machine's address on the way to it.
};

/// Asks ssh which machine it means by `target` and the system how to get there. kUnavailable: the
/// name cannot be looked up.
Result<Reached> reach(const SshOptions& options, const std::string& target);

}  // namespace holmes::launcher

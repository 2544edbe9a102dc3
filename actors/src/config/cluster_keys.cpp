#include "config/cluster_keys.hpp"

#include <algorithm>

namespace holmes::actors {
namespace {

constexpr std::string_view kName = "a string";
constexpr std::string_view kGbit = "a number, 1e-06 .. 100000";
constexpr std::string_view kLatency = "a number, 0 .. 1e+07";

constexpr ClusterEntry kEntries[] = {
    {"fabric", "NICs that can reach each other at full speed."},
    {"cluster", "Optional: where any is declared, hosts may name no other."},
    {"host", "One process of the job, or several that are alike."},
    {"host.device", "What computes in the host above; at least one."},
    {"host.nic", "A network card of the host above, or several that are alike."},
    {"link", "Joins two fabrics of one kind, or two clusters."},
};

constexpr ClusterKey kKeys[] = {
    {"fabric", "name", kName, "", "What NICs and links call it."},
    {"fabric", "kind", "one of infiniband, roce, ethernet, loopback", "", "What it is."},
    {"fabric", "gbit_s", kGbit, "", "Of one NIC on it: goodput, each way."},
    {"fabric", "latency_us", kLatency, "", "One way."},
    {"fabric", "trunk_gbit_s", kGbit, "none: they share nothing",
     "What all transfers on it between different clusters share, each way."},
    {"fabric", "trusted", "true or false", "false",
     "Plain traffic may run on it: RDMA and NCCL, and TCP where transport.plain_on_trusted is "
     "set."},

    {"cluster", "name", kName, "", "What hosts call it."},

    {"host", "name", kName, "", "With count, the beginning of the names: h0, h1, ..."},
    {"host", "count", "an integer, 1 .. 4096", "one host, named as it is",
     "That many equal hosts."},
    {"host", "cluster", kName, "the fastest fabric", "What it shares with its neighbours."},
    {"host", "address", kName, "its name",
     "What holmes launch gives to ssh. train runs all hosts on this machine: it refuses others."},

    {"host.device", "kind", kName, "\"cpu\"",
     "cpu and cuda can be trained on; so can paced, a CPU whose operators take the time that "
     "tflops gives them, at least. Anything else is a GPU, to plan with."},
    {"host.device", "count", "an integer, 1 .. 65536", "1", "That many equal devices."},
    {"host.device", "threads", "an integer, 1 .. 4096", "1", "Of its computing, for CPUs."},
    {"host.device", "tflops", "a number, 1e-06 .. 1000000", "0.1", "Measured speed."},
    {"host.device", "training_tflops", "a number, 1e-06 .. 1000000", "tflops",
     "Measured speed of training there, network included: the paper's S, by which layers are "
     "split."},
    {"host.device", "memory_gib", "a number, 1e-06 .. 1000000", "4", "What plans may fill."},

    {"host.nic", "name", kName, "", "With count, the beginning of the names: ib0, ib1, ..."},
    {"host.nic", "fabric", kName, "", "What it is on."},
    {"host.nic", "count", "an integer, 1 .. 64", "one NIC, named as it is", "That many rails."},
    {"host.nic", "gbit_s", kGbit, "the fabric's", "Goodput, each way."},
    {"host.nic", "latency_us", kLatency, "the fabric's", "One way."},
    {"host.nic", "address", kName, "that of the interface of its name",
     "In digits: where it listens and dials from when holmes launch trains."},
    {"host.nic", "near", "a list of device numbers", "all",
     "Devices of the host, numbered from 0, that are near it."},
    {"host.nic", "subnet", kName, "unknown", "InfiniBand's prefix, or an IP network."},
    {"host.nic", "gid", "one of unknown, infiniband, roce-v1, roce-v2", "\"unknown\"",
     "How RDMA finds it; the two versions of RoCE do not understand each other."},
    {"host.nic", "mtu_bytes", "an integer, 256 .. 65536", "unknown", "Of this end."},
    {"host.nic", "port", "one of up, down", "\"up\"", "Of this end."},
    {"host.nic", "use", "true or false", "true", "False: it is kept out."},

    {"link", "from", kName, "", "A fabric or a cluster."},
    {"link", "to", kName, "", "Another, of the same sort."},
    {"link", "gbit_s", kGbit, "", "Shared by all that cross it, each way."},
    {"link", "latency_us", kLatency, "", "One way, added to the NICs'."},
};

std::string key_text(const ClusterKey& key) {
  std::string text = "  " + std::string(key.name);
  text.resize(std::max<std::size_t>(text.size() + 2, 24), ' ');
  text += std::string(key.type) + "; ";
  text += key.default_text.empty() ? "must be given" : "default " + std::string(key.default_text);
  return text + "\n      " + std::string(key.help) + "\n";
}

}  // namespace

std::span<const ClusterEntry> cluster_entries() {
  return kEntries;
}

std::span<const ClusterKey> cluster_keys() {
  return kKeys;
}

std::string describe_cluster_keys() {
  std::string text;
  for (const ClusterEntry& entry : kEntries) {
    text += (text.empty() ? "[[" : "\n[[") + std::string(entry.name) + "]]  " +
            std::string(entry.help) + "\n";
    for (const ClusterKey& key : kKeys) {
      if (key.entry == entry.name) text += key_text(key);
    }
  }
  return text;
}

}  // namespace holmes::actors

// Simulated events as Chrome's trace events. Collectives overlap, so that they are asynchronous
// ones.

#include <array>
#include <cstdio>
#include <map>
#include <set>

#include "holmes/partition/reach.hpp"
#include "holmes/partition/trace.hpp"

namespace holmes::partition {
namespace {

constexpr double kMicro = 1e6;  // timestamps are microseconds
constexpr std::uint32_t kNicThread = 10000;

using Kind = SimulatedEvent::Kind;

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {
      "forward",  "backward",       "backward input", "backward weights", "optimizer", "activation",
      "gradient", "reduce-scatter", "all-gather",     "tied embedding",   "vote"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// Of the palette that Chrome's viewer has.
const char* color_of(Kind kind) {
  constexpr const char* kColors[] = {"thread_state_running",
                                     "rail_animation",
                                     "rail_animation",
                                     "good",
                                     "rail_load",
                                     "grey",
                                     "grey",
                                     "thread_state_iowait",
                                     "thread_state_iowait",
                                     "terrible",
                                     "black"};
  return kColors[static_cast<std::size_t>(kind)];
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    if (static_cast<unsigned char>(letter) >= 0x20) result += letter;
  }
  return result + '"';
}

class Writer {
 public:
  explicit Writer(const Timeline& timeline) : timeline_(timeline) {}

  std::string write() {
    for (const Segment& segment : timeline_.segments) write_segment(segment);
    return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + text_ + "\n]}\n";
  }

 private:
  struct Place {
    std::uint32_t process = 0;
    std::uint32_t thread = 0;
  };

  void add(const std::string& event) { text_ += (text_.empty() ? "" : ",\n") + event; }

  std::uint32_t process(const std::string& name) {
    const auto [at, added] = processes_.try_emplace(name, processes_.size() + 1);
    if (added) {
      add("{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": " + std::to_string(at->second) +
          ", \"args\": {\"name\": " + quoted(name) + "}}");
    }
    return at->second;
  }

  void name_thread(const Place& place, const std::string& name) {
    if (!threads_.insert({place.process, place.thread}).second) return;
    const std::string who = ", \"pid\": " + std::to_string(place.process) +
                            ", \"tid\": " + std::to_string(place.thread);
    add("{\"ph\": \"M\", \"name\": \"thread_name\"" + who +
        ", \"args\": {\"name\": " + quoted(name) + "}}");
    add("{\"ph\": \"M\", \"name\": \"thread_sort_index\"" + who +
        ", \"args\": {\"sort_index\": " + std::to_string(place.thread) + "}}");
  }

  void slice(const Place& place, const std::string& name, const char* color, double start_s,
             double end_s, const std::string& arguments) {
    std::array<char, 128> when{};
    std::snprintf(when.data(), when.size(),
                  ", \"pid\": %u, \"tid\": %u, \"ts\": %.3f, \"dur\": %.3f", place.process,
                  place.thread, (offset_s_ + start_s) * kMicro, (end_s - start_s) * kMicro);
    add("{\"ph\": \"X\", \"name\": " + quoted(name) + when.data() + ", \"cname\": \"" + color +
        "\", \"args\": {" + arguments + "}}");
  }

  void flow(char phase, const Place& place, double at_s, std::uint64_t id) {
    std::array<char, 192> text{};
    std::snprintf(text.data(), text.size(),
                  "{\"ph\": \"%c\", \"cat\": \"transfer\", \"name\": \"transfer\", \"id\": %llu, "
                  "\"pid\": %u, \"tid\": %u, \"ts\": %.3f}",
                  phase, static_cast<unsigned long long>(id), place.process, place.thread,
                  (offset_s_ + at_s) * kMicro);
    add(text.data());
  }

  Place device_place(DeviceId device) {
    const HostId host = hosts_[device.index()];
    std::uint32_t first = device.value();
    while (first > 0 && hosts_[first - 1] == host) --first;
    const Place place{process(segment_->cluster.hosts[host.index()].name),
                      device.value() - first + 1};
    name_thread(place, "device " + std::to_string(device.value()));
    return place;
  }

  DeviceId device_of(StageIndex stage, std::uint32_t replica) const {
    return segment_->planned.plan.stages[stage.index()].shares[replica].device;
  }

  void write_segment(const Segment& segment) {
    segment_ = &segment;
    offset_s_ = segment.start_s;
    hosts_ = hosts_by_device(segment.cluster);
    // A host that died does no more than what came before.
    end_s_ = segment.ended_by.empty()
                 ? 1e300
                 : segment.lost_s +
                       (segment.steps == 0 ? 0 : segment.simulated.commits_s[segment.steps - 1]);
    for (const SimulatedEvent& event : segment.simulated.events) write_event(event);
    for (const ChannelEvent& event : segment.simulated.transfers) write_transfer(event);
    if (!segment.ended_by.empty()) {
      std::array<char, 96> when{};
      std::snprintf(when.data(), when.size(), ", \"ts\": %.3f, \"pid\": 1, \"tid\": 1}",
                    (offset_s_ + end_s_) * kMicro);
      add("{\"ph\": \"i\", \"s\": \"g\", \"name\": " + quoted(segment.ended_by) + when.data());
    }
  }

  void write_event(const SimulatedEvent& event) {
    if (event.start_s >= end_s_) return;
    switch (event.kind) {
      case Kind::kActivation:
      case Kind::kGradient:
        return write_flow(event);
      case Kind::kReduceScatter:
      case Kind::kAllGather:
      case Kind::kTied:
      case Kind::kVote:
        return write_exchange(event);
      default:
        break;
    }
    std::string name = name_of(event.kind);
    if (event.kind != Kind::kUpdate) name += " " + std::to_string(event.item);
    const std::string arguments = "\"step\": " + std::to_string(event.step) +
                                  ", \"stage\": " + std::to_string(event.stage.value()) +
                                  ", \"chunk\": " + std::to_string(event.chunk);
    const auto& share = segment_->planned.plan.stages[event.stage.index()].shares[event.replica];
    for (const DeviceId device : share.devices()) {
      slice(device_place(device), name, color_of(event.kind), event.start_s,
            std::min(event.end_s, end_s_), arguments);
    }
  }

  void write_flow(const SimulatedEvent& event) {
    const Plan& plan = segment_->planned.plan;
    const auto stages = static_cast<std::uint32_t>(plan.stages.size());
    const std::uint32_t next = event.kind == Kind::kActivation
                                   ? (event.stage.value() + 1) % stages
                                   : (event.stage.value() + stages - 1) % stages;
    const DeviceId to = plan.owner(StageIndex(next), MicroBatch(event.item));
    // Begins inside the pass that ends at start_s; ends at the first pass from the arrival on.
    constexpr double kInside = 1e-9;
    flow('s', device_place(device_of(event.stage, event.replica)), event.start_s - kInside,
         ++flows_);
    flow('f', device_place(to), event.end_s, flows_);
  }

  void write_exchange(const SimulatedEvent& event) {
    const DeviceId device = device_of(event.stage, 0);
    const Place place = device_place(device);
    const std::string name = "stage " + std::to_string(event.stage.value()) + " " +
                             name_of(event.kind) + " " + std::to_string(event.item);
    ++asyncs_;
    for (const bool begin : {true, false}) {
      std::array<char, 192> text{};
      const double at_s = begin ? event.start_s : std::min(event.end_s, end_s_);
      std::snprintf(text.data(), text.size(),
                    ", \"ph\": \"%c\", \"cat\": \"exchange\", \"id\": %llu, \"pid\": %u, "
                    "\"tid\": %u, \"ts\": %.3f}",
                    begin ? 'b' : 'e', static_cast<unsigned long long>(asyncs_), place.process,
                    place.thread, (offset_s_ + at_s) * kMicro);
      add("{\"name\": " + quoted(name) + text.data());
    }
  }

  void write_transfer(const ChannelEvent& event) {
    if (event.start_s >= end_s_) return;
    const Cluster& cluster = segment_->cluster;
    const ChannelUse& use = event.channel;
    Place place;
    std::string name;
    if (use.kind == ChannelUse::Kind::kLink) {
      const Link& link = cluster.links[use.link];
      place = {process("links and trunks"),
               static_cast<std::uint32_t>(use.link) * 2 + (use.forth ? 1 : 2)};
      name = "link " + (use.forth ? link.from + " > " + link.to : link.to + " > " + link.from);
    } else if (use.kind == ChannelUse::Kind::kTrunk) {
      place = {process("links and trunks"),
               kNicThread + use.fabric.value() * 2 + (use.forth ? 0 : 1)};
      name = "trunk " + cluster.fabrics[use.fabric.index()].name + (use.forth ? " >" : " <");
    } else {
      const bool send = use.kind == ChannelUse::Kind::kSend;
      place = {process(cluster.hosts[use.host.index()].name),
               kNicThread + use.fabric.value() * 2 + (send ? 0 : 1)};
      name = cluster.fabrics[use.fabric.index()].name + (send ? " out" : " in");
    }
    name_thread(place, name);
    std::array<char, 64> bytes{};
    std::snprintf(bytes.data(), bytes.size(), "\"bytes\": %.0f", use.bytes);
    slice(place, "transfer", "grey", event.start_s, std::min(event.end_s, end_s_), bytes.data());
  }

  const Timeline& timeline_;
  const Segment* segment_ = nullptr;
  double offset_s_ = 0;
  double end_s_ = 0;
  std::vector<HostId> hosts_;
  std::map<std::string, std::uint32_t> processes_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> threads_;
  std::uint64_t flows_ = 0;
  std::uint64_t asyncs_ = 0;
  std::string text_;
};

}  // namespace

std::string to_chrome_trace(const Timeline& timeline) {
  return Writer(timeline).write();
}

}  // namespace holmes::partition

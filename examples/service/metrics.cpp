#include "metrics.hpp"

#include <sstream>

namespace service {
namespace {

using namespace holmes;

class Text {
 public:
  Text() { out_.precision(17); }
  void family(const char* name, const char* type, const char* help) {
    out_ << "# HELP " << name << " " << help << "\n# TYPE " << name << " " << type << "\n";
  }
  template <class T>
  void sample(const std::string& name, T value) {
    out_ << name << " " << value << "\n";
  }
  template <class T>
  void single(const char* name, const char* type, const char* help, T value) {
    family(name, type, help);
    sample(name, value);
  }
  std::string str() const { return out_.str(); }

 private:
  std::ostringstream out_;
};

}  // namespace

void Metrics::note(const actors::Event& event) {
  const std::lock_guard lock(mutex_);
  if (const auto* step = std::get_if<actors::StepFinished>(&event)) on(*step);
  if (std::holds_alternative<actors::CheckpointSaved>(event)) ++checkpoints_;
  if (std::holds_alternative<actors::Incident>(event)) ++incidents_;
}

void Metrics::on(const actors::StepFinished& step) {
  ++steps_;
  tokens_ += step.tokens;
  step_seconds_ += seconds(step.duration);
  for (const auto& traffic : step.traffic)
    traffic_[{cluster_.hosts.at(traffic.host.index()).name, traffic.nic}] = traffic;
}

std::string Metrics::text(const actors::Health& health) const {
  const std::lock_guard lock(mutex_);
  Text text;
  text.single("holmes_steps_total", "counter", "Steps committed by this process.", steps_);
  text.single("holmes_tokens_total", "counter", "Tokens of these steps.", tokens_);
  text.family("holmes_step_duration_seconds", "summary", "Time from one step to the next.");
  text.sample("holmes_step_duration_seconds_sum", step_seconds_);
  text.sample("holmes_step_duration_seconds_count", steps_);
  text.single("holmes_checkpoints_total", "counter", "Checkpoints saved.", checkpoints_);
  text.single("holmes_incidents_total", "counter", "Incidents of the job.", incidents_);
  text.single("holmes_steps_done", "gauge", "Steps of the job that are done, resumes included.",
              health.steps_done);
  text.single("holmes_members", "gauge", "Hosts that train now.", health.members.size());
  if (health.loss)
    text.single("holmes_loss_nats", "gauge", "Loss of the last step, for each token.",
                *health.loss);
  if (health.last_step_age)
    text.single("holmes_last_step_age_seconds", "gauge", "Time since the last step.",
                seconds(*health.last_step_age));
  text.family("holmes_nic_sent_bytes_total", "counter", "Bytes that a host's NIC has sent.");
  for (const auto& [name, traffic] : traffic_)
    text.sample(
        "holmes_nic_sent_bytes_total{host=\"" + name.first + "\",nic=\"" + name.second + "\"}",
        traffic.bytes_sent);
  return text.str();
}

}  // namespace service

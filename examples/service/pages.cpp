#include "pages.hpp"

#include <charconv>

#include <nlohmann/json.hpp>

namespace service {
namespace {

using namespace holmes;
using Json = nlohmann::ordered_json;

constexpr const char* kJson = "application/json";
constexpr int kAccepted = 202;

/// Texts of a model may break off within a letter.
std::string written(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string status_json(const actors::Health& health) {
  Json json{{"phase", to_string(health.phase)},
            {"steps_done", health.steps_done},
            {"steps_total", health.steps_total},
            {"members", health.members}};
  if (health.outcome) json["outcome"] = to_string(*health.outcome);
  if (health.loss) json["loss_nats"] = *health.loss;
  if (health.last_step_age) json["last_step_age_seconds"] = seconds(*health.last_step_age);
  if (!health.checkpoint.empty()) json["checkpoint"] = health.checkpoint.string();
  if (!health.incident.empty()) json["incident"] = health.incident;
  return written(json);
}

int status_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kInvalidArgument:
      return 400;
    case ErrorCode::kNotFound:
    case ErrorCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

void refuse(httplib::Response& response, const Error& error) {
  response.status = status_of(error);
  if (response.status == 503) response.set_header("Retry-After", "1");
  response.set_content(written(Json{{"error", error.message()}}), kJson);
}

/// The whole text has to be a number.
Result<std::uint32_t> tokens_of(const httplib::Request& request) {
  constexpr std::uint32_t kTokens = 100;
  if (!request.has_param("tokens")) return kTokens;
  const std::string text = request.get_param_value("tokens");
  std::uint32_t tokens = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), tokens);
  if (error == std::errc{} && stop == text.data() + text.size()) return tokens;
  return Error(ErrorCode::kInvalidArgument, "tokens: wants a whole number, not '" + text + "'");
}

Result<std::string> continued(const httplib::Request& request, Generator& generator) {
  if (!request.has_param("prompt"))
    return Error(ErrorCode::kInvalidArgument, "which prompt? GET /generate?prompt=TEXT");
  HOLMES_TRY_ASSIGN(const auto tokens, tokens_of(request));
  return generator.generate(request.get_param_value("prompt"), tokens);
}

/// A request without a length has no body (curl -X POST); the server by itself would wait for one.
void skip_body(const httplib::Request& request, const httplib::ContentReader& body) {
  if (request.has_header("Content-Length") || request.has_header("Transfer-Encoding"))
    body([](const char*, std::size_t) { return true; });
}

}  // namespace

void add_pages(httplib::Server& server, Parts parts) {
  server.Get("/status", [parts](const httplib::Request&, httplib::Response& response) {
    response.set_content(status_json(parts.session.health()), kJson);
  });
  server.Get("/metrics", [parts](const httplib::Request&, httplib::Response& response) {
    response.set_content(parts.metrics.text(parts.session.health()), "text/plain; version=0.0.4");
  });
  server.Post("/stop", [parts](const httplib::Request& request, httplib::Response& response,
                               const httplib::ContentReader& body) {
    skip_body(request, body);
    parts.session.request_stop();
    response.status = kAccepted;
    response.set_content(status_json(parts.session.health()), kJson);
  });
  server.Get("/generate", [parts](const httplib::Request& request, httplib::Response& response) {
    const auto text = continued(request, parts.generator);
    if (!text) return refuse(response, text.error());
    response.set_content(written(Json{{"text", *text}}), kJson);
  });
}

}  // namespace service

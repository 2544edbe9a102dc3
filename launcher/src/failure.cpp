#include "failure.hpp"

#include <nlohmann/json.hpp>

#include "exit_codes.hpp"
#include "printable.hpp"

namespace holmes::launcher {

std::string error_json(std::string_view code, std::string_view message) {
  const nlohmann::ordered_json object{{"event", "error"}, {"code", code}, {"message", message}};
  // Messages may quote any bytes; what is no UTF-8 is replaced.
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

int report_failure(const Error& error, Console& console, bool json) {
  console.log("holmes: " + printable(error.message()));
  if (json) console.print(error_json(to_string(error.code()), error.message()));
  return exit_code(error.code());
}

}  // namespace holmes::launcher

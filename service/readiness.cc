#include "service/readiness.h"

#include <nlohmann/json.hpp>

namespace attendant {

std::string ToJson(const Readiness& readiness) {
  nlohmann::ordered_json json;
  json["status"] = readiness.ready() ? "ready" : "not ready";
  json["reasons"] = readiness.reasons;
  json["warnings"] = readiness.warnings;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace attendant

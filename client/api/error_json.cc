#include "client/api/error_json.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/api/grpc_status.h"
#include "core/base/status.h"
#include "google/rpc/error_details.pb.h"

namespace attendant {
namespace {

// Returns the reason, or what a server would give as a default.
std::string ReasonOrDefault(const absl::Status& status) {
  if (const auto reason = ReasonOf(status)) return *reason;
  if (FieldOf(status).has_value()) return "INVALID_FIELD";
  return absl::StatusCodeToString(status.code());
}

}  // namespace

absl::Status UsageError(absl::string_view message) {
  return StatusWithReason(absl::StatusCode::kInvalidArgument, message,
                          kUsageReason);
}

bool AsksForJson(int argc, const char* const* argv) {
  return std::any_of(argv, argv + argc, [](absl::string_view argument) {
    return argument == "--json";
  });
}

std::string ErrorJson(const absl::Status& status) {
  nlohmann::ordered_json error;
  error["code"] = absl::StatusCodeToString(status.code());
  error["message"] = std::string(status.message());
  error["reason"] = ReasonOrDefault(status);
  error["metadata"] = nlohmann::ordered_json::object();
  const google::rpc::Status details = RpcDetailsOf(status);
  for (const google::protobuf::Any& detail : details.details()) {
    google::rpc::ErrorInfo error_info;
    google::rpc::RetryInfo retry_info;
    if (detail.UnpackTo(&error_info)) {
      for (const auto& [name, value] : error_info.metadata()) {
        error["metadata"][name] = value;
      }
    } else if (detail.UnpackTo(&retry_info)) {
      error["retryDelay"] =
          google::protobuf::util::TimeUtil::ToString(retry_info.retry_delay());
    }
  }
  const nlohmann::ordered_json json = {{"error", std::move(error)}};
  return absl::StrCat(
      json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace), "\n");
}

}  // namespace attendant

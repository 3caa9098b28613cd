#include "service/recorded_call.h"

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "service/log.h"

namespace attendant {
namespace {

bool IsOurs(grpc::StatusCode code) {
  return code == grpc::StatusCode::INTERNAL ||
         code == grpc::StatusCode::UNKNOWN ||
         code == grpc::StatusCode::DATA_LOSS;
}

}  // namespace

CallRecord::CallRecord(ServerMetrics& metrics, const Method& method)
    : metrics_(metrics.calls(method)), method_(method) {
  metrics_.started.Add();
}

void CallRecord::End(const grpc::Status& status) {
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  metrics_.Handled(code, TimeSince(start_));
  if (IsOurs(status.error_code())) {
    LogEvent(LogLevel::kError, "call_failed",
             {{"method", method_.name},
              {"code", absl::StatusCodeToString(code)},
              {"message", status.error_message()}});
  }
}

}  // namespace attendant

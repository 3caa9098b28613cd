#include "service/recorded_call.h"

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "service/log.h"

namespace attendant {
namespace {

bool IsOurs(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss;
}

// Counts what would have been answered at another time, and nothing else.
void CountShed(const absl::Status& status, ServerMetrics& metrics) {
  if (status.ok()) return;
  const std::optional<std::string> reason = ReasonOf(status);
  if (reason == "QUEUE_FULL") {
    metrics.shed[ShedReason::kQueueFull].Add();
  } else if (reason == "WOULD_BE_LATE") {
    metrics.shed[ShedReason::kWouldBeLate].Add();
  } else if (reason == "DRAINING") {
    metrics.shed[ShedReason::kDraining].Add();
  }
}

}  // namespace

CallRecord::CallRecord(ServerMetrics& metrics, const Method& method)
    : server_metrics_(metrics),
      metrics_(metrics.calls(method)),
      method_(method) {
  metrics_.started.Add();
}

void CallRecord::End(const absl::Status& status) {
  metrics_.Handled(status.code(), TimeSince(start_));
  CountShed(status, server_metrics_);
  if (IsOurs(status.code())) {
    LogEvent(LogLevel::kError, "call_failed",
             {{"method", method_.name},
              {"code", absl::StatusCodeToString(status.code())},
              {"message", std::string(status.message())}});
  }
}

}  // namespace attendant

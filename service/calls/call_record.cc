#include "service/calls/call_record.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/storage/files/files.h"
#include "core/storage/snapshots/snapshot_files.h"
#include "service/calls/call.h"
#include "service/log/trace_parent.h"
#include "service/queue/work.h"

namespace attendant {
namespace {

constexpr std::size_t kMaxHeaderIdBytes = 128;

// True for errors that the operator should know of. A damaged snapshot sent by
// a client is the client's error.
bool IsOurs(const Method& method, const absl::Status& status) {
  if (absl::IsDataLoss(status)) {
    return method.type != "client_stream" ||
           ReasonOf(status) != kSnapshotDamaged;
  }
  return status.code() == absl::StatusCode::kInternal ||
         status.code() == absl::StatusCode::kUnknown ||
         ReasonOf(status) == kFilesNotAccessible ||
         ReasonOf(status) == kDiskFull || ReasonOf(status) == kFileTooLarge;
}

// Counts only requests that would have been served at another time.
void CountShed(const absl::Status& status, ServerMetrics& metrics) {
  if (status.ok()) return;
  const std::optional<std::string> reason = ReasonOf(status);
  if (reason == kQueueFull) {
    metrics.shed[ShedReason::kQueueFull].Add();
  } else if (reason == kWouldBeLate) {
    metrics.shed[ShedReason::kWouldBeLate].Add();
  } else if (reason == kDraining) {
    metrics.shed[ShedReason::kDraining].Add();
  }
}

bool IsRequestId(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxHeaderIdBytes &&
         std::ranges::all_of(
             text, [](unsigned char c) { return absl::ascii_isprint(c); });
}

// absl::StrFormat ends the process if there is no memory for its result, which
// a call that is being ended must survive.

// Returns 32 bits that identify the process, and a counter.
std::string NewRequestId() {
  static const std::uint32_t process = std::random_device()();
  static std::atomic<std::uint32_t> next = 0;
  return absl::StrCat(absl::Hex(process, absl::kZeroPad8),
                      absl::Hex(next.fetch_add(1), absl::kZeroPad8));
}

std::string Milliseconds(absl::Duration time) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", absl::ToDoubleMilliseconds(time));
  return text;
}

}  // namespace

CallRecord::CallRecord(CallRecords& records, const Method& method,
                       const grpc::CallbackServerContext& context)
    : records_(records), method_(method), context_(context) {
  records_.metrics.calls(method).started.Add();
}

const std::string& CallRecord::request_id() {
  if (request_id_.empty()) {
    const absl::string_view given = MetadataOf(context_, "x-request-id");
    request_id_ = IsRequestId(given) ? std::string(given) : NewRequestId();
  }
  return request_id_;
}

void CallRecord::End(const absl::Status& status, Describe describe) noexcept {
  const absl::Duration time = TimeSince(begin_);
  records_.metrics.calls(method_).Handled(status.code(), time);
  const bool is_slow = method_.is_query && time >= records_.slow_query_time;
  if (is_slow) records_.metrics.slow_queries.Add();
  try {
    CountShed(status, records_.metrics);
    LogEnd(status, time, is_slow, describe);
  } catch (const std::exception&) {
    // The call must end all the same.
  }
}

void CallRecord::LogEnd(const absl::Status& status, absl::Duration time,
                        bool is_slow, Describe describe) {
  if (IsOurs(method_, status)) {
    LogSome(records_.failures, LogLevel::kError, "call_failed", status, time,
            describe);
  }
  if (is_slow) {
    LogSome(records_.slow_queries, LogLevel::kWarning, "slow_query", status,
            time, describe);
  }
  if (IsLogged(LogLevel::kDebug)) {
    Log(LogLevel::kDebug, "call", status, time, describe);
  }
}

void CallRecord::LogSome(LogLimiter& limiter, LogLevel level,
                         absl::string_view event, const absl::Status& status,
                         absl::Duration time, Describe describe) {
  const auto dropped = limiter.Admit(SteadyNow());
  if (!dropped.has_value()) return;
  Log(level, event, status, time, [&](std::vector<LogField>& fields) {
    fields.emplace_back("not_logged_before",
                        LogValue::Json(absl::StrCat(*dropped)));
    describe(fields);
  });
}

void CallRecord::Log(LogLevel level, absl::string_view event,
                     const absl::Status& status, absl::Duration time,
                     Describe describe) {
  std::vector<LogField> fields = {
      {"request_id", request_id()},
      {"method", method_.name},
      {"code", absl::StatusCodeToString(status.code())},
      {"time_ms", LogValue::Json(Milliseconds(time))}};
  if (!status.ok()) {
    fields.emplace_back("message", std::string(status.message()));
  }
  const std::optional<TraceParent> trace =
      ParseTraceParent(MetadataOf(context_, "traceparent"));
  if (trace.has_value()) {
    fields.emplace_back("trace_id", std::string(trace->trace_id));
    fields.emplace_back("parent_span_id", std::string(trace->parent_id));
  }
  describe(fields);
  LogEvent(level, event, fields);
}

}  // namespace attendant

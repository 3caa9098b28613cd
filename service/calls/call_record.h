// What is recorded about a call, for metrics and logs.
#ifndef ATTENDANT_SERVICE_CALLS_CALL_RECORD_H_
#define ATTENDANT_SERVICE_CALLS_CALL_RECORD_H_

#include <grpcpp/server_context.h>

#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "service/log/log.h"
#include "service/log/log_limiter.h"
#include "service/metrics/server_metrics.h"

namespace attendant {

// Metrics and log limits shared by all calls. Thread-safe.
struct CallRecords {
  explicit CallRecords(std::span<const Method> methods) : metrics(methods) {}

  ServerMetrics metrics;
  // Queries that take at least this long are logged; InfiniteDuration: none.
  absl::Duration slow_query_time = absl::InfiniteDuration();
  LogLimiter slow_queries{10};
  LogLimiter failures{10};
};

// Records a call from its arrival. Unless something is logged, it neither
// allocates nor reads the call's metadata. Not thread-safe.
//
// Log events, each with the request id and the trace the call is part of:
//   call_failed  server errors: Internal, Unknown, DataLoss (except for a
//                damaged snapshot that a client sends), and errors with the
//                reasons kFilesNotAccessible, kDiskFull and kFileTooLarge;
//                at most ten a second
//   slow_query   unary calls of the attention and sequence services; at most
//                ten a second
//   call         every call, at debug level
class CallRecord {
 public:
  // All arguments must outlive the record.
  CallRecord(CallRecords& records, const Method& method,
             const grpc::CallbackServerContext& context);

  // A worker has taken the call, not necessarily for the first time.
  void BeginWork() {
    if (work_begin_ == SteadyTime::max()) work_begin_ = SteadyNow();
  }
  // Time from arrival until a worker first took the call, or until now if none
  // has.
  absl::Duration queue_duration() const {
    const bool begun = work_begin_ != SteadyTime::max();
    return absl::FromChrono((begun ? work_begin_ : SteadyNow()) - begin_);
  }

  const Method& method() const { return method_; }
  // Count a message of a stream.
  void CountRead() { records_.metrics.calls(method_).read.Add(); }
  void CountWritten() { records_.metrics.calls(method_).written.Add(); }

  // Returns the metadata x-request-id if it is 1 to 128 printable ASCII
  // characters; otherwise an id that is unique among calls.
  const std::string& request_id();

  // Records the end of the call; call once, before gRPC is told. `describe`
  // adds call-specific log fields. A line for which there is no memory is not
  // logged.
  using Describe = absl::FunctionRef<void(std::vector<LogField>& fields)>;
  void End(const absl::Status& status, Describe describe) noexcept;

 private:
  void LogEnd(const absl::Status& status, absl::Duration time, bool is_slow,
              Describe describe);
  void Log(LogLevel level, absl::string_view event, const absl::Status& status,
           absl::Duration time, Describe describe);
  // Logs if the limiter admits it, with the number of events suppressed before.
  void LogSome(LogLimiter& limiter, LogLevel level, absl::string_view event,
               const absl::Status& status, absl::Duration time,
               Describe describe);

  CallRecords& records_;
  const Method& method_;
  const grpc::CallbackServerContext& context_;
  const SteadyTime begin_ = SteadyNow();
  SteadyTime work_begin_ = SteadyTime::max();
  std::string request_id_;  // empty: not determined yet
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_CALL_RECORD_H_

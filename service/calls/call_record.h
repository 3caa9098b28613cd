// What is kept of a call while it lasts, to count it and to tell of it.
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

// What of calls is counted and logged. Thread-safe.
struct CallRecords {
  explicit CallRecords(std::span<const Method> methods) : metrics(methods) {}

  ServerMetrics metrics;
  // Queries that take as long or longer are logged; InfiniteDuration: none.
  absl::Duration slow_query_time = absl::InfiniteDuration();
  LogLimiter slow_queries{10};
  LogLimiter failures{10};
};

// From a call's arrival on. As long as nothing is logged it neither allocates
// nor looks at the call's metadata. Not thread-safe.
//
// Logged are, each with the request id and the trace it is part of:
//   call_failed  errors of ours: Internal, Unknown, DataLoss, but for a
//                damaged snapshot that a client sends, and those of reasons
//                kFilesNotAccessible, kDiskFull and kFileTooLarge; ten a
//                second
//   slow_query   unary calls of the attention and sequence services; ten a
//                second
//   call         every call, at debug level
class CallRecord {
 public:
  // All must outlive the record.
  CallRecord(CallRecords& records, const Method& method,
             const grpc::CallbackServerContext& context);

  // A worker takes the call, maybe not for the first time.
  void BeginWork() {
    if (work_begin_ == SteadyTime::max()) work_begin_ = SteadyNow();
  }
  // Until a worker took it; if none has yet, until now.
  absl::Duration queue_duration() const {
    const bool begun = work_begin_ != SteadyTime::max();
    return absl::FromChrono((begun ? work_begin_ : SteadyNow()) - begin_);
  }

  const Method& method() const { return method_; }
  // A message of a stream.
  void CountRead() { records_.metrics.calls(method_).read.Add(); }
  void CountWritten() { records_.metrics.calls(method_).written.Add(); }

  // The metadata x-request-id, if it is 1 to 128 printable characters of ASCII;
  // else one that no other call has.
  const std::string& request_id();

  // The call ends so: once, before gRPC hears of it. `describe` adds what else
  // there is to log.
  using Describe = absl::FunctionRef<void(std::vector<LogField>& fields)>;
  void End(const absl::Status& status, Describe describe);

 private:
  void Log(LogLevel level, absl::string_view event, const absl::Status& status,
           absl::Duration time, Describe describe);
  // The same if the limiter admits it, and how many it did not before.
  void LogSome(LogLimiter& limiter, LogLevel level, absl::string_view event,
               const absl::Status& status, absl::Duration time,
               Describe describe);

  CallRecords& records_;
  const Method& method_;
  const grpc::CallbackServerContext& context_;
  const SteadyTime begin_ = SteadyNow();
  SteadyTime work_begin_ = SteadyTime::max();
  std::string request_id_;  // empty: nobody has asked yet
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_CALL_RECORD_H_

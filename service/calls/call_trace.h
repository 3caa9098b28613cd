// Where the time of a query went.
#ifndef ATTENDANT_SERVICE_CALLS_CALL_TRACE_H_
#define ATTENDANT_SERVICE_CALLS_CALL_TRACE_H_

#include <string>

#include "absl/time/time.h"
#include "attendant/v1/attention_service.pb.h"
#include "core/catalog/query/attend_trace.h"

namespace attendant {

// Core's trace, and what the service does before and after.
struct CallTrace {
  absl::Duration read_duration;   // the request, its filter included
  absl::Duration reply_duration;  // to fill in the reply
  int segment_count = 0;
  AttendTrace attend;
};

// All but request_id and queue_duration.
void TraceToProto(const CallTrace& trace, v1::QueryPlan* wire);

// For the log, with the names of the proto's fields.
std::string PlanToJson(const v1::QueryPlan& plan);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_CALL_TRACE_H_

// Times of the stages of a query.
#ifndef ATTENDANT_SERVICE_CALLS_CALL_TRACE_H_
#define ATTENDANT_SERVICE_CALLS_CALL_TRACE_H_

#include <string>

#include "absl/time/time.h"
#include "attendant/v1/attention_service.pb.h"
#include "core/catalog/query/attend_trace.h"

namespace attendant {

// The core's trace, plus the stages in the service before and after it.
struct CallTrace {
  absl::Duration read_duration;   // reads the request, including its filter
  absl::Duration reply_duration;  // fills in the reply
  int segment_count = 0;
  AttendTrace attend;
};

// Fills in all fields except request_id and queue_duration.
void TraceToProto(const CallTrace& trace, v1::QueryPlan* wire);

// Returns the plan as JSON for the log, with the field names of the proto.
std::string PlanToJson(const v1::QueryPlan& plan);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_CALL_TRACE_H_

// Answers requests to attend over one state of a catalog, in passes over its
// keys that they share.
#ifndef ATTENDANT_SERVICE_HANDLERS_ATTEND_JOBS_H_
#define ATTENDANT_SERVICE_HANDLERS_ATTEND_JOBS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "attendant/v1/attention_service.pb.h"
#include "core/base/interrupt.h"
#include "core/catalog/segments/snapshot.h"
#include "service/calls/backend.h"
#include "service/calls/call_trace.h"

namespace attendant {

// Nothing is null.
struct AttendJob {
  const v1::AttendRequest* request = nullptr;
  const Interrupt* interrupt = nullptr;
  // What the response may take, read when it is made.
  const std::int64_t* max_bytes = nullptr;
  v1::AttendResponse* response = nullptr;
  // Of an answer; without one, how far it came.
  CallTrace* trace = nullptr;
};

// Calls answered(job, status) once for each job, as soon as it is known, in any
// order; nothing of the job is looked at afterwards. On OK its response is
// filled in, also with its plan if the request asks for that; its items alone
// fit into max_bytes. Errors are each job's own: those of core's Attend, and
// ReplyTooLarge. Counts them in the backend's metrics.
void AnswerJobs(
    Backend& backend, const Snapshot& snapshot, std::span<const AttendJob> jobs,
    absl::FunctionRef<void(std::size_t job, absl::Status)> answered);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HANDLERS_ATTEND_JOBS_H_

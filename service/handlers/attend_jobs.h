// Answers Attend requests over one state of a catalog, sharing passes over its
// keys.
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

// One request. No pointer may be null.
struct AttendJob {
  const v1::AttendRequest* request = nullptr;
  const Interrupt* interrupt = nullptr;
  // Maximum size of the response, read when it is built.
  const std::int64_t* max_bytes = nullptr;
  v1::AttendResponse* response = nullptr;
  // Trace of the answer; without an answer, of the stages reached.
  CallTrace* trace = nullptr;
};

// Calls answered(job, status) exactly once per job, in any order, as soon as
// its result is known; the job is not accessed afterwards. On OK its response
// is filled in, with the plan if the request asks for it; its items alone fit
// into max_bytes. Each job has its own errors: those of core's Attend, and
// ReplyTooLarge. Counts the answers in the backend's metrics.
void AnswerJobs(
    Backend& backend, const Snapshot& snapshot, std::span<const AttendJob> jobs,
    absl::FunctionRef<void(std::size_t job, absl::Status)> answered);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HANDLERS_ATTEND_JOBS_H_

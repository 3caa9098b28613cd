#include <algorithm>
#include <cstddef>
#include <deque>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/calls/grpc_status.h"
#include "service/calls/read_after_write.h"
#include "service/convert/wire.h"
#include "service/handlers/attend_jobs.h"
#include "service/handlers/handlers.h"

namespace attendant {
namespace {

// Queries of a batch that are answered together: a pass serves so many, and
// their masks are held at once.
constexpr int kQueriesOfPass = 64;

// True if the call as a whole has ended, and not only one of its queries.
bool EndsCall(const absl::Status& status) {
  return status.code() == absl::StatusCode::kCancelled ||
         status.code() == absl::StatusCode::kDeadlineExceeded;
}

}  // namespace

absl::Status BatchAttend(Backend& backend,
                         const v1::BatchAttendRequest& request,
                         const Interrupt& interrupt,
                         v1::BatchAttendResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog,
      FindCatalogShowing(backend, request.catalog(), "catalog",
                         request.snapshot_token()));
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(request.requests_size(), 1, backend.limits.batch, "requests"));
  const auto snapshot = catalog->snapshot();
  const int count = request.requests_size();
  for (int i = 0; i < count; ++i) response->add_results();
  std::int64_t bytes_left = backend.max_message_bytes;
  absl::Status ended;
  const auto note = [&](int position, const absl::Status& status) {
    v1::BatchAttendResult* result = response->mutable_results(position);
    if (EndsCall(status)) ended = status;
    // Also of a response that grew too large.
    bytes_left -= static_cast<std::int64_t>(result->ByteSizeLong());
    if (!status.ok()) *result->mutable_status() = ToRpcStatus(status);
  };
  std::vector<AttendJob> jobs;
  std::vector<int> positions;  // of the jobs
  std::deque<CallTrace> traces;
  for (int begin = 0; begin < count; begin += kQueriesOfPass) {
    jobs.clear();
    traces.clear();
    positions.clear();
    const int end = std::min(count, begin + kQueriesOfPass);
    for (int i = begin; i < end; ++i) {
      const v1::AttendRequest& query = request.requests(i);
      if (!query.catalog().empty() && query.catalog() != request.catalog()) {
        note(i,
             InvalidField("catalog", absl::StrCat("\"", query.catalog(), "\""),
                          "nothing, or the batch's catalog"));
        continue;
      }
      if (!query.snapshot_token().empty()) {
        note(i, InvalidField("snapshot_token", "one in a batch",
                             "nothing: the batch has one for all"));
        continue;
      }
      jobs.push_back({&query, &interrupt, &bytes_left,
                      response->mutable_results(i)->mutable_response(),
                      &traces.emplace_back()});
      positions.push_back(i);
    }
    AnswerJobs(backend, *snapshot, jobs,
               [&](std::size_t job, const absl::Status& status) {
                 note(positions[job], status);
               });
    ATTENDANT_RETURN_IF_ERROR(ended);
    // No later query could be answered: spare the work and the memory.
    if (bytes_left < 0) return ReplyTooLarge(backend.max_message_bytes);
  }
  return absl::OkStatus();
}

}  // namespace attendant

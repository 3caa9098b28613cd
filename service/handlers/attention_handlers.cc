#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/calls/grpc_status.h"
#include "service/calls/read_after_write.h"
#include "service/calls/request_limits.h"
#include "service/convert/wire.h"
#include "service/handlers/attend_jobs.h"
#include "service/handlers/handlers.h"

namespace attendant {
namespace {

// Number of queries of a batch answered together: as many as a pass serves,
// whose masks are held at once.
constexpr int kQueriesOfPass = 64;

// True if the whole call has ended, not only one of its queries.
bool EndsCall(const absl::Status& status) {
  return status.code() == absl::StatusCode::kCancelled ||
         status.code() == absl::StatusCode::kDeadlineExceeded;
}

// OK if a query of a batch may be answered; otherwise the reason.
absl::Status CheckQuery(const Backend& backend,
                        const v1::BatchAttendRequest& request,
                        const v1::AttendRequest& query) {
  if (!query.catalog().empty() && query.catalog() != request.catalog()) {
    return InvalidField("catalog", absl::StrCat("\"", query.catalog(), "\""),
                        "nothing or the batch's catalog");
  }
  if (!query.state_token().empty()) {
    return InvalidField("state_token", "one in a batch",
                        "nothing: set the state_token of the batch");
  }
  return CheckLimits(backend.limits, query);
}

// The reply of a batch, filled result by result, within the size of one
// message.
//
// Answers are built outside the reply, so that an answer that does not fit is
// freed as soon as that is known.
class BatchReply {
 public:
  BatchReply(int count, std::int64_t max_bytes, v1::BatchAttendResponse& reply)
      : max_bytes_(max_bytes),
        status_bytes_(std::min(kStatusBytes, max_bytes / 2 / count)),
        bytes_left_(max_bytes - count * status_bytes_),
        reply_(reply) {
    for (int i = 0; i < count; ++i) reply_.add_results();
  }

  // Bytes available for the next answer.
  const std::int64_t* bytes_left() const { return &bytes_left_; }

  // If a status does not fit, only its code is kept.
  void Note(int position, const absl::Status& status) {
    v1::BatchAttendResult& result = *reply_.mutable_results(position);
    *result.mutable_status() =
        ToRpcStatus(IsTooLarge(status) ? NoRoom() : status);
    const auto bytes = static_cast<std::int64_t>(result.ByteSizeLong());
    const std::int64_t more =
        std::max<std::int64_t>(0, bytes + kFrameBytes - status_bytes_);
    if (more <= bytes_left_) {
      bytes_left_ -= more;
      return;
    }
    result.clear_status();
    result.mutable_status()->set_code(static_cast<int>(status.code()));
  }
  void Note(int position, std::unique_ptr<v1::AttendResponse> answer) {
    const auto bytes = static_cast<std::int64_t>(answer->ByteSizeLong());
    if (bytes > bytes_left_) return Note(position, NoRoom());
    bytes_left_ -= bytes;
    reply_.mutable_results(position)->set_allocated_response(answer.release());
  }

 private:
  // Bytes reserved for each query, in total at most half of a message: enough
  // for most errors, and for the lengths that frame a result.
  static constexpr std::int64_t kStatusBytes = 512;
  static constexpr std::int64_t kFrameBytes = 8;  // of those lengths

  // True for ReplyTooLarge, whose message would describe this answer alone.
  // Other errors with kOverLimit name a field.
  static bool IsTooLarge(const absl::Status& status) {
    return ReasonOf(status) == kOverLimit && !FieldOf(status);
  }

  absl::Status NoRoom() const {
    return StatusWithReason(
        absl::StatusCode::kResourceExhausted,
        absl::StrCat(
            "with it the batch's reply would take more than ", max_bytes_,
            " bytes, the maximum size of a message (--max-message-bytes): ask "
            "for fewer items or a smaller read mask, or in another batch"),
        kOverLimit);
  }

  const std::int64_t max_bytes_;
  const std::int64_t status_bytes_;  // reserved for each query
  std::int64_t bytes_left_;
  v1::BatchAttendResponse& reply_;
};

}  // namespace

absl::Status BatchAttend(Backend& backend,
                         const v1::BatchAttendRequest& request,
                         const Interrupt& interrupt,
                         v1::BatchAttendResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog, FindCatalogShowing(backend, request.catalog(),
                                             "catalog", request.state_token()));
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(request.requests_size(), 1, backend.limits.batch, "requests"));
  const auto snapshot = catalog->snapshot();
  const int count = request.requests_size();
  BatchReply reply(count, backend.max_message_bytes, *response);
  absl::Status ended;
  std::vector<AttendJob> jobs;
  std::vector<int> positions;  // of the jobs in the batch
  std::vector<std::unique_ptr<v1::AttendResponse>> answers;
  std::deque<CallTrace> traces;
  for (int begin = 0; begin < count; begin += kQueriesOfPass) {
    jobs.clear();
    traces.clear();
    positions.clear();
    answers.clear();
    const int end = std::min(count, begin + kQueriesOfPass);
    for (int i = begin; i < end; ++i) {
      const v1::AttendRequest& query = request.requests(i);
      const absl::Status status = CheckQuery(backend, request, query);
      if (!status.ok()) {
        reply.Note(i, status);
        continue;
      }
      answers.push_back(std::make_unique<v1::AttendResponse>());
      jobs.push_back({&query, &interrupt, reply.bytes_left(),
                      answers.back().get(), &traces.emplace_back()});
      positions.push_back(i);
    }
    AnswerJobs(backend, *snapshot, jobs,
               [&](std::size_t job, const absl::Status& status) {
                 if (EndsCall(status)) ended = status;
                 auto answer = std::move(answers[job]);
                 if (status.ok()) {
                   reply.Note(positions[job], std::move(answer));
                 } else {
                   reply.Note(positions[job], status);
                 }
               });
    ATTENDANT_RETURN_IF_ERROR(ended);
  }
  return absl::OkStatus();
}

}  // namespace attendant

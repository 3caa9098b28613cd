#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/catalog/attend.h"
#include "service/convert_attend.h"
#include "service/convert_filter.h"
#include "service/convert_time.h"
#include "service/grpc_status.h"
#include "service/handlers.h"
#include "service/model_reference.h"
#include "service/wire.h"

namespace attendant {
namespace {

absl::Status AttendOver(const Backend& backend, const Snapshot& snapshot,
                        const v1::AttendRequest& request,
                        const Interrupt& interrupt, std::int64_t max_bytes,
                        v1::AttendResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(AttendQuery query, AttendQueryFromProto(request));
  ATTENDANT_ASSIGN_OR_RETURN(query.filter,
                             FilterOfRequest(request, *snapshot.schema));
  if (request.has_model()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        query.model,
        FindModel(backend.catalogs->models(), request.model(), "model"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      const ReadMask mask,
      ReadMaskFromProto(request.read_mask(), *snapshot.schema));
  const auto start = std::chrono::steady_clock::now();
  ATTENDANT_ASSIGN_OR_RETURN(const AttendAnswer answer,
                             Attend(snapshot, query, interrupt));
  const absl::Duration compute_time =
      absl::FromChrono(std::chrono::steady_clock::now() - start);
  ATTENDANT_RETURN_IF_ERROR(
      AttendAnswerToProto(answer, snapshot, mask, max_bytes, response));
  DurationToProto(compute_time,
                  response->mutable_stats()->mutable_compute_time());
  return absl::OkStatus();
}

// True if the call as a whole has ended, and not only one of its queries.
bool EndsCall(const absl::Status& status) {
  return status.code() == absl::StatusCode::kCancelled ||
         status.code() == absl::StatusCode::kDeadlineExceeded;
}

}  // namespace

absl::Status Attend(Backend& backend, const v1::AttendRequest& request,
                    const Interrupt& interrupt, v1::AttendResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog, FindCatalog(backend, request.catalog(), "catalog"));
  return AttendOver(backend, *catalog->snapshot(), request, interrupt,
                    backend.max_message_bytes, response);
}

absl::Status BatchAttend(Backend& backend,
                         const v1::BatchAttendRequest& request,
                         const Interrupt& interrupt,
                         v1::BatchAttendResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog, FindCatalog(backend, request.catalog(), "catalog"));
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(request.requests_size(), 1, kMaxBatchSize, "requests"));
  const auto snapshot = catalog->snapshot();
  std::int64_t bytes_left = backend.max_message_bytes;
  for (const v1::AttendRequest& query : request.requests()) {
    v1::BatchAttendResult* result = response->add_results();
    absl::Status status;
    if (!query.catalog().empty() && query.catalog() != request.catalog()) {
      status =
          InvalidField("catalog", absl::StrCat("\"", query.catalog(), "\""),
                       "nothing, or the batch's catalog");
    } else {
      status = AttendOver(backend, *snapshot, query, interrupt, bytes_left,
                          result->mutable_response());
      bytes_left -= static_cast<std::int64_t>(result->ByteSizeLong());
      // No later query could be answered: spare the work and the memory.
      if (bytes_left < 0) return ReplyTooLarge(backend.max_message_bytes);
    }
    if (status.ok()) continue;
    if (EndsCall(status)) return status;
    *result->mutable_status() = ToRpcStatus(status);
  }
  return absl::OkStatus();
}

}  // namespace attendant

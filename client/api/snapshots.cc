// Client's streaming calls on snapshots.
#include <memory>
#include <utility>

#include "client/api/client.h"
#include "client/api/deadline.h"
#include "client/api/grpc_status.h"
#include "core/base/status.h"

namespace attendant {
namespace {

void SetDeadline(grpc::ClientContext& context, Client::Deadline deadline) {
  if (!deadline.has_value()) return;
  context.set_deadline(DeadlineAfter(*deadline));
}

// Reads a stream to its end and returns the last response.
template <typename Response>
absl::StatusOr<Response> ReadLast(grpc::ClientReader<Response>& stream,
                                  const Client::OnProgress& on_progress) {
  Response response;
  Response last;
  while (stream.Read(&response)) {
    if (response.has_progress() && on_progress != nullptr) {
      on_progress(response.progress());
    }
    last = std::move(response);
    response.Clear();
  }
  ATTENDANT_RETURN_IF_ERROR(FromGrpcStatus(stream.Finish()));
  return last;
}

}  // namespace

absl::StatusOr<v1::CreateSnapshotResponse> Client::CreateSnapshot(
    const v1::CreateSnapshotRequest& request, const OnProgress& on_progress,
    Deadline deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  return ReadLast(*snapshots_->CreateSnapshot(&context, request), on_progress);
}

absl::StatusOr<v1::VerifySnapshotResponse> Client::VerifySnapshot(
    const v1::VerifySnapshotRequest& request, const OnProgress& on_progress,
    Deadline deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  return ReadLast(*snapshots_->VerifySnapshot(&context, request), on_progress);
}

absl::StatusOr<v1::RestoreSnapshotResponse> Client::RestoreSnapshot(
    const v1::RestoreSnapshotRequest& request, const OnProgress& on_progress,
    Deadline deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  return ReadLast(*snapshots_->RestoreSnapshot(&context, request), on_progress);
}

absl::Status Client::ExportSnapshot(
    const v1::ExportSnapshotRequest& request,
    const std::function<absl::Status(const v1::ExportSnapshotResponse&)>& take,
    Deadline deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  const auto stream = snapshots_->ExportSnapshot(&context, request);
  v1::ExportSnapshotResponse response;
  absl::Status taken;
  while (taken.ok() && stream->Read(&response)) taken = take(response);
  if (!taken.ok()) context.TryCancel();
  const absl::Status status = FromGrpcStatus(stream->Finish());
  return taken.ok() ? status : taken;
}

absl::StatusOr<v1::ImportSnapshotResponse> Client::ImportSnapshot(
    const std::function<absl::StatusOr<bool>(v1::ImportSnapshotRequest*)>& next,
    Deadline deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  v1::ImportSnapshotResponse response;
  const auto stream = snapshots_->ImportSnapshot(&context, &response);
  while (true) {
    v1::ImportSnapshotRequest request;
    const absl::StatusOr<bool> more = next(&request);
    if (!more.ok()) {
      context.TryCancel();
      stream->Finish();
      return more.status();
    }
    // A failed write means that the server stopped reading; Finish says why.
    if (!*more || !stream->Write(request)) break;
  }
  stream->WritesDone();
  ATTENDANT_RETURN_IF_ERROR(FromGrpcStatus(stream->Finish()));
  return response;
}

}  // namespace attendant

#include "service/handlers/snapshot_calls.h"

#include <algorithm>
#include <utility>

#include "attendant/v1/snapshot_service.pb.h"
#include "core/base/status.h"
#include "service/calls/authorize.h"
#include "service/calls/call.h"
#include "service/calls/flow.h"
#include "service/convert/wire.h"
#include "service/handlers/snapshot_handlers.h"

namespace attendant {
namespace {

constexpr std::int64_t kChunkBytes = 1 << 20;

// The interrupt that the queue sees for an upload. Even an upload that has
// ended needs its turn, in which its files are removed.
const Interrupt kAlwaysWanted = {};

}  // namespace

ExportCall* ExportCall::Start(Backend& backend, WorkerPool& pool,
                              grpc::CallbackServerContext& context,
                              const grpc::ByteBuffer& request) {
  auto* call = new ExportCall(backend, pool, context, request);
  if (backend.draining.load()) {
    call->Finish(Draining());
  } else {
    pool.Add(call);
  }
  return call;
}

ExportCall::ExportCall(Backend& backend, WorkerPool& pool,
                       grpc::CallbackServerContext& context,
                       const grpc::ByteBuffer& request)
    : RecordedCall(backend, FindMethod("ExportSnapshot"), context),
      Work(interrupt_),
      pool_(pool),
      request_(request) {
  set_flow(FlowOfCaller(FindGrant(backend, context).get(), context));
}

void ExportCall::OnWriteDone(bool ok) {
  wait_.End();
  if (!ok) {
    Stop(Gone());
  } else {
    set_begun();
    pool_.Add(this);
  }
}

void ExportCall::Run() {
  bool more = false;
  const absl::Status status = RunHandler([&] { return Handle(more); });
  if (status.ok() && more) {
    StartWrite(&response_);
  } else {
    CountCutShort(status, *this);
    Stop(status);
  }
}

void ExportCall::OnCancel() {
  RecordedCall::OnCancel();
  pool_.Cancel(this);
}

// Releases the snapshot first: a client that was told of the end may delete it.
void ExportCall::Stop(const absl::Status& status) {
  stream_ = nullptr;
  Finish(status);
}

absl::Status ExportCall::Handle(bool& more) {
  ATTENDANT_RETURN_IF_ERROR(interrupt_.Check());
  v1::ExportSnapshotResponse response;
  if (stream_ == nullptr) {
    google::protobuf::Arena arena(MessageArenaOptions());
    auto& request =
        *google::protobuf::Arena::CreateMessage<v1::ExportSnapshotRequest>(
            &arena);
    ATTENDANT_RETURN_IF_ERROR(ParseMessage(request_, &request));
    ATTENDANT_RETURN_IF_ERROR(
        Authorize(backend_, context_, record_.method(), request));
    ATTENDANT_ASSIGN_OR_RETURN(
        auto lease, OpenSnapshot(backend_, request.catalog(), request.name()));
    stream_ = std::make_unique<SnapshotExport>(&backend_.catalogs->snapshots(),
                                               std::move(lease));
    response.set_total_bytes(stream_->byte_count());
    catalog_ = request.catalog();
  } else {
    ATTENDANT_RETURN_IF_ERROR(
        AuthorizeStill(backend_, context_, record_.method(), catalog_));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      std::string bytes, stream_->Next(static_cast<std::size_t>(std::min(
                             kChunkBytes, backend_.max_message_bytes / 2))));
  more = !bytes.empty();
  response.set_chunk(std::move(bytes));
  response_.Clear();
  return SerialiseMessage(response, backend_.max_message_bytes, &response_);
}

SnapshotImportCall* SnapshotImportCall::Start(
    Backend& backend, WorkerPool& pool, grpc::CallbackServerContext& context,
    grpc::ByteBuffer& response) {
  auto* call = new SnapshotImportCall(backend, pool, context, response);
  if (backend.draining.load()) {
    call->Stop(Draining());
  } else {
    call->StartRead(&call->request_);
  }
  return call;
}

SnapshotImportCall::SnapshotImportCall(Backend& backend, WorkerPool& pool,
                                       grpc::CallbackServerContext& context,
                                       grpc::ByteBuffer& response)
    : RecordedCall(backend, FindMethod("ImportSnapshot"), context),
      Work(kAlwaysWanted),
      pool_(pool),
      response_(response),
      stream_(std::in_place, &backend.catalogs->snapshots()) {
  set_flow(FlowOfCaller(FindGrant(backend, context).get(), context));
}

void SnapshotImportCall::OnReadDone(bool ok) {
  EndRead(ok);
  backend_.poller_reserve->BeginWork();
  all_read_ = !ok;
  if (begun()) {
    pool_.Add(this);
  } else if (context_.IsCancelled()) {
    // There are no files yet that would need a turn to be removed.
    Stop(Gone());
  } else if (backend_.draining.load()) {
    Stop(Draining());
  } else {
    pool_.Add(this);
  }
}

void SnapshotImportCall::Run() {
  const bool at_end = all_read_;
  const absl::Status status =
      RunHandler([&] { return at_end ? End() : Append(); });
  if (status.ok() && !at_end) {
    StartRead(&request_);
  } else {
    CountCutShort(status, *this);
    Stop(status);
  }
}

void SnapshotImportCall::OnCancel() {
  RecordedCall::OnCancel();
  if (pool_.RemoveUnlessBegun(this)) Stop(interrupt_.Check());
}

// Removes an unfinished import here, on a worker, rather than in the
// destructor, which runs on a gRPC thread: it may be gigabytes of files.
void SnapshotImportCall::Stop(const absl::Status& status) {
  stream_.reset();
  Finish(status);
}

absl::Status SnapshotImportCall::Append() {
  ATTENDANT_RETURN_IF_ERROR(interrupt_.Check());
  google::protobuf::Arena arena(MessageArenaOptions());
  auto& request =
      *google::protobuf::Arena::CreateMessage<v1::ImportSnapshotRequest>(
          &arena);
  ATTENDANT_RETURN_IF_ERROR(ParseMessage(request_, &request));
  request_.Clear();
  if (!begun()) {
    ATTENDANT_RETURN_IF_ERROR(
        Authorize(backend_, context_, record_.method(), request));
    set_begun();
    ATTENDANT_RETURN_IF_ERROR(
        stream_->Name(request.catalog().empty()
                          ? std::string()
                          : backend_.catalogs->Resolve(request.catalog()),
                      request.name()));
    asked_for_ = request.catalog();
    return stream_->Append(request.chunk());
  }
  ATTENDANT_RETURN_IF_ERROR(
      AuthorizeStill(backend_, context_, record_.method(), asked_for_));
  if (!request.catalog().empty() || !request.name().empty()) {
    return InvalidField(request.name().empty() ? "catalog" : "name", "a name",
                        "nothing after the first request");
  }
  return stream_->Append(request.chunk());
}

absl::Status SnapshotImportCall::End() {
  // A cancelled stream ends like a complete one, and OnCancel may come later.
  if (context_.IsCancelled()) return Gone();
  ATTENDANT_RETURN_IF_ERROR(interrupt_.Check());
  ATTENDANT_RETURN_IF_ERROR(
      AuthorizeStill(backend_, context_, record_.method(), asked_for_));
  if (!begun()) {
    return InvalidField("bytes", "a stream without a message",
                        "a first message with the beginning of a snapshot that "
                        "was exported");
  }
  LongWork work(interrupt_);
  ATTENDANT_ASSIGN_OR_RETURN(const SnapshotManifest manifest,
                             stream_->Finish(work));
  v1::ImportSnapshotResponse response;
  SnapshotToProto(manifest, response.mutable_snapshot());
  return SerialiseMessage(response, backend_.max_message_bytes, &response_);
}

}  // namespace attendant

// Streams the bytes of stored snapshots to and from clients.
#ifndef ATTENDANT_SERVICE_HANDLERS_SNAPSHOT_CALLS_H_
#define ATTENDANT_SERVICE_HANDLERS_SNAPSHOT_CALLS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/storage/snapshots/snapshot_stream.h"
#include "service/calls/backend.h"
#include "service/calls/recorded_call.h"
#include "service/queue/worker_pool.h"

namespace attendant {

// ExportSnapshot. Each response is read from disk on a worker and sent before
// the next is read, so a slow client holds no worker and little memory. Lives
// until gRPC is done with it.
class ExportCall final
    : public RecordedCall<grpc::ServerWriteReactor<grpc::ByteBuffer>>,
      public Work {
 public:
  // gRPC owns the result.
  static ExportCall* Start(Backend& backend, WorkerPool& pool,
                           grpc::CallbackServerContext& context,
                           const grpc::ByteBuffer& request);

  void OnWriteDone(bool ok) override;
  void Run() override;
  void Refuse(const absl::Status& status) override { Stop(status); }
  // Removes the call from the queue if it waits there.
  void OnCancel() override;

 private:
  ExportCall(Backend& backend, WorkerPool& pool,
             grpc::CallbackServerContext& context,
             const grpc::ByteBuffer& request);
  // Fills in response_; sets `more` to false if there is none.
  absl::Status Handle(bool& more);
  // The call may be deleted before this returns.
  void Stop(const absl::Status& status);

  WorkerPool& pool_;
  const grpc::ByteBuffer& request_;
  // Accessed by one reaction or by the worker, never by two at a time.
  std::unique_ptr<SnapshotExport> stream_;  // null before the first response
  std::string catalog_;                     // as the caller spells it
  grpc::ByteBuffer response_;
};

// ImportSnapshot. Each request is written to disk on a worker before the next
// is read. Lives until gRPC is done with it; an unfinished import is removed.
class SnapshotImportCall final
    : public RecordedCall<grpc::ServerReadReactor<grpc::ByteBuffer>>,
      public Work {
 public:
  // gRPC owns the result.
  static SnapshotImportCall* Start(Backend& backend, WorkerPool& pool,
                                   grpc::CallbackServerContext& context,
                                   grpc::ByteBuffer& response);

  void OnReadDone(bool ok) override;
  void Run() override;
  void Refuse(const absl::Status& status) override { Stop(status); }
  // Removes the call from the queue if it waits there and has no files yet.
  void OnCancel() override;

 private:
  SnapshotImportCall(Backend& backend, WorkerPool& pool,
                     grpc::CallbackServerContext& context,
                     grpc::ByteBuffer& response);
  absl::Status Append();
  absl::Status End();
  // The call may be deleted before this returns.
  void Stop(const absl::Status& status);

  WorkerPool& pool_;
  grpc::ByteBuffer& response_;
  // Accessed by one reaction or by the worker, never by two at a time.
  grpc::ByteBuffer request_;
  std::optional<SnapshotImport> stream_;  // empty after Stop
  bool all_read_ = false;
  std::string asked_for_;  // the catalog as the caller spells it
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HANDLERS_SNAPSHOT_CALLS_H_

// Streams of the bytes of stored snapshots, out and in.
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

// ExportSnapshot. Each response is read on a worker and sent before the next is
// read, so that a slow client holds no worker and little memory. Lives until
// gRPC is done with it.
class ExportCall final
    : public RecordedCall<grpc::ServerWriteReactor<grpc::ByteBuffer>>,
      public Work {
 public:
  // The result belongs to gRPC.
  static ExportCall* Start(Backend& backend, WorkerPool& pool,
                           grpc::CallbackServerContext& context,
                           const grpc::ByteBuffer& request);

  void OnWriteDone(bool ok) override;
  void Run() override;
  void Refuse(const absl::Status& status) override { Stop(status); }
  // Gives up its place if it waits.
  void OnCancel() override;

 private:
  ExportCall(Backend& backend, WorkerPool& pool,
             grpc::CallbackServerContext& context,
             const grpc::ByteBuffer& request);
  // Fills response_, or says that there is no more.
  absl::Status Handle(bool& more);
  // The call may be gone after it.
  void Stop(const absl::Status& status);

  WorkerPool& pool_;
  const grpc::ByteBuffer& request_;
  // Touched by one reaction or by the worker, never by two at a time.
  std::unique_ptr<SnapshotExport> stream_;  // null before the first response
  std::string catalog_;                     // as the caller spells it
  grpc::ByteBuffer response_;
};

// ImportSnapshot. Each request is written on a worker before the next is read.
// Lives until gRPC is done with it; what was not finished is removed.
class SnapshotImportCall final
    : public RecordedCall<grpc::ServerReadReactor<grpc::ByteBuffer>>,
      public Work {
 public:
  // The result belongs to gRPC.
  static SnapshotImportCall* Start(Backend& backend, WorkerPool& pool,
                                   grpc::CallbackServerContext& context,
                                   grpc::ByteBuffer& response);

  void OnReadDone(bool ok) override;
  void Run() override;
  void Refuse(const absl::Status& status) override { Stop(status); }
  // Gives up its place if it waits and has no files; else keeps it.
  void OnCancel() override;

 private:
  SnapshotImportCall(Backend& backend, WorkerPool& pool,
                     grpc::CallbackServerContext& context,
                     grpc::ByteBuffer& response);
  absl::Status Append();
  absl::Status End();
  // The call may be gone after it.
  void Stop(const absl::Status& status);

  WorkerPool& pool_;
  grpc::ByteBuffer& response_;
  // Touched by one reaction or by the worker, never by two at a time.
  grpc::ByteBuffer request_;
  std::optional<SnapshotImport> stream_;  // nothing after Stop
  bool all_read_ = false;
  std::string asked_for_;  // the catalog as the caller spells it
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HANDLERS_SNAPSHOT_CALLS_H_

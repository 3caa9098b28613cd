// An import stream: message by message, each durable before the next is read.
#ifndef ATTENDANT_SERVICE_HANDLERS_IMPORT_CALL_H_
#define ATTENDANT_SERVICE_HANDLERS_IMPORT_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "attendant/v1/item_service.pb.h"
#include "core/catalog/live/live_catalog.h"
#include "service/calls/backend.h"
#include "service/calls/recorded_call.h"
#include "service/queue/worker_pool.h"

namespace attendant {

inline constexpr int kMaxImportBatchSize = 4096;

// Reads a message, imports its items by one synced write on a worker, replies,
// and only then reads on: a slow disk holds the client back through HTTP/2's
// flow control, and nothing piles up here. Only the first message may be turned
// away for what else waits, and any once the server drains. An error ends the
// stream; what an earlier reply acknowledged is durable. Lives until gRPC is
// done with it.
class ImportCall final
    : public RecordedCall<
          grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>,
      public Work {
 public:
  // Starts to read. The result belongs to gRPC.
  static ImportCall* Start(Backend& backend, WorkerPool& pool,
                           grpc::CallbackServerContext& context);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void Run() override;
  void Refuse(const absl::Status& status) override { Finish(status); }
  // Gives up its place if it waits.
  void OnCancel() override;

 private:
  ImportCall(Backend& backend, WorkerPool& pool,
             grpc::CallbackServerContext& context);

  // Handles request_bytes_ and fills response_bytes_.
  absl::Status Handle();
  absl::Status FindTarget(const v1::ImportItemsRequest& request);
  absl::Status ImportMessage(const v1::ImportItemsRequest& request,
                             v1::ImportItemsResponse* response);

  WorkerPool& pool_;
  // Touched by one reaction or by the worker, never by two at a time.
  grpc::ByteBuffer request_bytes_;
  grpc::ByteBuffer response_bytes_;
  std::shared_ptr<LiveCatalog> catalog_;  // null before the first message
  std::string catalog_name_;              // as the caller spells it
  std::int64_t acknowledged_count_ = 0;
  std::int64_t stored_count_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HANDLERS_IMPORT_CALL_H_

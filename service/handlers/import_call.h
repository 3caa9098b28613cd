// An import stream: each message is made durable before the next is read.
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

// Reads a message, imports its items in one synced write on a worker, replies,
// and only then reads the next: with a slow disk, HTTP/2 flow control applies
// backpressure to the client, and nothing accumulates here. Only the first
// message may be refused because too much else waits; any message may be
// refused once the server drains. An error ends the stream; what an earlier
// reply acknowledged is durable. Lives until gRPC is done with it.
class ImportCall final
    : public RecordedCall<
          grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>,
      public Work {
 public:
  // Starts to read. gRPC owns the result.
  static ImportCall* Start(Backend& backend, WorkerPool& pool,
                           grpc::CallbackServerContext& context);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void Run() override;
  void Refuse(const absl::Status& status) override { Finish(status); }
  // Removes the call from the queue if it waits there.
  void OnCancel() override;

 private:
  ImportCall(Backend& backend, WorkerPool& pool,
             grpc::CallbackServerContext& context);

  // Handles request_bytes_ and fills in response_bytes_.
  absl::Status Handle();
  absl::Status FindTarget(const v1::ImportItemsRequest& request);
  absl::Status ImportMessage(const v1::ImportItemsRequest& request,
                             v1::ImportItemsResponse* response);

  WorkerPool& pool_;
  // Accessed by one reaction or by the worker, never by two at a time.
  grpc::ByteBuffer request_bytes_;
  grpc::ByteBuffer response_bytes_;
  std::shared_ptr<LiveCatalog> catalog_;  // null before the first message
  std::string catalog_name_;              // as the caller spells it
  std::int64_t acknowledged_count_ = 0;
  std::int64_t stored_count_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HANDLERS_IMPORT_CALL_H_

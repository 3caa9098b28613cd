// A typed client of an Attendant server.
//
//   auto client = Client::Connect({.server = "127.0.0.1:7600"});
//   v1::AttendRequest request;
//   request.set_catalog("products");
//   request.mutable_query()->mutable_examples()->add_examples()->set_id("42");
//   absl::StatusOr<v1::AttendResponse> answer = (*client)->Attend(request);
#ifndef ATTENDANT_CLIENT_API_CLIENT_H_
#define ATTENDANT_CLIENT_API_CLIENT_H_

#include <grpcpp/channel.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attendant/v1/alias_service.grpc.pb.h"
#include "attendant/v1/attention_service.grpc.pb.h"
#include "attendant/v1/catalog_service.grpc.pb.h"
#include "attendant/v1/item_service.grpc.pb.h"
#include "attendant/v1/model_service.grpc.pb.h"
#include "attendant/v1/sequence_service.grpc.pb.h"
#include "attendant/v1/snapshot_service.grpc.pb.h"
#include "client/api/credentials.h"

namespace attendant {

class Importer;
struct ImportOptions;

// Reasons (ReasonOf) of a failed Client::Connect.
// Nothing listens at the address.
inline constexpr absl::string_view kNoServer = "NO_SERVER";
// The listener does not speak gRPC, or requires TLS. Also the reason of a call
// that is answered by an HTTP/2 server without gRPC.
inline constexpr absl::string_view kOtherProtocol = "OTHER_PROTOCOL";
// The listener said nothing before the deadline.
inline constexpr absl::string_view kSilent = "SILENT";
// The server does not trust the client, or the client the server.
inline constexpr absl::string_view kNotTrusted = "NOT_TRUSTED";

// A connection to one server. Thread-safe: calls may run concurrently.
//
// Errors are the server's, with its FieldOf and ReasonOf (core/base/status.h);
// Unavailable if the server can't be reached, and DeadlineExceeded if it does
// not answer in time.
//
// Retries: reads and item writes are retried up to 3 times within the deadline
// if the server is Unavailable or says when to come back. An item write is
// never done twice: it has a request_id, a random one unless the caller gives
// one. Imports and writes of catalogs, aliases, models and snapshots are not
// retried: a repeated delete could not tell its own success from NOT_FOUND.
// service_config.json lists the retried methods, and stops retries while most
// calls fail.
//
// Keepalive: during a call the server is pinged every 30 s. If it does not
// answer within 20 s, its calls end with Unavailable, also those without a
// deadline.
//
// The client has no message size limit of its own (see attendantd
// --max-message-bytes). Once the server has refused a request with items as too
// large, the client refuses requests over the same limit without sending them.
class Client {
 public:
  // The server's default limit.
  static constexpr int kMaxMessageBytes = 16 << 20;
  // The highest limit: protobuf has no larger messages.
  static constexpr std::int64_t kLargestMessageBytes =
      std::numeric_limits<std::int32_t>::max();

  struct Options {
    // HOST:PORT, or another target that gRPC understands.
    std::string server = "127.0.0.1:7600";
    // The deadline of a call that is given none. > 0.
    absl::Duration deadline = absl::Seconds(10);
    // If true, Connect retries until the server answers, for at most
    // `deadline`; if false, it fails when its first attempt fails.
    bool wait_for_ready = false;
    ClientSecurity security = {};
  };
  using Deadline = std::optional<absl::Duration>;

  // Connects. Each client has its own connection. InvalidArgument if the
  // deadline is not > 0, and as MakeChannelCredentials; Unavailable, with one
  // of the reasons above, if the connection can't be made.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(Options options);

  ~Client();

  absl::StatusOr<v1::CreateCatalogResponse> CreateCatalog(
      const v1::CreateCatalogRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::GetCatalogResponse> GetCatalog(
      const v1::GetCatalogRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::ListCatalogsResponse> ListCatalogs(
      const v1::ListCatalogsRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::UpdateCatalogResponse> UpdateCatalog(
      const v1::UpdateCatalogRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::DeleteCatalogResponse> DeleteCatalog(
      const v1::DeleteCatalogRequest& request, Deadline deadline = {});

  absl::StatusOr<v1::SetAliasResponse> SetAlias(
      const v1::SetAliasRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::GetAliasResponse> GetAlias(
      const v1::GetAliasRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::ListAliasesResponse> ListAliases(
      const v1::ListAliasesRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::DeleteAliasResponse> DeleteAlias(
      const v1::DeleteAliasRequest& request, Deadline deadline = {});

  // Receives the progress of long work, in bytes, on the calling thread.
  using OnProgress = std::function<void(const v1::WorkProgress&)>;

  // These calls take seconds to minutes, and have no deadline unless one is
  // given. They return the last response of the stream.
  absl::StatusOr<v1::CreateSnapshotResponse> CreateSnapshot(
      const v1::CreateSnapshotRequest& request, const OnProgress& on_progress,
      Deadline deadline = {});
  absl::StatusOr<v1::VerifySnapshotResponse> VerifySnapshot(
      const v1::VerifySnapshotRequest& request, const OnProgress& on_progress,
      Deadline deadline = {});
  absl::StatusOr<v1::RestoreSnapshotResponse> RestoreSnapshot(
      const v1::RestoreSnapshotRequest& request, const OnProgress& on_progress,
      Deadline deadline = {});
  // Calls `take` with the bytes in order. An error of `take` ends the call and
  // is returned.
  absl::Status ExportSnapshot(
      const v1::ExportSnapshotRequest& request,
      const std::function<absl::Status(const v1::ExportSnapshotResponse&)>&
          take,
      Deadline deadline = {});
  // Calls `next` for each request in order; it returns false after the last. An
  // error of `next` ends the call and is returned.
  absl::StatusOr<v1::ImportSnapshotResponse> ImportSnapshot(
      const std::function<absl::StatusOr<bool>(v1::ImportSnapshotRequest*)>&
          next,
      Deadline deadline = {});

  absl::StatusOr<v1::GetSnapshotResponse> GetSnapshot(
      const v1::GetSnapshotRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::ListSnapshotsResponse> ListSnapshots(
      const v1::ListSnapshotsRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::DeleteSnapshotResponse> DeleteSnapshot(
      const v1::DeleteSnapshotRequest& request, Deadline deadline = {});

  absl::StatusOr<v1::BatchUpsertItemsResponse> BatchUpsertItems(
      v1::BatchUpsertItemsRequest request, Deadline deadline = {});
  absl::StatusOr<v1::BatchGetItemsResponse> BatchGetItems(
      const v1::BatchGetItemsRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::ListItemsResponse> ListItems(
      const v1::ListItemsRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::BatchDeleteItemsResponse> BatchDeleteItems(
      v1::BatchDeleteItemsRequest request, Deadline deadline = {});
  absl::StatusOr<v1::BatchUpdateItemsResponse> BatchUpdateItems(
      v1::BatchUpdateItemsRequest request, Deadline deadline = {});
  absl::StatusOr<v1::DeleteMatchingItemsResponse> DeleteMatchingItems(
      v1::DeleteMatchingItemsRequest request, Deadline deadline = {});

  absl::StatusOr<v1::CreateModelResponse> CreateModel(
      const v1::CreateModelRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::GetModelResponse> GetModel(
      const v1::GetModelRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::ListModelsResponse> ListModels(
      const v1::ListModelsRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::DeleteModelResponse> DeleteModel(
      const v1::DeleteModelRequest& request, Deadline deadline = {});

  absl::StatusOr<v1::AttendResponse> Attend(const v1::AttendRequest& request,
                                            Deadline deadline = {});
  absl::StatusOr<v1::BatchAttendResponse> BatchAttend(
      const v1::BatchAttendRequest& request, Deadline deadline = {});

  // Attends without blocking: gRPC calls `done` once, on one of its threads.
  // `done` must not block for long. The client must outlive the call.
  using AttendDone = std::function<void(absl::StatusOr<v1::AttendResponse>)>;
  void AttendAsync(const v1::AttendRequest& request, AttendDone done,
                   Deadline deadline = {});

  absl::StatusOr<v1::ContextualizeResponse> Contextualize(
      const v1::ContextualizeRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::RankCandidatesResponse> RankCandidates(
      const v1::RankCandidatesRequest& request, Deadline deadline = {});

  // Starts an import into `catalog`; see importer.h. The client must outlive
  // the importer.
  std::unique_ptr<Importer> StartImport(const std::string& catalog,
                                        const ImportOptions& options);

 private:
  Client(Options options, const std::shared_ptr<grpc::Channel>& channel);

  const Options options_;
  const std::unique_ptr<v1::CatalogService::Stub> catalogs_;
  const std::unique_ptr<v1::AliasService::Stub> aliases_;
  const std::unique_ptr<v1::ItemService::Stub> items_;
  const std::unique_ptr<v1::ModelService::Stub> models_;
  const std::unique_ptr<v1::AttentionService::Stub> attention_;
  const std::unique_ptr<v1::SequenceService::Stub> sequences_;
  const std::unique_ptr<v1::SnapshotService::Stub> snapshots_;
  // The server's message size limit, once it has refused a larger message.
  std::atomic<std::int64_t> most_bytes_ =
      std::numeric_limits<std::int64_t>::max();
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_CLIENT_H_

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

// Reasons (ReasonOf) of a failed Client::Connect: nothing listens there; what
// does is no gRPC server, or one with TLS; it said nothing in time; one side
// does not trust the other.
inline constexpr absl::string_view kNoServer = "NO_SERVER";
inline constexpr absl::string_view kOtherProtocol = "OTHER_PROTOCOL";
inline constexpr absl::string_view kSilent = "SILENT";
inline constexpr absl::string_view kNotTrusted = "NOT_TRUSTED";

// Thread-safe: any number of calls may be under way.
//
// Errors are the server's, with FieldOf and ReasonOf of core/base/status.h as
// the server gave them; Unavailable where the server can't be reached and
// DeadlineExceeded where it did not answer in time.
//
// Retries: Unavailable, and a refusal that says when to come back, are retried
// up to 3 times within the deadline, for reads and for item writes. These have
// a request_id, drawn where the caller gives none: none is done twice. Writes
// of catalogs, aliases, models and snapshots and imports are not retried: a
// repeated delete could not tell its own success from NOT_FOUND. Which methods
// retry is written in service_config.json; where most calls fail, none does.
//
// A server that does not answer HTTP/2 pings for 20 s, asked each 30 s of a
// call, is gone: its calls end with Unavailable, those without a deadline too.
//
// Messages are as large as the server takes and sends them (attendantd
// --max-message-bytes). Once it has refused one of items as too large, larger
// ones than it takes are refused here, at once.
class Client {
 public:
  // What a server takes unless it is told otherwise.
  static constexpr int kMaxMessageBytes = 16 << 20;
  // Whatever it is told: protobuf has no larger messages.
  static constexpr std::int64_t kLargestMessageBytes =
      std::numeric_limits<std::int32_t>::max();

  struct Options {
    // HOST:PORT, or any other target that gRPC understands.
    std::string server = "127.0.0.1:7600";
    // Of each call that does not say otherwise. > 0.
    absl::Duration deadline = absl::Seconds(10);
    // True: Connect waits until the server is there, at most `deadline`. False:
    // it fails as soon as a first try did.
    bool wait_for_ready = false;
    ClientSecurity security = {};
  };
  using Deadline = std::optional<absl::Duration>;

  // Connects; each client has a connection of its own. InvalidArgument if
  // the deadline is not > 0, and as MakeChannelCredentials; Unavailable, with
  // one of the reasons above, if the server can't be reached, or either does
  // not trust the other.
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

  // Of long work: done and total bytes, from the thread that called.
  using OnProgress = std::function<void(const v1::WorkProgress&)>;

  // These take seconds to minutes: without `deadline` they have none. The
  // result is the last response of the stream.
  absl::StatusOr<v1::CreateSnapshotResponse> CreateSnapshot(
      const v1::CreateSnapshotRequest& request, const OnProgress& on_progress,
      Deadline deadline = {});
  absl::StatusOr<v1::VerifySnapshotResponse> VerifySnapshot(
      const v1::VerifySnapshotRequest& request, const OnProgress& on_progress,
      Deadline deadline = {});
  absl::StatusOr<v1::RestoreSnapshotResponse> RestoreSnapshot(
      const v1::RestoreSnapshotRequest& request, const OnProgress& on_progress,
      Deadline deadline = {});
  // `take` gets the bytes in their order; an error of it ends the call, which
  // returns it.
  absl::Status ExportSnapshot(
      const v1::ExportSnapshotRequest& request,
      const std::function<absl::Status(const v1::ExportSnapshotResponse&)>&
          take,
      Deadline deadline = {});
  // `next` gives the requests in their order, and false at the end; an error of
  // it ends the call, which returns it.
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

  // Attends without a thread of the caller's: `done` is called once, from one
  // of gRPC's threads, and should be quick. The client must outlive the call.
  using AttendDone = std::function<void(absl::StatusOr<v1::AttendResponse>)>;
  void AttendAsync(const v1::AttendRequest& request, AttendDone done,
                   Deadline deadline = {});

  absl::StatusOr<v1::ContextualizeResponse> Contextualize(
      const v1::ContextualizeRequest& request, Deadline deadline = {});
  absl::StatusOr<v1::RankCandidatesResponse> RankCandidates(
      const v1::RankCandidatesRequest& request, Deadline deadline = {});

  // Starts an import into `catalog`; see importer.h. The client must outlive
  // it.
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
  // In a message, as far as the server has said.
  std::atomic<std::int64_t> most_bytes_ =
      std::numeric_limits<std::int64_t>::max();
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_CLIENT_H_

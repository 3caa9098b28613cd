#include "client/api/client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/api/deadline.h"
#include "client/api/grpc_status.h"
#include "client/api/importer.h"
#include "client/api/listener.h"
#include "client/api/service_config.h"
#include "core/base/status.h"

namespace attendant {
namespace {

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // the server has its own limit
  arguments.SetServiceConfigJSON(kServiceConfigJson);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 1);
  // A call larger than this buffer would not be retried.
  arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE,
                   Client::kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A server at long work may send nothing for minutes. Pings tell it from a
  // server that is gone.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return arguments;
}

// Returns 128 random bits from the system as hexadecimal digits.
std::string DrawRequestId() {
  std::random_device device;
  return absl::StrFormat("%08x%08x%08x%08x", device(), device(), device(),
                         device());
}

// Returns the conditions that a server must meet, to follow "no server answers
// at HOST:PORT".
absl::string_view Conditions(const ClientSecurity& security) {
  if (!security.ca_path.empty()) {
    return " whose certificate these authorities signed for that name and that "
           "accepts ours";
  }
  if (!security.token.empty()) {
    return " on this machine: without TLS a token is sent nowhere else";
  }
  return "";
}

// Returns the error of a failed connection. gRPC does not say why it failed, so
// this checks whether anything listens at the port.
absl::Status NoConnection(const Client::Options& options,
                          absl::string_view what) {
  const bool listens = SomethingListensAt(options.server);
  if (listens && options.security.ca_path.empty()) {
    return StatusWithReason(
        absl::StatusCode::kUnavailable,
        absl::StrCat(
            "something listens at ", options.server,
            ", but does not answer as a gRPC server without TLS",
            options.security.token.empty()
                ? ""
                : ", without which a token is sent to this machine only"),
        kOtherProtocol);
  }
  if (!listens) {
    return StatusWithReason(absl::StatusCode::kUnavailable, what, kNoServer);
  }
  return StatusWithReason(
      absl::StatusCode::kUnavailable,
      absl::StrCat(what,
                   "; what listens there may be without TLS, or its "
                   "certificate have expired"),
      kNotTrusted);
}

absl::Status WaitUntilConnected(grpc::Channel& channel,
                                const Client::Options& options) {
  const auto deadline = DeadlineAfter(options.deadline);
  grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
  while (state != GRPC_CHANNEL_READY) {
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE && !options.wait_for_ready) {
      return NoConnection(options,
                          absl::StrCat("no server answers at ", options.server,
                                       Conditions(options.security)));
    }
    if (!channel.WaitForStateChange(state, deadline)) {
      // An attempt that hangs, rather than fails, met a silent server.
      if (state != GRPC_CHANNEL_TRANSIENT_FAILURE &&
          SomethingListensAt(options.server)) {
        return StatusWithReason(
            absl::StatusCode::kUnavailable,
            absl::StrCat("something listens at ", options.server,
                         ", but said nothing within ",
                         absl::FormatDuration(options.deadline)),
            kSilent);
      }
      return NoConnection(
          options,
          absl::StrCat("no server answered at ", options.server, " within ",
                       absl::FormatDuration(options.deadline)));
    }
    state = channel.GetState(/*try_to_connect=*/true);
  }
  return absl::OkStatus();
}

template <typename Response, typename Stub, typename Request>
absl::StatusOr<Response> Call(Stub& stub,
                              grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                           const Request&,
                                                           Response*),
                              const Request& request, absl::Duration deadline) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(deadline));
  Response response;
  absl::Status status =
      FromGrpcStatus((stub.*method)(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

// Calls with a request of many items. Refuses one over `most_bytes`, the limit
// that the server has told, without sending it: gRPC would try it four times.
template <typename Response, typename Stub, typename Request>
absl::StatusOr<Response> CallWithin(
    std::atomic<std::int64_t>& most_bytes, Stub& stub,
    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                 Response*),
    const Request& request, absl::Duration deadline) {
  const auto bytes = static_cast<std::int64_t>(request.ByteSizeLong());
  if (const std::int64_t most = most_bytes; bytes > most) {
    return MessageTooLarge(bytes, most);
  }
  absl::StatusOr<Response> response = Call(stub, method, request, deadline);
  if (const auto most = MostBytesOf(response.status())) most_bytes = *most;
  return response;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(Options options) {
  if (!(options.deadline > absl::ZeroDuration())) {
    return InvalidField("deadline", absl::FormatDuration(options.deadline),
                        "a time > 0");
  }
  ATTENDANT_ASSIGN_OR_RETURN(const auto credentials,
                             MakeChannelCredentials(options.security));
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(options.server, credentials, Arguments());
  ATTENDANT_RETURN_IF_ERROR(WaitUntilConnected(*channel, options));
  return std::unique_ptr<Client>(new Client(std::move(options), channel));
}

Client::Client(Options options, const std::shared_ptr<grpc::Channel>& channel)
    : options_(std::move(options)),
      catalogs_(v1::CatalogService::NewStub(channel)),
      aliases_(v1::AliasService::NewStub(channel)),
      items_(v1::ItemService::NewStub(channel)),
      models_(v1::ModelService::NewStub(channel)),
      attention_(v1::AttentionService::NewStub(channel)),
      sequences_(v1::SequenceService::NewStub(channel)),
      snapshots_(v1::SnapshotService::NewStub(channel)) {}

Client::~Client() = default;

// Defines a call that sends its request unchanged.
#define ATTENDANT_CLIENT_CALL(stub, Service, Method)           \
  absl::StatusOr<v1::Method##Response> Client::Method(         \
      const v1::Method##Request& request, Deadline deadline) { \
    return Call(*stub, &v1::Service::Stub::Method, request,    \
                deadline.value_or(options_.deadline));         \
  }

ATTENDANT_CLIENT_CALL(catalogs_, CatalogService, CreateCatalog)
ATTENDANT_CLIENT_CALL(catalogs_, CatalogService, GetCatalog)
ATTENDANT_CLIENT_CALL(catalogs_, CatalogService, ListCatalogs)
ATTENDANT_CLIENT_CALL(catalogs_, CatalogService, UpdateCatalog)
ATTENDANT_CLIENT_CALL(catalogs_, CatalogService, DeleteCatalog)
ATTENDANT_CLIENT_CALL(aliases_, AliasService, SetAlias)
ATTENDANT_CLIENT_CALL(aliases_, AliasService, GetAlias)
ATTENDANT_CLIENT_CALL(aliases_, AliasService, ListAliases)
ATTENDANT_CLIENT_CALL(aliases_, AliasService, DeleteAlias)
ATTENDANT_CLIENT_CALL(snapshots_, SnapshotService, GetSnapshot)
ATTENDANT_CLIENT_CALL(snapshots_, SnapshotService, ListSnapshots)
ATTENDANT_CLIENT_CALL(snapshots_, SnapshotService, DeleteSnapshot)
ATTENDANT_CLIENT_CALL(items_, ItemService, BatchGetItems)
ATTENDANT_CLIENT_CALL(items_, ItemService, ListItems)
ATTENDANT_CLIENT_CALL(models_, ModelService, CreateModel)
ATTENDANT_CLIENT_CALL(models_, ModelService, GetModel)
ATTENDANT_CLIENT_CALL(models_, ModelService, ListModels)
ATTENDANT_CLIENT_CALL(models_, ModelService, DeleteModel)
ATTENDANT_CLIENT_CALL(attention_, AttentionService, Attend)
ATTENDANT_CLIENT_CALL(attention_, AttentionService, BatchAttend)
ATTENDANT_CLIENT_CALL(sequences_, SequenceService, Contextualize)
ATTENDANT_CLIENT_CALL(sequences_, SequenceService, RankCandidates)

#undef ATTENDANT_CLIENT_CALL

absl::StatusOr<v1::BatchUpsertItemsResponse> Client::BatchUpsertItems(
    v1::BatchUpsertItemsRequest request, Deadline deadline) {
  if (request.request_id().empty()) request.set_request_id(DrawRequestId());
  return CallWithin(most_bytes_, *items_,
                    &v1::ItemService::Stub::BatchUpsertItems, request,
                    deadline.value_or(options_.deadline));
}

absl::StatusOr<v1::BatchDeleteItemsResponse> Client::BatchDeleteItems(
    v1::BatchDeleteItemsRequest request, Deadline deadline) {
  if (request.request_id().empty()) request.set_request_id(DrawRequestId());
  return CallWithin(most_bytes_, *items_,
                    &v1::ItemService::Stub::BatchDeleteItems, request,
                    deadline.value_or(options_.deadline));
}

absl::StatusOr<v1::BatchUpdateItemsResponse> Client::BatchUpdateItems(
    v1::BatchUpdateItemsRequest request, Deadline deadline) {
  if (request.request_id().empty()) request.set_request_id(DrawRequestId());
  return CallWithin(most_bytes_, *items_,
                    &v1::ItemService::Stub::BatchUpdateItems, request,
                    deadline.value_or(options_.deadline));
}

absl::StatusOr<v1::DeleteMatchingItemsResponse> Client::DeleteMatchingItems(
    v1::DeleteMatchingItemsRequest request, Deadline deadline) {
  if (request.request_id().empty()) request.set_request_id(DrawRequestId());
  return Call(*items_, &v1::ItemService::Stub::DeleteMatchingItems, request,
              deadline.value_or(options_.deadline));
}

void Client::AttendAsync(const v1::AttendRequest& request, AttendDone done,
                         Deadline deadline) {
  struct Pending {
    grpc::ClientContext context;
    v1::AttendRequest request;
    v1::AttendResponse response;
    AttendDone done;
  };
  auto pending = std::make_shared<Pending>();
  pending->context.set_deadline(
      DeadlineAfter(deadline.value_or(options_.deadline)));
  pending->request = request;
  pending->done = std::move(done);
  attention_->async()->Attend(
      &pending->context, &pending->request, &pending->response,
      [pending](const grpc::Status& status) mutable {
        const AttendDone call_done = std::move(pending->done);
        absl::StatusOr<v1::AttendResponse> result =
            std::move(pending->response);
        if (!status.ok()) result = FromGrpcStatus(status);
        // Releases the channel before calling `done`: the caller may then
        // destroy the client, and one of gRPC's threads must not be the last
        // owner of the channel.
        pending.reset();
        call_done(std::move(result));
      });
}

std::unique_ptr<Importer> Client::StartImport(const std::string& catalog,
                                              const ImportOptions& options) {
  return std::unique_ptr<Importer>(
      new Importer(items_.get(), catalog, options));
}

}  // namespace attendant

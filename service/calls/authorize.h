// Whether a call's caller may name the catalogs that its request names, and
// still do what it asks for: that was checked before the call began, when its
// headers came (port_credentials.h), and its message may come hours later.
//
// A scope holds names as requests spell them, those of aliases too: what an
// alias stands for may change between a look at it and its use.
#ifndef ATTENDANT_SERVICE_CALLS_AUTHORIZE_H_
#define ATTENDANT_SERVICE_CALLS_AUTHORIZE_H_

#include <grpcpp/server_context.h>

#include <initializer_list>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/alias_service.pb.h"
#include "attendant/v1/catalog_service.pb.h"
#include "attendant/v1/model_service.pb.h"
#include "attendant/v1/sequence_service.pb.h"
#include "attendant/v1/snapshot_service.pb.h"
#include "core/base/status.h"
#include "service/calls/backend.h"
#include "service/security/access.h"

namespace attendant {

// The header of a call; empty: it has none.
absl::string_view AuthorizationOf(const grpc::ServerContextBase& context);

// OK if the scope holds every name; PermissionDenied with the first that it
// does not hold. Only the scope of all holds an empty name.
absl::Status CheckScope(const CatalogScope& scope,
                        std::initializer_list<absl::string_view> names);

// OK if the scope holds the catalogs and aliases that the request names. One
// function for each way to name them: a new request without one does not
// compile, unless it names others beside `catalog`.
template <typename Request>
requires requires(const Request& request) { request.catalog(); }
absl::Status CheckRequest(const CatalogScope& scope, const Request& request) {
  return CheckScope(scope, {request.catalog()});
}
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::CreateCatalogRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::GetCatalogRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::UpdateCatalogRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::DeleteCatalogRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::SetAliasRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::GetAliasRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::DeleteAliasRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::RestoreSnapshotRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::ContextualizeRequest& request);
// Models belong to no catalog: all may read them, and who may not name every
// catalog can't change them.
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::CreateModelRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::DeleteModelRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::GetModelRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::ListModelsRequest& request);
// Their handlers list what the scope holds.
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::ListSnapshotsRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::ListCatalogsRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::ListAliasesRequest& request);

// Of a caller whose token is none any more; logged.
absl::Status TakenBack(const Backend& backend, const Method& method);

// What the caller of a call may do; all where no tokens are asked for.
// Unauthenticated if its token was taken back since the call began.
absl::StatusOr<std::shared_ptr<const Grant>> GrantOf(
    const Backend& backend, const grpc::CallbackServerContext& context,
    const Method& method);

// The same as was found when the call began: null where no tokens are asked
// for, or the caller has none that is good.
std::shared_ptr<const Grant> FindGrant(const Backend& backend,
                                       const grpc::ServerContextBase& context);

// OK if the grant's role may call the method; PermissionDenied, logged,
// otherwise. Where tokens are asked for.
absl::Status CheckRole(const Backend& backend, const Grant& grant,
                       const Method& method);

// CheckRole and CheckRequest with `grant`, of FindGrant.
template <typename Request>
absl::Status Authorize(const Backend& backend, const Grant* grant,
                       const Method& method, const Request& request) {
  if (backend.authenticator == nullptr) return absl::OkStatus();
  if (grant == nullptr) return TakenBack(backend, method);
  ATTENDANT_RETURN_IF_ERROR(CheckRole(backend, *grant, method));
  return CheckRequest(grant->scope, request);
}
template <typename Request>
absl::Status Authorize(const Backend& backend,
                       const grpc::CallbackServerContext& context,
                       const Method& method, const Request& request) {
  return Authorize(backend, FindGrant(backend, context).get(), method, request);
}

// The same for what a stream that has begun names, when more of it comes: its
// token may have been taken back, or have another role now.
absl::Status AuthorizeStill(const Backend& backend,
                            const grpc::CallbackServerContext& context,
                            const Method& method, absl::string_view catalog);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_AUTHORIZE_H_

// Checks that a caller may name the catalogs in its request, and that its token
// still permits the method: the token was checked when the call's headers came
// (port_credentials.h), but the message may come hours later.
//
// Scopes hold names as requests spell them, including aliases, because the
// target of an alias may change between the check and its use.
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

// Returns the call's authorization header; empty if it has none.
absl::string_view AuthorizationOf(const grpc::ServerContextBase& context);

// OK if the scope holds every name; otherwise PermissionDenied with the first
// name that it does not hold. Only the scope of all catalogs holds an empty
// name.
absl::Status CheckScope(const CatalogScope& scope,
                        std::initializer_list<absl::string_view> names);

// OK if the scope holds the catalogs and aliases that the request names. There
// is one overload for each way to name them, so that a new request type without
// one does not compile, unless it has a field `catalog` (and then overlooks
// other fields with names).
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
// Models belong to no catalog: anyone may read them, and only a scope of all
// catalogs may change them.
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::CreateModelRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::DeleteModelRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::GetModelRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::ListModelsRequest& request);
// The handlers of these list only what the scope holds.
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::ListSnapshotsRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::ListCatalogsRequest& request);
absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::ListAliasesRequest& request);

// Returns the error of a caller whose token is no longer valid, and logs it.
absl::Status TakenBack(const Backend& backend, const Method& method);

// Returns what the caller may do; everything if no tokens are required.
// Unauthenticated if its token was revoked since the call began.
absl::StatusOr<std::shared_ptr<const Grant>> GrantOf(
    const Backend& backend, const grpc::CallbackServerContext& context,
    const Method& method);

// Like GrantOf, but as found when the call began. Null if no tokens are
// required or the caller has no valid one.
std::shared_ptr<const Grant> FindGrant(const Backend& backend,
                                       const grpc::ServerContextBase& context);

// OK if the grant's role may call the method; otherwise PermissionDenied, which
// is logged. Requires that tokens are required.
absl::Status CheckRole(const Backend& backend, const Grant& grant,
                       const Method& method);

// Returns `status`, the result of CheckScope or CheckRequest; counts and logs
// it if it is a refusal.
absl::Status NoteScope(const Backend& backend, const Method& method,
                       absl::Status status);

// CheckRole and CheckRequest for `grant`, a result of FindGrant.
template <typename Request>
absl::Status Authorize(const Backend& backend, const Grant* grant,
                       const Method& method, const Request& request) {
  if (backend.authenticator == nullptr) return absl::OkStatus();
  if (grant == nullptr) return TakenBack(backend, method);
  ATTENDANT_RETURN_IF_ERROR(CheckRole(backend, *grant, method));
  return NoteScope(backend, method, CheckRequest(grant->scope, request));
}
template <typename Request>
absl::Status Authorize(const Backend& backend,
                       const grpc::CallbackServerContext& context,
                       const Method& method, const Request& request) {
  return Authorize(backend, FindGrant(backend, context).get(), method, request);
}

// Like Authorize, for `catalog` as named by a later message of a stream: its
// token may have been revoked, or have another role now.
absl::Status AuthorizeStill(const Backend& backend,
                            const grpc::CallbackServerContext& context,
                            const Method& method, absl::string_view catalog);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_AUTHORIZE_H_

#include "service/calls/authorize.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "service/calls/call.h"
#include "service/calls/methods.h"

namespace attendant {
namespace {

// For requests about what belongs to no catalog.
absl::Status CheckHoldsAll(const CatalogScope& scope) {
  if (scope.HoldsAll()) return absl::OkStatus();
  return StatusWithReason(
      absl::StatusCode::kPermissionDenied,
      absl::StrCat("models belong to no catalog: a token for catalogs ",
                   scope.ToText(), " can't change them"),
      "CATALOG_NOT_ALLOWED");
}

std::string PathOf(const Method& method) {
  return absl::StrCat("/", method.service, "/", method.name);
}

Role RoleOf(const Method& method) {
  static const auto& roles = *[] {
    auto* of_methods = new std::vector<Role>();
    for (const Method& each : AllMethods()) {
      of_methods->push_back(*RoleFor(PathOf(each)));
    }
    return of_methods;
  }();
  return roles[method.index];
}

absl::Status CheckTokens(const CatalogScope& scope,
                         const v1::TokenSequence& sequence) {
  if (!sequence.has_items()) return absl::OkStatus();
  return CheckScope(scope, {sequence.items().catalog()});
}

}  // namespace

absl::string_view AuthorizationOf(const grpc::ServerContextBase& context) {
  return MetadataOf(context, "authorization");
}

absl::Status CheckScope(const CatalogScope& scope,
                        std::initializer_list<absl::string_view> names) {
  if (scope.HoldsAll()) return absl::OkStatus();
  for (const absl::string_view name : names) {
    if (scope.Holds(name)) continue;
    return StatusWithReason(
        absl::StatusCode::kPermissionDenied,
        absl::StrCat("the token is for catalogs ", scope.ToText(), "; got \"",
                     name, "\""),
        "CATALOG_NOT_ALLOWED");
  }
  return absl::OkStatus();
}

absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::CreateCatalogRequest& request) {
  return CheckScope(scope, {request.name()});
}

absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::GetCatalogRequest& request) {
  return CheckScope(scope, {request.name()});
}

absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::UpdateCatalogRequest& request) {
  return CheckScope(scope, {request.name()});
}

absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::DeleteCatalogRequest& request) {
  return CheckScope(scope, {request.name()});
}

absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::SetAliasRequest& request) {
  return CheckScope(scope, {request.alias(), request.catalog()});
}

absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::GetAliasRequest& request) {
  return CheckScope(scope, {request.alias()});
}

absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::DeleteAliasRequest& request) {
  return CheckScope(scope, {request.alias()});
}

absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::RestoreSnapshotRequest& request) {
  return CheckScope(scope, {request.catalog(), request.new_catalog()});
}

absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::ContextualizeRequest& request) {
  ATTENDANT_RETURN_IF_ERROR(CheckTokens(scope, request.sequence()));
  return CheckTokens(scope, request.memory());
}

absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::CreateModelRequest& /*request*/) {
  return CheckHoldsAll(scope);
}

absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::DeleteModelRequest& /*request*/) {
  return CheckHoldsAll(scope);
}

absl::Status CheckRequest(const CatalogScope& /*scope*/,
                          const v1::GetModelRequest& /*request*/) {
  return absl::OkStatus();
}

absl::Status CheckRequest(const CatalogScope& /*scope*/,
                          const v1::ListModelsRequest& /*request*/) {
  return absl::OkStatus();
}

absl::Status CheckRequest(const CatalogScope& scope,
                          const v1::ListSnapshotsRequest& request) {
  if (request.catalog().empty()) return absl::OkStatus();
  return CheckScope(scope, {request.catalog()});
}

absl::Status CheckRequest(const CatalogScope& /*scope*/,
                          const v1::ListCatalogsRequest& /*request*/) {
  return absl::OkStatus();
}

absl::Status CheckRequest(const CatalogScope& /*scope*/,
                          const v1::ListAliasesRequest& /*request*/) {
  return absl::OkStatus();
}

absl::Status TakenBack(const Backend& backend, const Method& method) {
  backend.authenticator->CountRefusal(AuthRefusal::kUnknownToken);
  const absl::Status status =
      StatusWithReason(absl::StatusCode::kUnauthenticated,
                       "the token was revoked", "TOKEN_UNKNOWN");
  backend.refusal_log->Note(PathOf(method), status);
  return status;
}

absl::Status CheckRole(const Backend& backend, const Grant& grant,
                       const Method& method) {
  const absl::Status status =
      backend.authenticator->CheckRole(RoleOf(method), grant);
  if (!status.ok()) backend.refusal_log->Note(PathOf(method), status);
  return status;
}

absl::Status NoteScope(const Backend& backend, const Method& method,
                       absl::Status status) {
  if (!status.ok()) {
    backend.authenticator->CountRefusal(AuthRefusal::kCatalogNotAllowed);
    backend.refusal_log->Note(PathOf(method), status);
  }
  return status;
}

absl::StatusOr<std::shared_ptr<const Grant>> GrantOf(
    const Backend& backend, const grpc::CallbackServerContext& context,
    const Method& method) {
  if (backend.authenticator == nullptr) {
    static const auto& everything = *new std::shared_ptr<const Grant>(
        std::make_shared<Grant>(Grant{.name = "", .role = Role::kAdmin}));
    return everything;
  }
  std::shared_ptr<const Grant> grant = FindGrant(backend, context);
  if (grant != nullptr) return grant;
  return TakenBack(backend, method);
}

std::shared_ptr<const Grant> FindGrant(const Backend& backend,
                                       const grpc::ServerContextBase& context) {
  if (backend.authenticator == nullptr) return nullptr;
  return backend.authenticator->GrantOf(AuthorizationOf(context));
}

absl::Status AuthorizeStill(const Backend& backend,
                            const grpc::CallbackServerContext& context,
                            const Method& method, absl::string_view catalog) {
  if (backend.authenticator == nullptr) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<const Grant> grant,
                             GrantOf(backend, context, method));
  ATTENDANT_RETURN_IF_ERROR(CheckRole(backend, *grant, method));
  return NoteScope(backend, method, CheckScope(grant->scope, {catalog}));
}

}  // namespace attendant

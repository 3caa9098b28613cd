#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "service/calls/authorize.h"
#include "service/calls/methods.h"
#include "service/calls/page.h"
#include "service/convert/tokens.h"
#include "service/handlers/handlers.h"

namespace attendant {
namespace {

void AliasToProto(const Alias& alias, v1::Alias* wire) {
  wire->set_name(alias.name);
  wire->set_catalog(alias.catalog);
}

}  // namespace

absl::Status SetAlias(Backend& backend, const CatalogScope& scope,
                      const v1::SetAliasRequest& request,
                      const Interrupt& /*interrupt*/,
                      v1::SetAliasResponse* response) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckGiven(request.catalog(), "catalog", "the name of a catalog"));
  // A scope with only the alias must not suffice: its holder could keep access
  // to the catalog by giving it another alias.
  const std::string catalog = backend.catalogs->Resolve(request.catalog());
  ATTENDANT_RETURN_IF_ERROR(
      NoteScope(backend, FindMethod("SetAlias"), CheckScope(scope, {catalog})));
  std::optional<std::string> expected;
  if (request.has_expected_catalog()) {
    expected = request.expected_catalog();
    // Empty: the alias is expected to be new.
    if (!expected->empty()) {
      ATTENDANT_RETURN_IF_ERROR(
          ValidateCatalogName(*expected, "expected_catalog"));
    }
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      CatalogSet::AliasMove move,
      backend.catalogs->SetAlias(request.alias(), catalog, expected));
  AliasToProto(move.alias, response->mutable_alias());
  response->set_previous_catalog(std::move(move.previous));
  return absl::OkStatus();
}

absl::Status GetAlias(Backend& backend, const v1::GetAliasRequest& request,
                      const Interrupt& /*interrupt*/,
                      v1::GetAliasResponse* response) {
  ATTENDANT_RETURN_IF_ERROR(CheckGiven(request.alias(), "alias", "an alias"));
  ATTENDANT_ASSIGN_OR_RETURN(const Alias alias,
                             backend.catalogs->GetAlias(request.alias()));
  AliasToProto(alias, response->mutable_alias());
  return absl::OkStatus();
}

absl::Status ListAliases(Backend& backend, const CatalogScope& scope,
                         const v1::ListAliasesRequest& request,
                         const Interrupt& /*interrupt*/,
                         v1::ListAliasesResponse* response) {
  constexpr absl::string_view kListing = "aliases";
  ATTENDANT_ASSIGN_OR_RETURN(const int page_size,
                             PageSize(request.page_size()));
  ATTENDANT_ASSIGN_OR_RETURN(const std::string after,
                             ParsePageToken(request.page_token(), kListing));
  // One more alias in scope than fits means that there is a next page.
  PageRoom room(page_size, backend.max_message_bytes, *response);
  std::string last;
  for (const Alias& alias : backend.catalogs->ListAliases(after, kMaxAliases)) {
    if (!scope.Holds(alias.name)) continue;
    v1::Alias* wire = response->add_aliases();
    AliasToProto(alias, wire);
    if (!room.Takes(*wire)) {
      response->mutable_aliases()->RemoveLast();
      response->set_next_page_token(PageToken(kListing, last));
      break;
    }
    last = alias.name;
  }
  return absl::OkStatus();
}

absl::Status DeleteAlias(Backend& backend,
                         const v1::DeleteAliasRequest& request,
                         const Interrupt& /*interrupt*/,
                         v1::DeleteAliasResponse* /*response*/) {
  ATTENDANT_RETURN_IF_ERROR(CheckGiven(request.alias(), "alias", "an alias"));
  return backend.catalogs->DeleteAlias(request.alias());
}

}  // namespace attendant

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/base/status_details.h"
#include "service/calls/page.h"
#include "service/calls/read_after_write.h"
#include "service/convert/schema.h"
#include "service/convert/tokens.h"
#include "service/handlers/handlers.h"

namespace attendant {
namespace {

// Returns the text encoders of a new catalog, or the first error of the schema
// or the encoders.
absl::StatusOr<std::vector<CatalogSet::FieldEncoder>> EncodersOfNew(
    const RequestLimits& limits, const v1::CreateCatalogRequest& request,
    const CatalogSchema& schema) {
  ATTENDANT_RETURN_IF_ERROR(CheckNewSchema(limits, request.schema()));
  // Checked first, so that encoders are compared with the dimensions of a valid
  // schema.
  ATTENDANT_RETURN_IF_ERROR(ValidateSchema(schema));
  return EncodersFromProto(request.text_encoders(), schema);
}

// Returns the first `count` catalogs in scope after `after`.
std::vector<std::shared_ptr<LiveCatalog>> CatalogsInScope(
    const CatalogSet& catalogs, const CatalogScope& scope,
    absl::string_view after, std::size_t count) {
  std::vector<std::shared_ptr<LiveCatalog>> found =
      catalogs.List(after, kMaxCatalogs);
  if (!scope.HoldsAll()) {
    std::erase_if(found, [&](const auto& catalog) {
      return !scope.Holds(catalog->name());
    });
  }
  if (found.size() > count) found.resize(count);
  return found;
}

// Rewrites an error in a key field of the schema to name the field as the
// request does.
absl::Status NameAsAsked(absl::Status error,
                         const std::vector<KeyFieldSchema>& key_fields,
                         const v1::UpdateCatalogRequest& request) {
  for (int i = 0; i < request.key_fields_size(); ++i) {
    for (std::size_t f = 0; f < key_fields.size(); ++f) {
      if (key_fields[f].name != request.key_fields(i).name()) continue;
      error = ReplacePrefix(error, absl::StrCat("schema.key_fields[", f, "]."),
                            absl::StrCat("key_fields[", i, "]."));
    }
  }
  return error;
}

}  // namespace

absl::Status CreateCatalog(Backend& backend,
                           const v1::CreateCatalogRequest& request,
                           const Interrupt& /*interrupt*/,
                           v1::CreateCatalogResponse* response) {
  ATTENDANT_RETURN_IF_ERROR(ValidateCatalogName(request.name()));
  ATTENDANT_ASSIGN_OR_RETURN(const CatalogSchema schema,
                             SchemaFromProto(request.schema()));
  auto encoders = EncodersOfNew(backend.limits, request, schema);
  // An existing catalog is returned as it is, even if the encoders are invalid.
  ATTENDANT_ASSIGN_OR_RETURN(
      const CatalogSet::Created created,
      backend.catalogs->Create(request.name(), schema,
                               [&] { return std::move(encoders); }));
  CatalogToProto(*created.catalog, response->mutable_catalog());
  response->set_created(created.created);
  return absl::OkStatus();
}

absl::Status GetCatalog(Backend& backend, const v1::GetCatalogRequest& request,
                        const Interrupt& interrupt,
                        v1::GetCatalogResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto catalog,
                             FindCatalogShowing(backend, request.name(), "name",
                                                request.state_token()));
  CatalogToProto(*catalog, response->mutable_catalog());
  ServerMemoryToProto(backend.catalogs->memory_use(),
                      response->mutable_server_memory());
  for (std::string& warning : backend.attention_warnings.Of(
           *catalog->snapshot(), interrupt, SteadyNow())) {
    response->mutable_catalog()->add_warnings(std::move(warning));
  }
  return interrupt.Check();
}

absl::Status ListCatalogs(Backend& backend, const CatalogScope& scope,
                          const v1::ListCatalogsRequest& request,
                          const Interrupt& interrupt,
                          v1::ListCatalogsResponse* response) {
  constexpr absl::string_view kListing = "catalogs";
  ATTENDANT_ASSIGN_OR_RETURN(const int page_size,
                             PageSize(request.page_size()));
  ATTENDANT_ASSIGN_OR_RETURN(const std::string after,
                             ParsePageToken(request.page_token(), kListing));
  // The first page also lists catalogs that can't be served, with the reason.
  if (request.page_token().empty()) {
    for (const auto& [name, status] : backend.catalogs->damages()) {
      if (!scope.Holds(name)) continue;
      v1::Catalog* damaged = response->add_damaged_catalogs();
      damaged->set_name(name);
      damaged->add_warnings(std::string(status.message()));
    }
  }
  // Fetching one more than requested shows whether this is the last page.
  const auto catalogs =
      CatalogsInScope(*backend.catalogs, scope, after, page_size + 1);
  PageRoom room(page_size, backend.max_message_bytes, *response);
  std::string last;
  for (const auto& catalog : catalogs) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    v1::Catalog* wire = response->add_catalogs();
    CatalogToProto(*catalog, wire);
    if (!room.Takes(*wire)) {
      response->mutable_catalogs()->RemoveLast();
      response->set_next_page_token(PageToken(kListing, last));
      break;
    }
    last = wire->name();
  }
  return absl::OkStatus();
}

absl::Status UpdateCatalog(Backend& backend,
                           const v1::UpdateCatalogRequest& request,
                           const Interrupt& /*interrupt*/,
                           v1::UpdateCatalogResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto catalog,
                             FindCatalog(backend, request.name(), "name"));
  // Wait without the lock, or updates of other catalogs would wait as well. A
  // write that begins in between is waited for under the lock.
  catalog->AwaitWrite();
  // Slow work is also done without the lock; fields and their dimensions never
  // change.
  ATTENDANT_ASSIGN_OR_RETURN(
      auto encoders,
      EncodersFromProto(request.text_encoders(), *catalog->snapshot()->schema));
  MutexLock lock(&backend.update_mutex);
  ATTENDANT_ASSIGN_OR_RETURN(
      const CatalogSchema schema,
      UpdatedSchema(request, *catalog->snapshot()->schema));
  // Uses the catalog's own name: an alias may have moved.
  const absl::Status updated = backend.catalogs->Update(
      catalog->name(), schema, std::move(encoders), catalog->uid());
  if (!updated.ok()) return NameAsAsked(updated, schema.key_fields, request);
  CatalogToProto(*catalog, response->mutable_catalog());
  return absl::OkStatus();
}

absl::Status DeleteCatalog(Backend& backend, const CatalogScope& scope,
                           const v1::DeleteCatalogRequest& request,
                           const Interrupt& /*interrupt*/,
                           v1::DeleteCatalogResponse* /*response*/) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckGiven(request.name(), "name", "the name of a catalog"));
  const absl::Status status = backend.catalogs->Delete(request.name());
  if (scope.HoldsAll() || ReasonOf(status) != kCatalogHasAlias) return status;
  return WithDetails(
      StatusWithReason(
          absl::StatusCode::kFailedPrecondition,
          absl::StrCat("catalog '", request.name(),
                       "' has an alias; move it to another catalog, or delete "
                       "it, first"),
          kCatalogHasAlias),
      {{"catalog", request.name()}});
}

}  // namespace attendant

#include "service/handlers/snapshot_handlers.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "service/calls/page.h"
#include "service/convert/schema.h"
#include "service/convert/time.h"
#include "service/convert/tokens.h"

namespace attendant {
namespace {

bool IsStored(const Backend& backend, const SnapshotId& id) {
  return !absl::IsNotFound(backend.catalogs->snapshots().CheckExists(id));
}

absl::StatusOr<SnapshotId> IdFromWire(const Backend& backend,
                                      absl::string_view catalog,
                                      absl::string_view name) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckGiven(catalog, "catalog", "the name of a catalog"));
  ATTENDANT_RETURN_IF_ERROR(CheckGiven(name, "name", "the name of a snapshot"));
  SnapshotId id{backend.catalogs->Resolve(catalog), std::string(name)};
  // The name may be an alias now and have been the catalog's name when the
  // snapshot was stored.
  SnapshotId as_named{std::string(catalog), id.name};
  if (id.catalog != as_named.catalog && !IsStored(backend, id) &&
      IsStored(backend, as_named)) {
    return as_named;
  }
  return id;
}

// Converts a snapshot to the text of a page token and back.
std::string AfterText(const SnapshotManifest& manifest) {
  return absl::StrCat(manifest.catalog, "/", manifest.name);
}

SnapshotId IdOfText(absl::string_view text) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(text, absl::MaxSplits('/', 1));
  return {parts.first, parts.second};
}

}  // namespace

void SnapshotToProto(const SnapshotManifest& manifest,
                     v1::StoredSnapshot* wire) {
  wire->set_catalog(manifest.catalog);
  wire->set_name(manifest.name);
  wire->set_catalog_uid(manifest.catalog_uid);
  TimeToProto(manifest.create_time, wire->mutable_create_time());
  wire->set_sequence(manifest.sequence);
  wire->set_item_count(manifest.item_count);
  wire->set_size_bytes(manifest.byte_count());
  wire->set_file_count(static_cast<std::int32_t>(manifest.parts.size()));
}

absl::StatusOr<std::unique_ptr<SnapshotFiles::Lease>> OpenSnapshot(
    Backend& backend, absl::string_view catalog, absl::string_view name) {
  ATTENDANT_ASSIGN_OR_RETURN(const SnapshotId id,
                             IdFromWire(backend, catalog, name));
  return backend.catalogs->snapshots().Open(id);
}

absl::Status CreateSnapshot(Backend& backend, const CatalogScope& /*scope*/,
                            const v1::CreateSnapshotRequest& request,
                            LongWork& work,
                            v1::CreateSnapshotResponse* response) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckGiven(request.catalog(), "catalog", "the name of a catalog"));
  ATTENDANT_ASSIGN_OR_RETURN(const SnapshotManifest manifest,
                             backend.catalogs->CreateSnapshot(
                                 request.catalog(), request.name(), work));
  SnapshotToProto(manifest, response->mutable_snapshot());
  return absl::OkStatus();
}

absl::Status GetSnapshot(Backend& backend,
                         const v1::GetSnapshotRequest& request,
                         const Interrupt& /*interrupt*/,
                         v1::GetSnapshotResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const SnapshotId id,
      IdFromWire(backend, request.catalog(), request.name()));
  // Read without a lease, which would block a concurrent deletion.
  ATTENDANT_ASSIGN_OR_RETURN(const SnapshotManifest manifest,
                             backend.catalogs->snapshots().Get(id));
  SnapshotToProto(manifest, response->mutable_snapshot());
  return absl::OkStatus();
}

absl::Status ListSnapshots(Backend& backend, const CatalogScope& scope,
                           const v1::ListSnapshotsRequest& request,
                           const Interrupt& interrupt,
                           v1::ListSnapshotsResponse* response) {
  const std::string catalog = backend.catalogs->Resolve(request.catalog());
  // If a catalog is requested, by any name, all of its snapshots are in scope;
  // so are those of a catalog that had the name before it became an alias.
  SnapshotPage page;
  page.holds = [&](absl::string_view name) {
    if (catalog.empty()) return scope.Holds(name);
    return name == catalog || name == request.catalog();
  };
  const std::string listing = absl::StrCat("snapshots ", catalog);
  ATTENDANT_ASSIGN_OR_RETURN(const int page_size,
                             PageSize(request.page_size()));
  ATTENDANT_ASSIGN_OR_RETURN(const std::string after,
                             ParsePageToken(request.page_token(), listing));
  if (!request.page_token().empty()) page.after = IdOfText(after);
  // Fetching one more than requested shows whether there is a next page.
  page.limit = static_cast<std::size_t>(page_size) + 1;
  const bool by_alias = catalog != request.catalog();
  ATTENDANT_ASSIGN_OR_RETURN(
      const SnapshotList list,
      backend.catalogs->snapshots().List(by_alias ? std::string() : catalog,
                                         page, interrupt));
  if (!page.after) {
    for (const auto& [id, status] : list.damages) {
      v1::DamagedSnapshot* damaged = response->add_damaged_snapshots();
      damaged->set_catalog(id.catalog);
      damaged->set_name(id.name);
      damaged->set_message(std::string(status.message()));
    }
  }
  PageRoom room(page_size, backend.max_message_bytes, *response);
  const SnapshotManifest* last = nullptr;
  for (const SnapshotManifest& manifest : list.manifests) {
    v1::StoredSnapshot* wire = response->add_snapshots();
    SnapshotToProto(manifest, wire);
    if (!room.Takes(*wire)) {
      response->mutable_snapshots()->RemoveLast();
      response->set_next_page_token(PageToken(listing, AfterText(*last)));
      break;
    }
    last = &manifest;
  }
  return absl::OkStatus();
}

absl::Status VerifySnapshot(Backend& backend, const CatalogScope& /*scope*/,
                            const v1::VerifySnapshotRequest& request,
                            LongWork& work,
                            v1::VerifySnapshotResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto lease,
      OpenSnapshot(backend, request.catalog(), request.name()));
  ATTENDANT_RETURN_IF_ERROR(
      backend.catalogs->snapshots().Verify(*lease, work).status());
  SnapshotToProto(lease->manifest(), response->mutable_snapshot());
  return absl::OkStatus();
}

absl::Status RestoreSnapshot(Backend& backend, const CatalogScope& scope,
                             const v1::RestoreSnapshotRequest& request,
                             LongWork& work,
                             v1::RestoreSnapshotResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const SnapshotId id,
      IdFromWire(backend, request.catalog(), request.name()));
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog,
      backend.catalogs->RestoreSnapshot(
          id, request.new_catalog(), work,
          scope.HoldsAll() ? CatalogSet::MissingModels::kCreate
                           : CatalogSet::MissingModels::kRefuse));
  CatalogToProto(*catalog, response->mutable_catalog());
  return absl::OkStatus();
}

absl::Status DeleteSnapshot(Backend& backend,
                            const v1::DeleteSnapshotRequest& request,
                            const Interrupt& /*interrupt*/,
                            v1::DeleteSnapshotResponse* /*response*/) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const SnapshotId id,
      IdFromWire(backend, request.catalog(), request.name()));
  // Refused because a retry by a client that did not receive the first reply
  // would delete the other snapshot.
  if (id.catalog != request.catalog() &&
      IsStored(backend, {request.catalog(), id.name})) {
    return StatusWithReason(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat("'", id.name, "' is a snapshot of '", id.catalog,
                     "', the catalog of alias '", request.catalog(),
                     "', and also of a catalog that had this name before: to "
                     "delete the former, name catalog '",
                     id.catalog, "'"),
        "SNAPSHOT_AMBIGUOUS");
  }
  return backend.catalogs->snapshots().Remove(id);
}

}  // namespace attendant

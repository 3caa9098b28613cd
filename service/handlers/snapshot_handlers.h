// One function for each method of the snapshot service that does not stream
// bytes; see handlers.h and long_call.h.
#ifndef ATTENDANT_SERVICE_HANDLERS_SNAPSHOT_HANDLERS_H_
#define ATTENDANT_SERVICE_HANDLERS_SNAPSHOT_HANDLERS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/snapshot_service.pb.h"
#include "core/base/interrupt.h"
#include "core/base/long_work.h"
#include "core/storage/snapshots/snapshot_files.h"
#include "service/calls/backend.h"
#include "service/security/access.h"

namespace attendant {

void SnapshotToProto(const SnapshotManifest& manifest,
                     v1::StoredSnapshot* wire);

// Opens the snapshot `name` of a catalog or alias. InvalidArgument naming
// "catalog" or "name" if it is empty; otherwise errors of SnapshotFiles::Open.
absl::StatusOr<std::unique_ptr<SnapshotFiles::Lease>> OpenSnapshot(
    Backend& backend, absl::string_view catalog, absl::string_view name);

absl::Status CreateSnapshot(Backend& backend, const CatalogScope& scope,
                            const v1::CreateSnapshotRequest& request,
                            LongWork& work,
                            v1::CreateSnapshotResponse* response);
absl::Status GetSnapshot(Backend& backend,
                         const v1::GetSnapshotRequest& request,
                         const Interrupt& interrupt,
                         v1::GetSnapshotResponse* response);
// Lists the snapshots of all catalogs in `scope` if the request names none.
absl::Status ListSnapshots(Backend& backend, const CatalogScope& scope,
                           const v1::ListSnapshotsRequest& request,
                           const Interrupt& interrupt,
                           v1::ListSnapshotsResponse* response);
absl::Status VerifySnapshot(Backend& backend, const CatalogScope& scope,
                            const v1::VerifySnapshotRequest& request,
                            LongWork& work,
                            v1::VerifySnapshotResponse* response);
// Creates a missing model only if `scope` holds all catalogs.
absl::Status RestoreSnapshot(Backend& backend, const CatalogScope& scope,
                             const v1::RestoreSnapshotRequest& request,
                             LongWork& work,
                             v1::RestoreSnapshotResponse* response);
absl::Status DeleteSnapshot(Backend& backend,
                            const v1::DeleteSnapshotRequest& request,
                            const Interrupt& interrupt,
                            v1::DeleteSnapshotResponse* response);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HANDLERS_SNAPSHOT_HANDLERS_H_

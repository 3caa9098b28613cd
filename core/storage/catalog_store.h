// A CatalogStore over one Database.
#ifndef ATTENDANT_CORE_STORAGE_CATALOG_STORE_H_
#define ATTENDANT_CORE_STORAGE_CATALOG_STORE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/storage/database.h"
#include "core/storage/store.h"

namespace attendant {

// Requests of a catalog whose outcomes are remembered.
inline constexpr std::int64_t kRememberedRequestCount = 100000;

// Remembers the last `remembered_request_count` requests, which must not shrink
// between runs. A new database is marked with the record's uid, synced;
// DataLoss if one that is not empty has another mark or none: it is not this
// catalog's. `files` outlives the store.
absl::StatusOr<std::unique_ptr<CatalogStore>> MakeCatalogStore(
    std::unique_ptr<Database> database, const CatalogRecord& record,
    std::int64_t remembered_request_count, ScratchFiles* files);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_CATALOG_STORE_H_

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
// between runs.
absl::StatusOr<std::unique_ptr<CatalogStore>> MakeCatalogStore(
    std::unique_ptr<Database> database, const CatalogSchema& schema,
    std::int64_t remembered_request_count);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_CATALOG_STORE_H_

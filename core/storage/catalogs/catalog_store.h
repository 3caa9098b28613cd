// A CatalogStore over one Database.
#ifndef ATTENDANT_CORE_STORAGE_CATALOGS_CATALOG_STORE_H_
#define ATTENDANT_CORE_STORAGE_CATALOGS_CATALOG_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/interrupt.h"
#include "core/storage/files/segment_directory.h"
#include "core/storage/records/store.h"
#include "core/storage/rocks/database.h"

namespace attendant {

// The number of requests per catalog whose outcomes are remembered.
inline constexpr std::int64_t kRememberedRequestCount = 100000;

// Remembers the last `remembered_request_count` requests; this number must not
// shrink between runs. A new database is marked with the record's uid, synced.
// DataLoss if a database that is not empty has another mark or none, as it
// isn't this catalog's. `list`, the database with the record, and `files` must
// outlive the store.
absl::StatusOr<std::unique_ptr<CatalogStore>> MakeCatalogStore(
    std::unique_ptr<Database> database, Database* list,
    const CatalogRecord& record, std::int64_t remembered_request_count,
    ScratchFiles* files, SegmentDirectory segments);

// What a catalog's database holds.
struct CatalogContents {
  std::string uid;  // the catalog's
  std::int64_t sequence = 0;
  std::int64_t item_count = 0;
};

// Reads all of the database of a catalog that nobody has open, without writing
// anything. DataLoss if something in it is damaged, or an item does not fit the
// schema; Cancelled and DeadlineExceeded from `interrupt`.
absl::StatusOr<CatalogContents> ReadCatalogContents(
    const std::string& directory, const CatalogSchema& schema,
    const DatabaseResources& resources, Blocks verified,
    const Interrupt& interrupt);

// Turns the database of another catalog into that of `record`; synced. Forgets
// the active models, as their names may mean other models in its new place;
// everything else in it stays.
absl::Status AdoptDatabase(Database& database, const CatalogRecord& record);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_CATALOGS_CATALOG_STORE_H_

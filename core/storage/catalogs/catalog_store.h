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

// Requests of a catalog whose outcomes are remembered.
inline constexpr std::int64_t kRememberedRequestCount = 100000;

// Remembers the last `remembered_request_count` requests, which must not shrink
// between runs. A new database is marked with the record's uid, synced;
// DataLoss if one that is not empty has another mark or none: it is not this
// catalog's. `list`, the database with the record, and `files` outlive the
// store.
absl::StatusOr<std::unique_ptr<CatalogStore>> MakeCatalogStore(
    std::unique_ptr<Database> database, Database* list,
    const CatalogRecord& record, std::int64_t remembered_request_count,
    ScratchFiles* files, SegmentDirectory segments);

// What the database of a catalog holds.
struct CatalogContents {
  std::string uid;  // of the catalog
  std::int64_t sequence = 0;
  std::int64_t item_count = 0;
};

// Reads the database of a catalog that nobody has open, all of it, without
// writing anything. DataLoss if something in it is damaged, or an item does not
// fit the schema; Cancelled or DeadlineExceeded as `interrupt` says.
absl::StatusOr<CatalogContents> ReadCatalogContents(
    const std::string& directory, const CatalogSchema& schema,
    const DatabaseResources& resources, Blocks verified,
    const Interrupt& interrupt);

// Makes the database of another catalog that of the record; synced. The active
// models, whose names may be another's where it goes, are forgotten; everything
// else in it stays.
absl::Status AdoptDatabase(Database& database, const CatalogRecord& record);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_CATALOGS_CATALOG_STORE_H_

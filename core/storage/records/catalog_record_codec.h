// A catalog's entry in the list of catalogs, as JSON text with a version.
#ifndef ATTENDANT_CORE_STORAGE_RECORDS_CATALOG_RECORD_CODEC_H_
#define ATTENDANT_CORE_STORAGE_RECORDS_CATALOG_RECORD_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/storage/records/store.h"

namespace attendant {

// The record's name, schema and uid must be valid.
std::string EncodeCatalogRecord(const CatalogRecord& record);

// Decodes what EncodeCatalogRecord returned. DataLoss, naming the catalog, if
// `text` is anything else.
absl::StatusOr<CatalogRecord> DecodeCatalogRecord(absl::string_view name,
                                                  absl::string_view text);

// True if `uid` is 16 lower-case hex digits.
bool IsCatalogUid(absl::string_view uid);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_RECORDS_CATALOG_RECORD_CODEC_H_

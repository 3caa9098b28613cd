// Encodes an alias for its entry in the metadata database.
#ifndef ATTENDANT_CORE_STORAGE_RECORDS_ALIAS_CODEC_H_
#define ATTENDANT_CORE_STORAGE_RECORDS_ALIAS_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Returns the entry of `alias`: the catalog that it names, and a checksum of
// both. Both must be valid names (ValidateCatalogName).
std::string EncodeAlias(absl::string_view alias, absl::string_view catalog);

// Returns the catalog's name. DataLoss, naming the alias, if the bytes are not
// what EncodeAlias makes for it.
absl::StatusOr<std::string> DecodeAlias(absl::string_view alias,
                                        absl::string_view bytes);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_RECORDS_ALIAS_CODEC_H_

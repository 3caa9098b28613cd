// Items as the bytes that the store keeps: little-endian, versioned by their
// first byte, keys and values as raw floats.
#ifndef ATTENDANT_CORE_STORAGE_RECORDS_ITEM_CODEC_H_
#define ATTENDANT_CORE_STORAGE_RECORDS_ITEM_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/byte_reader.h"
#include "core/storage/records/item.h"

namespace attendant {

// All of the item but its id. The same in every version: requests that are
// repeated are known by it. The item fits the schema.
std::string EncodeItem(const Item& item);

// What is stored under the item's id: EncodeItem's bytes, and the number of the
// write, > 0.
std::string EncodeStoredItem(const Item& item, std::int64_t sequence);

// The inverse of either. DataLoss, saying where, if the bytes are not what they
// write for this schema; never reads outside `bytes`, never allocates more than
// they hold.
absl::StatusOr<StoredItem> DecodeItem(absl::string_view id,
                                      absl::string_view bytes,
                                      const CatalogSchema& schema);

// The attributes alone, at the end of `bytes`.
void AppendAttributes(const Attributes& attributes, std::string& bytes);
// What AppendAttributes wrote; false if it is not that, or positions or types
// are not the schema's. Does not say whether the values are in range.
bool ReadAttributes(const CatalogSchema& schema, ByteReader& reader,
                    Attributes& attributes);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_RECORDS_ITEM_CODEC_H_

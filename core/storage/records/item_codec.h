// Encodes items for the store: little-endian, versioned by the first byte, keys
// and values as raw floats.
#ifndef ATTENDANT_CORE_STORAGE_RECORDS_ITEM_CODEC_H_
#define ATTENDANT_CORE_STORAGE_RECORDS_ITEM_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/byte_reader.h"
#include "core/storage/records/item.h"

namespace attendant {

// Encodes all of the item but its id. The bytes are the same in every version,
// because repeated requests are recognised by them. The item must fit the
// schema.
std::string EncodeItem(const Item& item);

// Returns the bytes stored under the item's id: EncodeItem's bytes and the
// sequence of the write, > 0.
std::string EncodeStoredItem(const Item& item, std::int64_t sequence);

// Decodes the bytes of either. DataLoss, saying where, if the bytes are not
// what these functions write for this schema. Never reads outside `bytes` and
// never allocates more than they hold.
absl::StatusOr<StoredItem> DecodeItem(absl::string_view id,
                                      absl::string_view bytes,
                                      const CatalogSchema& schema);

// Appends the attributes alone to `bytes`.
void AppendAttributes(const Attributes& attributes, std::string& bytes);
// Reads what AppendAttributes wrote. Returns false if the bytes are anything
// else, or positions or types don't match the schema. Does not check that
// values are in range.
bool ReadAttributes(const CatalogSchema& schema, ByteReader& reader,
                    Attributes& attributes);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_RECORDS_ITEM_CODEC_H_

// Items as the bytes that the store keeps: little-endian, versioned by their
// first byte, keys and values as raw floats.
#ifndef ATTENDANT_CORE_STORAGE_ITEM_CODEC_H_
#define ATTENDANT_CORE_STORAGE_ITEM_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/storage/item.h"

namespace attendant {

// All of the item but its id, which is the store's key. The item fits the
// schema.
std::string EncodeItem(const Item& item);

// The inverse. DataLoss, saying where, if the bytes are not what EncodeItem
// writes for this schema; never reads outside `bytes`, never allocates more
// than they hold.
absl::StatusOr<Item> DecodeItem(absl::string_view id, absl::string_view bytes,
                                const CatalogSchema& schema);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ITEM_CODEC_H_

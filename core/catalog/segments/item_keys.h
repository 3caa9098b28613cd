// Keys of items by id.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_ITEM_KEYS_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_ITEM_KEYS_H_

#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/attention/models/model.h"
#include "core/base/ids.h"
#include "core/base/interrupt.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// Returns the position of a key field. InvalidArgument naming `path` if the
// schema has no field of that name.
absl::StatusOr<int> KeyFieldNamed(const CatalogSchema& schema,
                                  absl::string_view name,
                                  absl::string_view path);
// Like KeyFieldNamed, but returns the first field for an empty name.
absl::StatusOr<int> FindKeyField(const CatalogSchema& schema,
                                 absl::string_view name,
                                 absl::string_view path);

// Returns NotFound with reason ITEM_NOT_FOUND: there is no item `id` with a key
// in the field.
absl::Status NoItemWithKey(const KeyFieldSchema& field, absl::string_view id,
                           absl::string_view path);

// Returns the keys of the items in a field, [ids.size(), dim], in the order of
// `ids`. InvalidArgument for an invalid id; NotFound if an item does not exist
// or has no key in the field. Both name `path`[i]. Also errors of the
// interrupt.
absl::StatusOr<Matrix> KeysOfItems(const Snapshot& snapshot, int field,
                                   std::span<const ItemId> ids,
                                   absl::string_view path,
                                   const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_ITEM_KEYS_H_

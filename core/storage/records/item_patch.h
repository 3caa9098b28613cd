// A change to parts of an item.
#ifndef ATTENDANT_CORE_STORAGE_RECORDS_ITEM_PATCH_H_
#define ATTENDANT_CORE_STORAGE_RECORDS_ITEM_PATCH_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/storage/records/item.h"

namespace attendant {

// The new parts of an item; an unset part stays unchanged.
struct ItemPatch {
  ItemId id;
  // One per key field, or empty: no key changes. An empty key removes the key.
  std::vector<std::optional<std::vector<float>>> keys;
  // An empty value removes the value.
  std::optional<std::vector<float>> value;
  // (position in schema.attributes, value), positions ascending and distinct.
  // An unset value removes the attribute.
  std::vector<std::pair<int, std::optional<AttributeValue>>> attributes;
  // True: removes all attributes that are not named above.
  bool replaces_attributes = false;
  std::optional<std::string> opaque_value;

  // True if the patch changes nothing.
  bool empty() const;

  bool operator==(const ItemPatch&) const = default;
};

// Returns `item` with the parts of the patch. The result need not be valid: see
// ValidateItem.
Item Patched(Item item, const ItemPatch& patch);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_RECORDS_ITEM_PATCH_H_

// A change of parts of an item.
#ifndef ATTENDANT_CORE_STORAGE_RECORDS_ITEM_PATCH_H_
#define ATTENDANT_CORE_STORAGE_RECORDS_ITEM_PATCH_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/storage/records/item.h"

namespace attendant {

// What becomes of an item; nothing where it stays as it was.
struct ItemPatch {
  ItemId id;
  // By key field, or none at all. Empty: the item has no key there any more.
  std::vector<std::optional<std::vector<float>>> keys;
  // Empty: the item has no value any more.
  std::optional<std::vector<float>> value;
  // (position in schema.attributes, value), positions ascending and distinct.
  // Nothing: the item has no such attribute any more.
  std::vector<std::pair<int, std::optional<AttributeValue>>> attributes;
  // True: attributes that are not named above go.
  bool replaces_attributes = false;
  std::optional<std::string> opaque_value;

  // True if it changes nothing.
  bool empty() const;

  bool operator==(const ItemPatch&) const = default;
};

// The item with the patch's parts in place of its own. It need not be valid:
// see ValidateItem.
Item Patched(Item item, const ItemPatch& patch);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_RECORDS_ITEM_PATCH_H_

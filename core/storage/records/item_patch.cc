#include "core/storage/records/item_patch.h"

#include <algorithm>

namespace attendant {

bool ItemPatch::empty() const {
  return !value && !opaque_value && !replaces_attributes &&
         attributes.empty() && std::ranges::none_of(keys, [](const auto& key) {
           return key.has_value();
         });
}

Item Patched(Item item, const ItemPatch& patch) {
  for (std::size_t f = 0; f < patch.keys.size(); ++f) {
    if (patch.keys[f]) item.keys[f] = *patch.keys[f];
  }
  if (patch.value) item.value = *patch.value;
  if (patch.opaque_value) item.opaque_value = *patch.opaque_value;
  if (patch.replaces_attributes) item.attributes.clear();
  for (const auto& [position, value] : patch.attributes) {
    const auto at =
        std::lower_bound(item.attributes.begin(), item.attributes.end(),
                         position, [](const auto& attribute, int sought) {
                           return attribute.first < sought;
                         });
    const bool found = at != item.attributes.end() && at->first == position;
    if (!value) {
      if (found) item.attributes.erase(at);
    } else if (found) {
      at->second = *value;
    } else {
      item.attributes.emplace(at, position, *value);
    }
  }
  return item;
}

}  // namespace attendant

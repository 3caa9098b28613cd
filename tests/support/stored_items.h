// Reads what a catalog holds: its stored items, as the server lists them, and
// what its queries see.
#ifndef ATTENDANT_TESTS_SUPPORT_STORED_ITEMS_H_
#define ATTENDANT_TESTS_SUPPORT_STORED_ITEMS_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/catalog/live/live_catalog.h"

namespace attendant {

// Returns up to `limit` items with ids greater than `after`, in order of ids.
inline absl::StatusOr<std::vector<StoredItem>> StoredItems(
    const LiveCatalog& catalog, absl::string_view after, std::int64_t limit) {
  std::vector<StoredItem> items;
  ATTENDANT_RETURN_IF_ERROR(
      catalog.VisitStoredAfter(after, [&](StoredItem item) {
        items.push_back(std::move(item));
        return static_cast<std::int64_t>(items.size()) < limit;
      }));
  return items;
}

// Returns the whole item at `address`.
inline Item ItemAt(const Snapshot& snapshot, RowAddress address) {
  const Segment& segment = *snapshot.segments[address.segment].segment;
  Item item;
  item.id = std::string(segment.rows->Id(address.row));
  for (const auto& index : segment.indexes) {
    const std::span<const float> key = index->Key(address.row);
    item.keys.emplace_back(key.begin(), key.end());
  }
  if (const float* value = segment.rows->ValueOf(address.row)) {
    item.value.assign(value, value + snapshot.schema->value_dim);
  }
  item.attributes = segment.rows->AttributesOf(address.row);
  if (const auto& opaque_value = segment.rows->OpaqueValueOf(address.row)) {
    item.opaque_value = *opaque_value;
  }
  return item;
}

// Reads items of the catalog's newest snapshot. NotFound if one of them is
// missing.
inline absl::StatusOr<std::vector<Item>> ItemsIn(
    const LiveCatalog& catalog, const std::vector<std::string>& ids) {
  const auto snapshot = catalog.snapshot();
  std::vector<Item> items;
  for (const std::string& id : ids) {
    const auto address = snapshot->Find(id);
    if (!address) return absl::NotFoundError(id);
    items.push_back(ItemAt(*snapshot, *address));
  }
  return items;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_STORED_ITEMS_H_

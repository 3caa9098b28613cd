// What a catalog holds: its store, listed as the server lists it, and what its
// queries see.
#ifndef ATTENDANT_TESTS_SUPPORT_STORED_ITEMS_H_
#define ATTENDANT_TESTS_SUPPORT_STORED_ITEMS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/catalog/live_catalog.h"

namespace attendant {

// Up to `limit` items in the order of ids after `after`.
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

// Of the catalog's newest snapshot. NotFound if one of them is not there.
inline absl::StatusOr<std::vector<Item>> ItemsIn(
    const LiveCatalog& catalog, const std::vector<std::string>& ids) {
  const auto snapshot = catalog.snapshot();
  std::vector<Item> items;
  for (const std::string& id : ids) {
    const auto address = snapshot->Find(id);
    if (!address) return absl::NotFoundError(id);
    items.push_back(snapshot->ItemAt(*address));
  }
  return items;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_STORED_ITEMS_H_

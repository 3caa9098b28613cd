// What a catalog's store holds, listed as the server lists it.
#ifndef ATTENDANT_TESTS_SUPPORT_STORED_ITEMS_H_
#define ATTENDANT_TESTS_SUPPORT_STORED_ITEMS_H_

#include <cstdint>
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

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_STORED_ITEMS_H_

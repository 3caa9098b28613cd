// Contents of the data directories in tests/durability/golden/. Each was
// written by the program of its time: a release, or the build that introduced a
// new layout.
#ifndef ATTENDANT_TESTS_DURABILITY_GOLDEN_H_
#define ATTENDANT_TESTS_DURABILITY_GOLDEN_H_

#include <algorithm>
#include <string>
#include <vector>

#include "core/catalog/live/catalog_set.h"
#include "tests/core/storage/test_store.h"

namespace attendant {

inline constexpr char kGoldenCatalog[] = "shop";
inline constexpr char kGoldenModel[] = "text";
// Present since 2026-11.
inline constexpr char kGoldenAlias[] = "store";
inline constexpr char kGoldenSnapshot[] = "before-summer";
inline constexpr int kGoldenItems = 40;

// Items with numbers in [begin, end). Two writes insert such items (one ends up
// in a table, one in the log); a third deletes some.
inline std::vector<Item> GoldenItems(int begin, int end) {
  std::vector<Item> items;
  for (int i = begin; i < end; ++i) items.push_back(TestItem(i));
  return items;
}
inline std::vector<std::string> GoldenDeletes() {
  return {TestId(3), TestId(30)};
}
// The items that are left.
inline std::vector<Item> GoldenRest() {
  std::vector<Item> items = GoldenItems(0, kGoldenItems);
  const std::vector<std::string> deletes = GoldenDeletes();
  std::erase_if(items, [&](const Item& item) {
    return std::ranges::count(deletes, item.id) > 0;
  });
  return items;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_GOLDEN_H_

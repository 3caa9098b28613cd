// What the data directories in tests/durability/golden/ hold, each written by a
// program of its time.
#ifndef ATTENDANT_TESTS_DURABILITY_GOLDEN_H_
#define ATTENDANT_TESTS_DURABILITY_GOLDEN_H_

#include <string>
#include <vector>

#include "core/catalog/catalog_set.h"
#include "tests/core/storage/test_store.h"

namespace attendant {

inline constexpr char kGoldenCatalog[] = "shop";
inline constexpr char kGoldenModel[] = "text";
inline constexpr int kGoldenItems = 40;

// The items of the two writes, in a table and in the log, and those that a
// third deleted.
inline std::vector<Item> GoldenItems(int begin, int end) {
  std::vector<Item> items;
  for (int i = begin; i < end; ++i) items.push_back(TestItem(i));
  return items;
}
inline std::vector<std::string> GoldenDeletes() {
  return {TestId(3), TestId(30)};
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_GOLDEN_H_

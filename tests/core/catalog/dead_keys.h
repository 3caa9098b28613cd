#ifndef ATTENDANT_TESTS_CORE_CATALOG_DEAD_KEYS_H_
#define ATTENDANT_TESTS_CORE_CATALOG_DEAD_KEYS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "core/catalog/segments/dead_rows.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// Returns how many keys in lists are dead, and expects them to be those of the
// dead rows.
inline std::int64_t CountDeadKeys(const Snapshot& snapshot) {
  std::int64_t count = 0;
  for (const SegmentView& view : snapshot.segments) {
    SegmentView expected = view;
    SetDead(expected, view.dead);
    EXPECT_EQ(view.dead_keys.size(), expected.dead_keys.size());
    for (std::size_t f = 0; f < expected.dead_keys.size(); ++f) {
      const DeadKeys* dead = view.dead_keys[f].get();
      const DeadKeys* wanted = expected.dead_keys[f].get();
      EXPECT_EQ(dead == nullptr, wanted == nullptr);
      if (dead == nullptr || wanted == nullptr) continue;
      EXPECT_EQ(dead->live_counts, wanted->live_counts);
      EXPECT_TRUE(std::ranges::equal(dead->positions.words(),
                                     wanted->positions.words()));
      dead->positions.ForEachSet(0, dead->positions.size(),
                                 [&](std::int64_t) { ++count; });
      EXPECT_EQ(std::accumulate(dead->live_counts.begin(),
                                dead->live_counts.end(), 0.0),
                view.live_key_counts[f]);
    }
  }
  return count;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CORE_CATALOG_DEAD_KEYS_H_

// The dead keys of an index, in the order of its lists. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_SCAN_DEAD_KEYS_H_
#define ATTENDANT_CORE_SHORTLIST_SCAN_DEAD_KEYS_H_

#include <cstdint>
#include <vector>

#include "core/base/bitmap.h"
#include "core/base/minus_infinity.h"

namespace attendant {

// A list's keys are scattered over the rows of a segment, and so are the bits
// of a bitmap of rows, each in another cache line. In this order they are
// adjacent, and it is known how many keys of each list are left.
struct DeadKeys {
  Bitmap positions;                // by position in the lists
  std::vector<float> live_counts;  // by list

  // Sets the logits of dead keys in [begin, begin + count) to -infinity, and
  // returns how many keys are left.
  std::int64_t LeaveLive(std::int64_t begin, std::int64_t count,
                         float* logits) const {
    std::int64_t live_count = count;
    positions.ForEachSet(begin, begin + count, [&](std::int64_t position) {
      logits[position - begin] = kMinusInfinityF;
      --live_count;
    });
    return live_count;
  }

  std::int64_t memory_bytes() const {
    return positions.memory_bytes() +
           static_cast<std::int64_t>(live_counts.size() * sizeof(float));
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_DEAD_KEYS_H_

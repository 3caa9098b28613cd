// The distribution of the norms of keys. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KEYS_KEY_NORMS_H_
#define ATTENDANT_CORE_SHORTLIST_KEYS_KEY_NORMS_H_

#include <algorithm>
#include <cstdint>

#include "core/attention/softmax/score.h"
#include "core/base/views.h"

namespace attendant {

struct KeyNorms {
  double greatest = 0;
  double mean = 0;

  // False if a float holds the squares of the norms poorly.
  bool usable() const { return greatest >= 1e-15 && greatest <= 1e15; }
  bool differ() const { return greatest > 1.1 * mean; }
};

// Requires at least one key.
inline KeyNorms NormsOf(MatrixView keys) {
  KeyNorms norms;
  for (std::int64_t p = 0; p < keys.row_count; ++p) {
    const double norm = Norm(keys.Row(p));
    norms.greatest = std::max(norms.greatest, norm);
    norms.mean += norm / static_cast<double>(keys.row_count);
  }
  return norms;
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEYS_KEY_NORMS_H_

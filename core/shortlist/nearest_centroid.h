// Which centroid is nearest to a row. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_NEAREST_CENTROID_H_
#define ATTENDANT_CORE_SHORTLIST_NEAREST_CENTROID_H_

#include <cstdint>
#include <vector>

#include "core/base/views.h"

namespace attendant {

// Not thread-safe: holds scratch.
class NearestCentroid {
 public:
  // Rows that Find takes at once: they and a few centroids fit the first cache.
  static constexpr std::int64_t kBlockRows = 48;

  // At least 1 centroid; they must outlive the object.
  explicit NearestCentroid(MatrixView centroids);

  // nearest[i] is the centroid at the least Euclidean distance from row i, the
  // first of equals. At most kBlockRows rows of the centroids' dim. If
  // squared_distances is not null it receives one a row.
  void Find(MatrixView rows, std::int32_t* nearest, float* squared_distances);

 private:
  MatrixView centroids_;
  std::vector<float> half_square_norms_;
  std::vector<float> scores_;  // [kBlockRows, centroids]
  std::vector<std::int32_t> positions_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_NEAREST_CENTROID_H_

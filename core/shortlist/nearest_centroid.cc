#include "core/shortlist/nearest_centroid.h"

#include "core/attention/score.h"
#include "core/kernels/kernels.h"

namespace attendant {

NearestCentroid::NearestCentroid(MatrixView centroids)
    : centroids_(centroids),
      scores_(static_cast<std::size_t>(kBlockRows * centroids.row_count)),
      positions_(static_cast<std::size_t>(centroids.row_count)) {
  for (std::int64_t c = 0; c < centroids.row_count; ++c) {
    const double norm = Norm(centroids.Row(c));
    half_square_norms_.push_back(static_cast<float>(norm * norm / 2));
  }
}

void NearestCentroid::Find(MatrixView rows, std::int32_t* nearest,
                           float* squared_distances) {
  const Kernels& kernels = ActiveKernels();
  const std::int64_t centroid_count = centroids_.row_count;
  // |x - c|^2 / 2 = |x|^2 / 2 - (x . c - |c|^2 / 2): the greatest score wins.
  kernels.DotRowsMulti(rows.data, rows.row_count, centroids_.data,
                       centroid_count, centroids_.dim, scores_.data());
  for (std::int64_t r = 0; r < rows.row_count; ++r) {
    float* scores = scores_.data() + r * centroid_count;
    for (std::int64_t c = 0; c < centroid_count; ++c) {
      scores[c] -= half_square_norms_[static_cast<std::size_t>(c)];
    }
    const float best = kernels.Max(scores, centroid_count);
    // None is selected if the scores of an enormous row are NaN.
    const std::int64_t equal_count =
        kernels.SelectAtLeast(scores, centroid_count, best, positions_.data());
    nearest[r] = equal_count > 0 ? positions_[0] : 0;
    if (squared_distances != nullptr) {
      const double norm = Norm(rows.Row(r));
      squared_distances[r] = static_cast<float>(norm * norm - 2.0 * best);
    }
  }
}

}  // namespace attendant

// K-means by FAISS. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_LISTS_LEARN_CENTROIDS_H_
#define ATTENDANT_CORE_SHORTLIST_LISTS_LEARN_CENTROIDS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/views.h"

namespace attendant {

struct LearnOptions {
  std::int64_t centroid_count = 1;  // in [1, rows]
  bool spherical = false;           // centroids of norm 1
  std::uint64_t seed = 0;
  std::int64_t thread_count = 1;  // including the caller
  const std::atomic<bool>* cancelled = nullptr;
};

// Returns centroids [centroid_count, dim] of finite rows, the same for any
// number of threads. No exception of FAISS escapes. Errors: ResourceExhausted,
// Cancelled, Internal.
absl::StatusOr<std::vector<float>> LearnCentroids(MatrixView rows,
                                                  const LearnOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_LISTS_LEARN_CENTROIDS_H_

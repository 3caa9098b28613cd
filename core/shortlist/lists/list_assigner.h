// Assigns keys to lists. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_LISTS_LIST_ASSIGNER_H_
#define ATTENDANT_CORE_SHORTLIST_LISTS_LIST_ASSIGNER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/aligned_buffer.h"
#include "core/base/views.h"
#include "core/shortlist/lists/list_means.h"
#include "core/shortlist/lists/nearest_centroid.h"

namespace attendant {

// Finds the list whose centroid is nearest, as NearestCentroid does. Immutable;
// thread-safe.
class ListAssigner {
 public:
  // Working memory of Assign, for one thread at a time.
  class Scratch {
   private:
    friend class ListAssigner;
    NearestCentroid::Scratch nearest_;
    AlignedBuffer<float> block_;
  };

  // List l has centroid l; at least one. The centroids must outlive the object.
  // normalise: they are of keys of norm 1, and keys are scaled to norm 1 before
  // they are assigned.
  ListAssigner(MatrixView centroids, bool normalise);
  // Uses the lists of `means` that were learned from some key, of which there
  // must be at least one; the other means say nothing. normalise: as above. The
  // means must outlive the object.
  ListAssigner(const ListMeans& means, bool normalise);

  // Sets lists[i] to the list of key_of(i), for i in [0, count).
  void Assign(std::int64_t count,
              absl::FunctionRef<std::span<const float>(std::int64_t i)> key_of,
              std::int32_t* lists, Scratch& scratch) const;

  std::int64_t memory_bytes() const;

 private:
  // If not all lists were learned from some key: which ones were, and their
  // means.
  struct Learned {
    std::vector<std::int32_t> lists;
    AlignedBuffer<float> means;
  };
  static Learned LearnedOf(const ListMeans& means);

  const bool normalise_ = false;
  const Learned learned_;
  const MatrixView centroids_;
  const NearestCentroid nearest_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_LISTS_LIST_ASSIGNER_H_

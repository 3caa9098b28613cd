// Which list a key belongs to. Internal.
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

// The list whose centroid is nearest, as NearestCentroid finds it. Immutable;
// thread-safe.
class ListAssigner {
 public:
  // What Assign works in, for one thread at a time.
  class Scratch {
   private:
    friend class ListAssigner;
    NearestCentroid::Scratch nearest_;
    AlignedBuffer<float> block_;
  };

  // List l is that of centroid l, of at least one; they must outlive the
  // object. normalise: they are of keys of norm 1, as all are taken to be.
  ListAssigner(MatrixView centroids, bool normalise);
  // The lists of `means` that were learned from some key, at least one: the
  // others' say nothing. normalise: they are those of keys of norm 1. The means
  // must outlive the object.
  ListAssigner(const ListMeans& means, bool normalise);

  // lists[i] is the list of key_of(i), for i in [0, count).
  void Assign(std::int64_t count,
              absl::FunctionRef<std::span<const float>(std::int64_t i)> key_of,
              std::int32_t* lists, Scratch& scratch) const;

  std::int64_t memory_bytes() const;

 private:
  // Where not all lists were learned from some key: the means of those that
  // were, and which these are.
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

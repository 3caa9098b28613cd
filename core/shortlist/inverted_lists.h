// Keys list by list, and the lists' centroids. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_INVERTED_LISTS_H_
#define ATTENDANT_CORE_SHORTLIST_INVERTED_LISTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/base/ids.h"
#include "core/base/views.h"

namespace attendant {

// Key p of n is that of rows[p]; list l holds the keys from offsets[l] to
// offsets[l + 1], in the order of their rows.
struct InvertedLists {
  std::int64_t dim = 0;
  AlignedBuffer<float> keys;          // [n, dim]
  std::vector<float> inverse_norms;   // [n], see InverseNorm; never NaN
  std::vector<RowIndex> rows;         // [n]
  std::vector<std::int64_t> offsets;  // [lists + 1]
  AlignedBuffer<float> centroids;     // [lists, dim]

  std::int64_t key_count() const {
    return static_cast<std::int64_t>(rows.size());
  }
  std::int64_t list_count() const {
    return static_cast<std::int64_t>(offsets.size()) - 1;
  }
  MatrixView key_view() const { return {keys.data(), key_count(), dim}; }

  // One number a list, in the order of the lists: the greater, the better the
  // list for the query. Ordered by the product of centroid and query, then the
  // lesser list first; ListOf tells the list. Does not allocate once `ranks`
  // has grown.
  void RankLists(std::span<const float> query,
                 std::vector<std::uint64_t>& ranks) const;
  static std::int32_t ListOf(std::uint64_t rank) {
    return static_cast<std::int32_t>(~static_cast<std::uint32_t>(rank));
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_INVERTED_LISTS_H_

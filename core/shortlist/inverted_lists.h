// Keys list by list, and what the lists promise a query. Internal.
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
  // Of the keys of each list, normalised under COSINE: their mean, and what the
  // best of them may be expected to score beyond it for a query of norm 1 (see
  // Summarise).
  AlignedBuffer<float> means;  // [lists, dim]
  std::vector<float> reaches;  // [lists]

  std::int64_t key_count() const {
    return static_cast<std::int64_t>(rows.size());
  }
  std::int64_t list_count() const {
    return static_cast<std::int64_t>(offsets.size()) - 1;
  }
  MatrixView key_view() const { return {keys.data(), key_count(), dim}; }

  // Sets means and reaches from the keys. Were a list's n keys spread evenly in
  // all directions with variance v a dimension, the products of the best with a
  // query of norm 1 would stand about sqrt(2 v log n) above the mean's: the
  // expected maximum of n normal numbers. Without it, tight lists would be
  // visited before wide ones that hold a nearer key.
  void Summarise(bool normalise);

  // One number a list, in the order of the lists: the greater, the better the
  // list for the query. Ordered by what its best key is expected to score, then
  // the lesser list first; ListOf tells the list. Does not allocate once
  // `ranks` has grown.
  void RankLists(std::span<const float> query,
                 std::vector<std::uint64_t>& ranks) const;
  static std::int32_t ListOf(std::uint64_t rank) {
    return static_cast<std::int32_t>(~static_cast<std::uint32_t>(rank));
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_INVERTED_LISTS_H_

// Keys list by list, and what the lists promise a query. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_INVERTED_LISTS_H_
#define ATTENDANT_CORE_SHORTLIST_INVERTED_LISTS_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/base/ids.h"
#include "core/base/views.h"
#include "core/shortlist/key_codes.h"
#include "core/shortlist/key_floats.h"

namespace attendant {

// Key p of n is that of rows[p]; list l holds the keys from offsets[l] to
// offsets[l + 1].
struct InvertedLists {
  std::int64_t dim = 0;
  KeyFloats keys;                     // [n, dim]
  std::vector<float> inverse_norms;   // [n], see InverseNorm; never NaN
  std::vector<RowIndex> rows;         // [n]
  std::vector<std::int64_t> offsets;  // [lists + 1]
  // Of the keys of each list, normalised under COSINE: their mean, and what the
  // best of them may be expected to score beyond it for a query of norm 1 (see
  // Summarise).
  AlignedBuffer<float> means;  // [lists, dim]
  std::vector<float> reaches;  // [lists]
  KeyCodes codes;              // of the keys, normalised under COSINE
  KeyCodes mean_codes;         // of the means

  std::int64_t key_count() const {
    return static_cast<std::int64_t>(rows.size());
  }
  std::int64_t list_count() const {
    return static_cast<std::int64_t>(offsets.size()) - 1;
  }
  // For single keys, and for all of them one after the other.
  MatrixView key_view() const { return {keys.data(), key_count(), dim}; }
  MatrixView key_runs() const { return {keys.runs(), key_count(), dim}; }

  // The list that key `position` is in.
  std::int64_t ListAt(std::int64_t position) const {
    return std::upper_bound(offsets.begin(), offsets.end(), position) -
           offsets.begin() - 1;
  }

  // Asks for a key that will be scored, or the mean of a list.
  void Prefetch(std::int64_t position) const {
    PrefetchFloats(keys.data() + position * dim);
    __builtin_prefetch(&rows[static_cast<std::size_t>(position)], 0, 2);
    __builtin_prefetch(&inverse_norms[static_cast<std::size_t>(position)], 0,
                       2);
  }
  void PrefetchMean(std::int64_t list) const {
    PrefetchFloats(means.data() + list * dim);
  }

  // Sets means and reaches from the keys. Were a list's n keys
  // spread evenly in all directions with variance v a dimension, the products
  // of the best with a query of norm 1 would stand about sqrt(2 v log n) above
  // the mean's: the expected maximum of n normal numbers. Without it, tight
  // lists would be visited before wide ones that hold a nearer key.
  void Summarise(bool normalise);
  // Sets the codes of keys and means, once the latter are there.
  void Encode(bool normalise, std::uint64_t seed);

  // What the best key of each list is expected to score for a query of norm 1
  // in the query's direction: the order in which lists are visited. [lists].
  void ScoreLists(std::span<const float> query,
                  std::vector<float>& scores) const;
  // The same of several coded queries, from the codes of the means, which are
  // usable. A query's logit factor is 1 / its norm, or 0; scores of query q are
  // at q x stride, a multiple of kCodeRows that has room for all lists.
  void ScoreListsByCode(std::span<const CodeQuery> queries, CodeBits bits,
                        std::int64_t stride, float* scores) const;

  // One number a list: the greater, the better. Ordered by the lists' scores,
  // then the lesser list first; ListOf tells the list. Does not allocate once
  // `ranks` has grown.
  void RankLists(std::span<const float> scores,
                 std::vector<std::uint64_t>& ranks) const;
  static std::int32_t ListOf(std::uint64_t rank) {
    return static_cast<std::int32_t>(~static_cast<std::uint32_t>(rank));
  }

 private:
  // Into the second cache, which waits for more lines at once than the first.
  void PrefetchFloats(const float* vector) const {
    constexpr std::int64_t kLineFloats = 16;
    for (std::int64_t d = 0; d < dim; d += kLineFloats) {
      __builtin_prefetch(vector + d, 0, 2);
    }
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_INVERTED_LISTS_H_

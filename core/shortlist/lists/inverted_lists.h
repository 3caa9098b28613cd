// Keys in inverted lists, and what the lists promise a query. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_LISTS_INVERTED_LISTS_H_
#define ATTENDANT_CORE_SHORTLIST_LISTS_INVERTED_LISTS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/aligned_buffer.h"
#include "core/base/byte_stream.h"
#include "core/base/ids.h"
#include "core/base/scratch_files.h"
#include "core/base/views.h"
#include "core/kernels/prefetch.h"
#include "core/shortlist/keys/key_codes.h"
#include "core/shortlist/keys/key_floats.h"
#include "core/shortlist/lists/list_means.h"

namespace attendant {

// Sums over the keys of each list.
struct ListSums {
  std::vector<double> sums;     // [lists, dim]
  std::vector<double> squares;  // [lists], sums of squared norms

  // Returns the sums of merged lists: merged list l is made of the lists from
  // begins[l] to begins[l + 1].
  ListSums Merged(std::span<const std::int32_t> begins) const;
};

// Key p is that of rows[p], for p in [0, n); list l holds the keys from
// offsets[l] to offsets[l + 1].
struct InvertedLists {
  std::int64_t dim = 0;
  KeyFloats keys;                     // [n, dim]
  std::vector<float> inverse_norms;   // [n], see InverseNorm; never NaN
  std::vector<RowIndex> rows;         // [n]
  std::vector<std::int64_t> offsets;  // [lists + 1]
  std::shared_ptr<const ListMeans> means;
  KeyCodes codes;                 // of the keys, normalised under COSINE
  std::vector<float> counts;      // [lists], number of keys
  std::vector<float> log_counts;  // [lists]; -1 for an empty list

  std::int64_t key_count() const {
    return static_cast<std::int64_t>(rows.size());
  }
  std::int64_t list_count() const {
    return static_cast<std::int64_t>(offsets.size()) - 1;
  }
  // As KeyIndex::max_norm.
  double max_norm() const;
  // key_view() is for single keys in any order, key_runs() for sequential
  // reads.
  MatrixView key_view() const { return {keys.data(), key_count(), dim}; }
  MatrixView key_runs() const { return {keys.runs(), key_count(), dim}; }

  // Returns the list that contains key `position`.
  std::int64_t ListAt(std::int64_t position) const {
    return std::upper_bound(offsets.begin(), offsets.end(), position) -
           offsets.begin() - 1;
  }

  // Returns the first list that begins at or after key `position`.
  std::int64_t ListFrom(std::int64_t position) const {
    return std::lower_bound(offsets.begin(), offsets.end(), position) -
           offsets.begin();
  }

  // Prefetch a key that will be scored, or the mean of a list.
  void Prefetch(std::int64_t position) const {
    const auto at = static_cast<std::size_t>(position);
    PrefetchRow(keys.data() + position * dim, dim);
    PrefetchLine(&rows[at]);
    PrefetchLine(&inverse_norms[at]);
  }
  void PrefetchMean(std::int64_t list) const {
    PrefetchRow(means->means.data() + list * dim, dim);
  }

  // Sums the keys, scaled to norm 1 if `normalise`. The result does not depend
  // on the number of threads.
  ListSums SumKeys(bool normalise, int thread_count) const;
  // Sets means and reaches from the keys' sums. If a list's n keys were spread
  // evenly in all directions with variance v per dimension, the best product
  // with a query of norm 1 would exceed the mean's by about sqrt(2 v log n),
  // the expected maximum of n normal numbers. Without the reach, tight lists
  // would be visited before wide ones that hold a nearer key.
  void Summarise(const ListSums& sums, std::uint64_t seed);
  // Sets codes and counts. Requires means, which may be made of these keys or
  // of others.
  void Encode(bool normalise, std::uint64_t seed, int thread_count);
  // Save writes all but the means, which Load takes; `seed` is that of Encode.
  void Save(ByteSink& sink) const;
  static absl::StatusOr<InvertedLists> Load(
      ByteSource& source, std::shared_ptr<const ListMeans> means,
      std::uint64_t seed, ScratchFiles* files);
  // DataLoss if a row is >= row_count or occurs twice.
  absl::Status CheckRows(std::int64_t row_count) const;
  // Returns the mean square distance of keys from their lists' means; 0 if
  // there are no keys.
  double MeanSquareDistance(bool normalise) const;

 private:
  void CountKeys();
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_LISTS_INVERTED_LISTS_H_

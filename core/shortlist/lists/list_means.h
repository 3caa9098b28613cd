// The means that a query is compared with to choose the lists it visits.
// Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_LISTS_LIST_MEANS_H_
#define ATTENDANT_CORE_SHORTLIST_LISTS_LIST_MEANS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/aligned_buffer.h"
#include "core/base/byte_stream.h"
#include "core/base/views.h"
#include "core/shortlist/keys/key_codes.h"

namespace attendant {

// Shared by all inverted lists of one training. Immutable once made;
// thread-safe.
struct ListMeans {
  std::int64_t dim = 0;
  // Statistics of the keys that each list was learned from, normalised under
  // COSINE: their mean, and how far the best of them is expected to score above
  // the mean for a query of norm 1 (see InvertedLists::Summarise).
  AlignedBuffer<float> means;  // [lists, dim]
  std::vector<float> reaches;  // [lists]
  std::vector<float> counts;   // [lists], number of those keys
  KeyCodes codes;              // of the means

  std::int64_t list_count() const {
    return static_cast<std::int64_t>(reaches.size());
  }
  MatrixView view() const { return {means.data(), list_count(), dim}; }
  std::span<const float> Mean(std::int64_t list) const {
    return view().Row(list);
  }
  // False if the list was learned from no key.
  bool Promises(std::int64_t list) const { return IsPromise(reaches[list]); }
  // As Promises, given the list's reach.
  static bool IsPromise(float reach) { return reach >= 0; }
  std::int64_t memory_bytes() const;

  // Save writes all but the codes, which Load makes from `seed`. DataLoss if
  // the bytes are no means.
  void Save(ByteSink& sink) const;
  static absl::StatusOr<std::shared_ptr<const ListMeans>> Load(
      ByteSource& source, std::uint64_t seed);

  // Sets scores [lists] to the expected score of the best key of each list, for
  // a query of norm 1 in the direction of `query`. Lists are visited in
  // descending order of this score.
  void ScoreLists(std::span<const float> query,
                  std::vector<float>& scores) const;
  // As ScoreLists for several coded queries, from the codes of the means, which
  // must be usable. A query's logit factor is 1 / its norm, or 0. The scores of
  // query q are at scores + q x stride; stride is a multiple of kCodeRows with
  // room for all lists.
  void ScoreListsByCode(std::span<const CodeQuery> queries, CodeBits bits,
                        std::int64_t stride, float* scores) const;

  // Returns the expected score of the k-th best of these keys for a query whose
  // lists have `scores`, if the keys of a list are spread about its mean as
  // Summarise assumes. Looks at the best lists only, best_count of them rounded
  // up to a multiple of 16; accurate to about a hundredth of the range of their
  // scores. Thread-safe.
  float ExpectedScore(std::span<const float> scores, double k,
                      std::int64_t best_count = 1) const;

  // Sets ranks to one number per list; greater is better. Ordered by the lists'
  // scores, and for equal scores the lesser list first. ListOf returns the list
  // of a rank. Does not allocate once `ranks` has grown.
  static void RankLists(std::span<const float> scores,
                        std::vector<std::uint64_t>& ranks);
  static std::int32_t ListOf(std::uint64_t rank) {
    return static_cast<std::int32_t>(~static_cast<std::uint32_t>(rank));
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_LISTS_LIST_MEANS_H_

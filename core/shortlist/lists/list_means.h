// What a query is compared with to choose the lists that it visits. Internal.
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
  // Of the keys that each list was learned from, normalised under COSINE: their
  // mean, and what the best of them may be expected to score beyond it for a
  // query of norm 1 (see InvertedLists::Summarise).
  AlignedBuffer<float> means;  // [lists, dim]
  std::vector<float> reaches;  // [lists]
  std::vector<float> counts;   // [lists], of those keys
  KeyCodes codes;              // of the means

  std::int64_t list_count() const {
    return static_cast<std::int64_t>(reaches.size());
  }
  MatrixView view() const { return {means.data(), list_count(), dim}; }
  std::span<const float> Mean(std::int64_t list) const {
    return view().Row(list);
  }
  // False of a list that was learned from no key.
  bool Promises(std::int64_t list) const {
    return IsPromise(reaches[static_cast<std::size_t>(list)]);
  }
  // The same of its reach.
  static bool IsPromise(float reach) { return reach >= 0; }
  std::int64_t memory_bytes() const;

  // All but the codes, which Load makes by this seed. DataLoss if there are no
  // such means.
  void Save(ByteSink& sink) const;
  static absl::StatusOr<std::shared_ptr<const ListMeans>> Load(
      ByteSource& source, std::uint64_t seed);

  // What the best key of each list is expected to score for a query of norm 1
  // in the query's direction: the order in which lists are visited. [lists].
  void ScoreLists(std::span<const float> query,
                  std::vector<float>& scores) const;
  // The same of several coded queries, from the codes of the means, which are
  // usable. A query's logit factor is 1 / its norm, or 0; scores of query q are
  // at q x stride, a multiple of kCodeRows that has room for all lists.
  void ScoreListsByCode(std::span<const CodeQuery> queries, CodeBits bits,
                        std::int64_t stride, float* scores) const;

  // What the k-th best of these keys may be expected to score for a query whose
  // lists have these scores, were the keys of a list spread about its mean as
  // Summarise takes them to be. Looks at the best lists alone, and is right to
  // about a hundredth of what lies between them. Thread-safe.
  float ExpectedScore(std::span<const float> scores, double k) const;

  // One number a list: the greater, the better. Ordered by the lists' scores,
  // then the lesser list first; ListOf tells the list. Does not allocate once
  // `ranks` has grown.
  static void RankLists(std::span<const float> scores,
                        std::vector<std::uint64_t>& ranks);
  static std::int32_t ListOf(std::uint64_t rank) {
    return static_cast<std::int32_t>(~static_cast<std::uint32_t>(rank));
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_LISTS_LIST_MEANS_H_

// The margin below the score expected of its best keys within which a query
// must look for lists. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_CALIBRATION_SAMPLE_MARGINS_H_
#define ATTENDANT_CORE_SHORTLIST_CALIBRATION_SAMPLE_MARGINS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/shortlist/calibration/sample_queries.h"
#include "core/shortlist/lists/inverted_lists.h"

namespace attendant {

// Learned from sample queries and from the keys that these were moved from. A
// list's margin for a query is the distance of its score below
// ListMeans::ExpectedScore of the query's neighbours. With one margin for all,
// a query whose neighbours lie in one list visits few lists, and one between
// all lists visits many; a fixed number of lists would be too great for most
// queries.
//
// Blends have margins of their own: among keys in tight clusters those of keys
// are far too small for them. What tells them apart is the query's peak, the
// score of its best list.
//
// Products of the longest keys may overflow a float. A query whose scores do
// has the least peak, and margins that all lists are within. Immutable.
class SampleMargins {
 public:
  // Only with kKeys are the scores kept that MeanVisits needs: a float for each
  // moved key and list.
  enum class Kinds { kKeys, kKeysAndBlends };

  // `lists` must outlive the object. The result does not depend on the number
  // of threads.
  SampleMargins(const InvertedLists& lists, const SampleQueries& sample,
                int thread_count, Kinds kinds = Kinds::kKeys);

  // Returns the least margin at which the mean share of neighbours found is at
  // least `recall`, in (0, 1], both for moved keys and for keys as they are.
  float MarginFor(double recall) const;

  // The same for blends as well: at least MarginFor(recall). Requires blends.
  float BlendMarginFor(double recall) const;
  // Returns the peak that a share of the keys does not exceed.
  float KeyPeak(double share) const;

  // Returns the share of their neighbours that moved keys find within `margin`.
  double RecallAt(float margin) const;

  // Lists and keys that a moved key visits, in the mean. Requires kKeys.
  struct Visits {
    double list_count = 0;
    double key_count = 0;
  };
  Visits MeanVisits(float margin) const;

 private:
  using QueryAt = std::span<const float> (SampleQueries::*)(std::int64_t) const;
  using NeighboursAt =
      std::span<const std::int32_t> (SampleQueries::*)(std::int64_t) const;

  // One kind of sample queries.
  struct Kind {
    std::vector<float> peaks;    // [queries], ascending
    std::vector<float> margins;  // of the neighbours' lists, ascending
  };
  struct Scores {
    std::vector<float> of_lists;  // [queries, lists]
    std::vector<float> expected;  // [queries]
  };

  // Of queries first, first + step, ... Keeps their scores unless `kept` is
  // null.
  Kind Try(const SampleQueries& sample, QueryAt query_at,
           NeighboursAt neighbours_at, int thread_count, Scores* kept = nullptr,
           std::int64_t first = 0, std::int64_t step = 1) const;

  const InvertedLists& lists_;
  Scores moved_scores_;
  Kind moved_;
  Kind unmoved_;
  Kind pairs_;  // blends of 2 keys
  Kind fives_;  // and of 5
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_CALIBRATION_SAMPLE_MARGINS_H_

// How far below what its best keys are expected to score a query must look for
// lists. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_CALIBRATION_SAMPLE_MARGINS_H_
#define ATTENDANT_CORE_SHORTLIST_CALIBRATION_SAMPLE_MARGINS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/shortlist/calibration/sample_queries.h"
#include "core/shortlist/lists/inverted_lists.h"

namespace attendant {

// Learned from sample queries and the keys that these were moved from. The
// margin of a list, for a query, is by how much its score is below
// ListMeans::ExpectedScore of the query's neighbours. A query whose neighbours
// lie in one list then visits few, and one between all lists many, while a
// number that is the same for all would be too great for most. Immutable.
class SampleMargins {
 public:
  // `lists` must outlive it. The same for any number of threads.
  SampleMargins(const InvertedLists& lists, const SampleQueries& sample,
                int thread_count);

  // The least margin at which queries find a mean share of `recall` of their
  // neighbours, in (0, 1], whichever of the two kinds they are of.
  float MarginFor(double recall) const;

  // The share that the moved keys find within the margin.
  double RecallAt(float margin) const;

  // What a sample query visits, in the mean.
  struct Visits {
    double list_count = 0;
    double key_count = 0;
  };
  Visits MeanVisits(float margin) const;

 private:
  // Of one kind of queries.
  struct Kind {
    std::vector<float> scores;    // [queries, lists]
    std::vector<float> expected;  // [queries]
    std::vector<float> margins;   // of neighbours' lists, ascending
  };

  Kind Try(std::int64_t query_count, const SampleQueries& sample, bool moved,
           int thread_count) const;

  const InvertedLists& lists_;
  Kind moved_;
  Kind unmoved_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_CALIBRATION_SAMPLE_MARGINS_H_

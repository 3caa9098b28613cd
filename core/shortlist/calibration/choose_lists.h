// How many lists keys are best kept in. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_CALIBRATION_CHOOSE_LISTS_H_
#define ATTENDANT_CORE_SHORTLIST_CALIBRATION_CHOOSE_LISTS_H_

#include "core/shortlist/calibration/sample_queries.h"
#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/lists/list_tree.h"

namespace attendant {

// Merges lists, which lie in the order of the tree's places and have these
// sums, as far as makes a query cheaper, and summarises them. With few lists
// there is little to rank, but more to visit: where keys have clusters, a list
// for each is best, and how many there are shows in what sample queries must
// visit.
void ChooseLists(const ListTree& tree, const SampleQueries& sample,
                 const ListSums& sums, std::uint64_t seed, int thread_count,
                 InvertedLists& lists);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_CALIBRATION_CHOOSE_LISTS_H_

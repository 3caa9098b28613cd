// Chooses how many lists to keep keys in. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_CALIBRATION_CHOOSE_LISTS_H_
#define ATTENDANT_CORE_SHORTLIST_CALIBRATION_CHOOSE_LISTS_H_

#include "core/shortlist/calibration/sample_queries.h"
#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/lists/list_tree.h"

namespace attendant {

// Merges lists as far as this makes queries cheaper, and summarises them. The
// lists are in the order of the tree's places, and `sums` are theirs. Fewer
// lists cost less to rank, but more to visit: if keys form clusters, one list
// for each is best, and how many clusters there are shows in what sample
// queries must visit.
void ChooseLists(const ListTree& tree, const SampleQueries& sample,
                 const ListSums& sums, std::uint64_t seed, int thread_count,
                 InvertedLists& lists);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_CALIBRATION_CHOOSE_LISTS_H_

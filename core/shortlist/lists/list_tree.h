// A hierarchy in which similar lists are merged, down to any number of lists.
// Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_LISTS_LIST_TREE_H_
#define ATTENDANT_CORE_SHORTLIST_LISTS_LIST_TREE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/views.h"

namespace attendant {

// Lists are merged pairwise, always the two whose merging adds least to the
// squared distances of keys from their list's mean (Ward 1963), so that the
// parts of one cluster are merged first. Immutable; thread-safe.
class ListTree {
 public:
  // Takes the means [n, dim] of the lists, n >= 1, finite, and the number of
  // keys of each list. Uses chains of nearest neighbours (Murtagh 1983), O(n^2
  // dim).
  ListTree(MatrixView means, std::span<const std::int64_t> key_counts);

  // An order of the lists in which lists that are merged into one are always
  // adjacent: places()[l] is the place of list l.
  const std::vector<std::int32_t>& places() const { return places_; }

  // Returns the places at which the lists begin when `count` lists are left,
  // followed by n: count + 1 numbers. 1 <= count <= n.
  std::vector<std::int32_t> Cut(std::int64_t count) const;

 private:
  // Merges the lists before a boundary, in the order of places, with those
  // after it.
  struct Merge {
    std::int32_t boundary = 0;  // place of the first list after it
    double cost = 0;
  };

  std::vector<std::int32_t> places_;
  std::vector<Merge> merges_;  // in the order of merging, [n - 1]
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_LISTS_LIST_TREE_H_

// Which lists are best made one, as far as one likes. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_LISTS_LIST_TREE_H_
#define ATTENDANT_CORE_SHORTLIST_LISTS_LIST_TREE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/views.h"

namespace attendant {

// Lists are merged two by two, always the two whose merging adds least to the
// squared distances of keys from their list's mean (Ward 1963): first the parts
// of one cluster. Immutable; thread-safe.
class ListTree {
 public:
  // Of lists with the means [n, dim], n >= 1, finite, and so many keys each. By
  // chains of nearest neighbours (Murtagh 1983), O(n^2 dim).
  ListTree(MatrixView means, std::span<const std::int64_t> key_counts);

  // An order of the lists in which those that are merged into one always lie
  // next to each other: places()[l] is where list l comes.
  const std::vector<std::int32_t>& places() const { return places_; }

  // The places at which the lists begin once so many are left, and n: in all
  // count + 1. 1 <= count <= n.
  std::vector<std::int32_t> Cut(std::int64_t count) const;

 private:
  // The lists that come first, in their order, are merged with those after.
  struct Merge {
    std::int32_t boundary = 0;  // the place that is the first of the latter
    double cost = 0;
  };

  std::vector<std::int32_t> places_;
  std::vector<Merge> merges_;  // in the order in which they are made, [n - 1]
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_LISTS_LIST_TREE_H_

// Which segments of a catalog to make into one, and when to learn anew.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_MERGE_PLAN_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_MERGE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/attention/models/model.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// From where on a merge is worth it; less in tests.
struct MergeLimits {
  // Fewer rows are not worth a merge of their own, nor are fewer keys that came
  // or went, or that drifted, worth new lists.
  std::int64_t min_merge_count = 1024;
  // Rows from which on a growing segment is sealed.
  std::int64_t seal_count = 2048;
  // Memory, in bytes, of dead rows that are worth a merge though they are
  // fewer.
  std::int64_t min_dead_bytes = 4 << 20;
};

// Sealed segments, but for the first and what a merge under way takes, from
// which on the smallest of them are merged beside it.
inline constexpr std::size_t kManySealed = 8;

// Segments [first, end) of a snapshot become one.
struct MergePlan {
  std::size_t first = 0;
  std::size_t end = 0;  // not above first: nothing is to be done
  // The merged segment's indexes learn their lists and all else anew; it is of
  // all segments then. Else keys go to the lists that the first segment's
  // indexes learned.
  bool retrains = false;

  bool needed() const { return first < end; }
  // True if it takes this segment or one behind it; false for null.
  bool TakesFrom(const Snapshot& snapshot, const Segment* segment) const;
};

// Which segments should be sealed next, or merged without waiting for the
// merges below.
//
// Segments that were not trained are scored key by key, which every query pays
// for. Once they are full they are sealed: their keys go to the lists of the
// catalog's training. Where there are none, and merges don't keep up, so that
// there are kManySealed segments, the four neighbours of fewest rows become
// one. `merging`: the last of the segments that a merge under way takes, null
// for none; only those behind it are taken. growing: the rows that writes are
// appended to; null: none.
MergePlan PlanSeal(const Snapshot& snapshot, const RowTable* growing,
                   const Segment* merging, const MergeLimits& limits = {});

// What lies behind the sealed segments, however few rows, for all of them to be
// in files: where there are lists, and all fields go by them. growing: as for
// PlanSeal.
MergePlan PlanTail(const Snapshot& snapshot, const RowTable* growing);

// Which segments should be merged next.
//
// Sealed segments are merged so that each has more rows than all that follow
// it, or several times as many, so that a row is copied O(log n) times; one of
// which many rows are dead, or rows of much memory, is copied without them.
// Once writes have settled all become one, where that is worth it; what would
// be merged among writes still is. The catalog learns anew where other indexes
// or models are wanted, where most rows are dead, where a field has several
// times the keys that it was learned from, and where keys have drifted: their
// mean square distance to their lists' means has grown by a fifth, or a half
// while writes go on. All fields do, which is not worth it for few keys of one.
// Segments that were sealed while it learned go to the new lists at once: a
// query would look for its lists in both trainings.
//
// wanted_models: by field, what snapshot.models should become. growing: as
// above.
MergePlan PlanMerge(const Snapshot& snapshot,
                    const std::vector<NamedModel>& wanted_models,
                    const RowTable* growing, bool settled,
                    const MergeLimits& limits = {});

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_MERGE_PLAN_H_

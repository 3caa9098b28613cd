// Decides which segments of a catalog to merge, and when to retrain.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_MERGE_PLAN_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_MERGE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/attention/models/model.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// The sizes from which a merge pays off; smaller in tests.
struct MergeLimits {
  // Fewer rows do not justify a merge of their own, and fewer keys that were
  // added, removed or have drifted do not justify new lists.
  std::int64_t min_merge_count = 1024;
  // The number of rows at which a growing segment is sealed.
  std::int64_t seal_count = 2048;
  // Memory of dead rows, in bytes, that justifies a merge even if they are
  // fewer.
  std::int64_t min_dead_bytes = 4 << 20;
};

// The number of sealed segments from which the smallest are merged concurrently
// with a running merge. The first segment and those that the running merge
// takes do not count.
inline constexpr std::size_t kManySealed = 8;

// Replaces segments [first, end) of a snapshot by one.
struct MergePlan {
  std::size_t first = 0;
  std::size_t end = 0;  // not above first: nothing to do
  // True: the plan covers all segments, and the merged segment's indexes are
  // trained from scratch. False: keys are assigned to the lists of the first
  // segment's indexes.
  bool retrains = false;

  bool needed() const { return first < end; }
  // True if the plan takes this segment or a later one; false for null.
  bool TakesFrom(const Snapshot& snapshot, const Segment* segment) const;
};

// Returns the segments to seal next, or to merge without waiting for running
// merges.
//
// Untrained segments are scored key by key, which every query pays for. Once
// they are full they are sealed: their keys are assigned to the lists of the
// catalog's training. If no segments are full, but merges do not keep up and
// there are kManySealed sealed segments, the four adjacent segments with the
// fewest rows become one. `merging`: the last segment that a running merge
// takes, null for none; only segments after it are taken. `growing`: the rows
// that writes append to; null for none.
MergePlan PlanSeal(const Snapshot& snapshot, const RowTable* growing,
                   const Segment* merging, const MergeLimits& limits = {});

// Returns the segments after the sealed ones, however few rows they have, so
// that all segments can be saved to files. Applies if there are lists and all
// fields use them. `growing`: as for PlanSeal.
MergePlan PlanTail(const Snapshot& snapshot, const RowTable* growing);

// Returns the segments to merge next.
//
// Sealed segments are merged so that the first has more rows than all that
// follow it, and each other one several times as many; a row is thus copied
// O(log n) times. A segment in which many rows, or rows of much memory, are
// dead is copied without them. Once writes have settled all segments become
// one, if that pays off; merges that are due during writes are still due then.
//
// The catalog is retrained if other indexes or models are wanted, if most rows
// are dead, if a field has several times as many keys as when it was trained,
// or if keys have drifted: their mean square distance from their lists' means
// has grown by a fifth, or by half while writes go on. Retraining covers all
// fields, so few keys of one field do not justify it. Segments sealed during a
// training move to the new lists at once; otherwise a query would have to
// choose lists in both trainings.
//
// wanted_models: by field, what snapshot.models should become. `growing`: as
// above.
MergePlan PlanMerge(const Snapshot& snapshot,
                    const std::vector<NamedModel>& wanted_models,
                    const RowTable* growing, bool settled,
                    const MergeLimits& limits = {});

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_MERGE_PLAN_H_

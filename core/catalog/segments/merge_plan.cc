#include "core/catalog/segments/merge_plan.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <span>

#include "absl/functional/function_ref.h"
#include "core/catalog/segments/snapshot_memory.h"
#include "core/shortlist/ivf/ivf_index.h"

namespace attendant {
namespace {

// Each sealed segment except the first has more than this many times the rows
// of all that follow it: a query visits each segment, and merging takes the
// time that queries leave.
constexpr std::int64_t kMergeRatio = 3;
// The number of segments merged into one when there are many: each row is then
// copied once for every fourfold growth.
constexpr std::size_t kMergedOfMany = 4;
// Without lists: the number of rows up to which segments grow, and the number
// of smaller segments from which they are merged.
constexpr std::int64_t kGrownCount = 65536;
constexpr std::size_t kManyLeft = 24;
// Retraining limits: keys, as a multiple of those the training learned from.
constexpr double kGrowth = 4;
constexpr double kSettledGrowth = 1.5;
constexpr double kShrinkage = 0.25;
// Retraining limits: square distances, as a multiple of the training's.
constexpr double kDrift = 1.5;
constexpr double kSettledDrift = 1.2;

bool SameModels(const std::vector<NamedModel>& a,
                const std::vector<NamedModel>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const NamedModel& x, const NamedModel& y) {
                      return x.model == y.model;
                    });
}

// Estimates the memory of a segment's dead rows, assuming that all rows use the
// same amount.
std::int64_t DeadBytes(const SegmentView& view) {
  if (view.dead_count() == 0) return 0;
  const double share = static_cast<double>(view.dead_count()) /
                       static_cast<double>(view.row_end);
  return static_cast<std::int64_t>(
      share * static_cast<double>(SegmentMemory(*view.segment).sum()));
}

// True if the segments' dead rows justify a merge to drop them.
bool AreWorthDropping(std::span<const SegmentView> views,
                      const MergeLimits& limits) {
  std::int64_t count = 0;
  for (const SegmentView& view : views) count += view.dead_count();
  if (count >= limits.min_merge_count) return true;
  std::int64_t bytes = 0;
  for (const SegmentView& view : views) bytes += DeadBytes(view);
  return bytes >= limits.min_dead_bytes;
}

class Planner {
 public:
  Planner(const Snapshot& snapshot, const RowTable* growing, bool settled,
          const MergeLimits& limits)
      : snapshot_(snapshot),
        growing_(growing),
        settled_(settled),
        limits_(limits) {}

  MergePlan Plan() const {
    if (WantsOtherIndexes() || MostRowsAreDead()) return Everything(true);
    if (WantsOnly({IndexKind::kFlat})) return MergeLeft();
    if (!WantsOnly({IndexKind::kFlat, IndexKind::kIvf})) {
      // Every row outside of the trained segment is scored by each query.
      return IsMuch(OutsideCount()) ? Everything(true) : MergePlan();
    }
    if (IsOutgrown()) return Everything(true);
    if (const MergePlan merge = Reassign(); merge.needed()) return merge;
    if (settled_ &&
        IsMuch(OutsideCount() + snapshot_.segments[0].dead_count())) {
      return Everything(false);
    }
    if (const MergePlan merge = MergeSealed(); merge.needed()) return merge;
    return DropDead();
  }

  // Returns exactly the full segments after `merging`, and the ones between
  // them that will never be full.
  MergePlan Seal(const Segment* merging) const {
    if (!MaySeal()) return {};
    const std::size_t begin = SealedEnd(EndOf(merging));
    std::size_t end = begin;
    std::int64_t row_count = 0;
    for (std::size_t i = begin; i < snapshot_.segments.size(); ++i) {
      const SegmentView& view = snapshot_.segments[i];
      if (IsGrowing(i) && view.row_end < view.segment->rows->capacity()) break;
      row_count += view.row_end;
      end = i + 1;
    }
    if (row_count < limits_.seal_count) {
      // Never includes the segment with most of the keys.
      return MergeFew(std::max<std::size_t>(1, EndOf(merging)), begin);
    }
    return {begin, end, false};
  }

  MergePlan Tail() const {
    if (!MaySeal()) return {};
    return {SealedEnd(), snapshot_.segments.size(), false};
  }

 private:
  bool MaySeal() const {
    return WantsOnly({IndexKind::kFlat, IndexKind::kIvf}) && HasLists();
  }

  bool WantsOnly(std::initializer_list<IndexKind> kinds) const {
    const auto& wanted = snapshot_.wanted_indexes;
    return std::ranges::all_of(wanted, [&](IndexKind kind) {
      return std::ranges::find(kinds, kind) != kinds.end();
    });
  }

  // True if every field that wants lists and has keys has them, and at least
  // one does.
  bool HasLists() const {
    bool any = false;
    for (std::size_t f = 0; f < snapshot_.wanted_indexes.size(); ++f) {
      if (snapshot_.wanted_indexes[f] != IndexKind::kIvf) continue;
      if (snapshot_.key_count(static_cast<int>(f)) == 0) continue;
      if (snapshot_.QueriedIndex(0, static_cast<int>(f)).kind() !=
          IndexKind::kIvf) {
        return false;
      }
      any = true;
    }
    return any;
  }

  // Returns the position after `segment`; 0 if it is null.
  std::size_t EndOf(const Segment* segment) const {
    for (std::size_t i = 0; i < snapshot_.segments.size(); ++i) {
      if (snapshot_.segments[i].segment.get() == segment) return i + 1;
    }
    return 0;
  }

  MergePlan Everything(bool retrains) const {
    return {0, snapshot_.segments.size(), retrains};
  }

  bool IsMuch(std::int64_t row_count) const {
    return row_count >= std::max(limits_.min_merge_count,
                                 snapshot_.item_count() / (settled_ ? 50 : 4));
  }

  std::int64_t OutsideCount() const {
    std::int64_t count = 0;
    for (std::size_t i = 1; i < snapshot_.segments.size(); ++i) {
      count += snapshot_.segments[i].row_end;
    }
    return count;
  }

  bool MostRowsAreDead() const {
    std::int64_t dead = 0;
    for (const SegmentView& view : snapshot_.segments) {
      dead += view.dead_count();
    }
    return dead > snapshot_.item_count() &&
           AreWorthDropping(snapshot_.segments, limits_);
  }

  bool WantsOtherIndexes() const {
    for (std::size_t f = 0; f < snapshot_.wanted_indexes.size(); ++f) {
      const IndexKind wanted = snapshot_.wanted_indexes[f];
      const KeyIndex& index = snapshot_.QueriedIndex(0, static_cast<int>(f));
      const bool is_elsewhere = MayKeepKeysOnDisk(wanted) &&
                                snapshot_.schema->key_fields[f].keys_on_disk !=
                                    (index.disk_bytes() > 0);
      if ((wanted != index.kind() || is_elsewhere) &&
          snapshot_.key_count(static_cast<int>(f)) > 0) {
        return true;
      }
    }
    return false;
  }

  // True if an IVF index of one field and head (-1: of the field's own keys),
  // over all segments that have one, has outgrown its training.
  bool IsOutgrown(int field, int head) const {
    double keys = 0;
    double distance_sum = 0;
    double indexed_keys = 0;
    const IvfIndex* first = nullptr;
    for (const SegmentView& view : snapshot_.segments) {
      const auto count = static_cast<double>(view.live_key_counts[field]);
      keys += count;
      const KeyIndex& index = view.segment->IndexOf(field, head);
      if (index.kind() != IndexKind::kIvf) continue;
      const auto& ivf = static_cast<const IvfIndex&>(index);
      if (first == nullptr) first = &ivf;
      distance_sum += count * ivf.square_distance();
      indexed_keys += count;
    }
    if (first == nullptr) return false;
    const auto trained = static_cast<double>(first->trained_key_count());
    if (std::abs(keys - trained) >= limits_.min_merge_count) {
      if (keys > (settled_ ? kSettledGrowth : kGrowth) * trained) return true;
      if (settled_ && keys < kShrinkage * trained) return true;
    }
    return indexed_keys >= limits_.min_merge_count &&
           distance_sum / indexed_keys > (settled_ ? kSettledDrift : kDrift) *
                                             first->trained_square_distance();
  }

  // True if any(field, head) is true for some head; head -1 stands for the
  // field's own keys.
  bool AnyFieldAndHead(absl::FunctionRef<bool(int field, int head)> any) const {
    const auto& heads = snapshot_.segments[0].segment->head_indexes;
    for (std::size_t f = 0; f < heads.size(); ++f) {
      const auto head_count = static_cast<int>(heads[f].size());
      for (int h = -1; h < head_count; ++h) {
        if (any(static_cast<int>(f), h)) return true;
      }
    }
    return false;
  }

  bool IsOutgrown() const {
    return AnyFieldAndHead([&](int f, int h) { return IsOutgrown(f, h); });
  }

  // True if all fields of the segment have the indexes they want.
  bool IsSealed(std::size_t i) const {
    for (std::size_t f = 0; f < snapshot_.wanted_indexes.size(); ++f) {
      if (snapshot_.wanted_indexes[f] == IndexKind::kIvf &&
          snapshot_.segments[i].live_key_counts[f] > 0 &&
          snapshot_.QueriedIndex(i, static_cast<int>(f)).kind() !=
              IndexKind::kIvf) {
        return false;
      }
    }
    return true;
  }

  // Returns the first segment from `begin` on that is not sealed.
  std::size_t SealedEnd(std::size_t begin = 0) const {
    std::size_t end = begin;
    while (end < snapshot_.segments.size() && IsSealed(end) &&
           !IsGrowing(end)) {
      ++end;
    }
    return end;
  }

  bool IsGrowing(std::size_t i) const {
    return snapshot_.segments[i].segment->rows.get() == growing_;
  }

  // Merges from the first sealed segment that is not large enough compared to
  // those that follow.
  MergePlan MergeSealed() const {
    const std::size_t end = SealedEnd();
    std::size_t begin = end;
    std::int64_t later = 0;
    for (std::size_t i = end; i-- > 0;) {
      const std::int64_t row_count = snapshot_.segments[i].row_end;
      if (later * (i == 0 ? 1 : kMergeRatio) >= row_count) begin = i;
      later += row_count;
    }
    return begin < end ? MergePlan{begin, end, false} : MergePlan();
  }

  // Used where nothing is ever sealed and segments double up to kGrownCount.
  // There are more segments after failed writes, each of which leaves one
  // behind.
  MergePlan MergeLeft() const {
    std::size_t end = snapshot_.segments.size();
    if (IsGrowing(end - 1)) --end;
    const auto grown =
        static_cast<std::size_t>(snapshot_.item_count() / kGrownCount);
    return end < kManyLeft + grown ? MergePlan() : MergeFew(0, end);
  }

  // Merges the adjacent segments with the fewest rows, if [begin, end) has
  // many.
  MergePlan MergeFew(std::size_t begin, std::size_t end) const {
    if (end < begin + kManySealed) return {};
    MergePlan fewest;
    std::int64_t fewest_rows = 0;
    for (std::size_t i = begin; i + kMergedOfMany <= end; ++i) {
      std::int64_t row_count = 0;
      for (std::size_t j = i; j < i + kMergedOfMany; ++j) {
        row_count += snapshot_.segments[j].row_end;
      }
      if (fewest.needed() && row_count >= fewest_rows) continue;
      fewest = {i, i + kMergedOfMany, false};
      fewest_rows = row_count;
    }
    return fewest;
  }

  // True if some index of the segment uses another training than the first
  // segment's.
  bool IsOfOtherTraining(std::size_t i) const {
    const Segment& first = *snapshot_.segments[0].segment;
    const Segment& segment = *snapshot_.segments[i].segment;
    return AnyFieldAndHead([&](int f, int h) {
      const KeyIndex& learned = first.IndexOf(f, h);
      const KeyIndex& index = segment.IndexOf(f, h);
      return learned.kind() == IndexKind::kIvf &&
             index.kind() == IndexKind::kIvf &&
             learned.training() != index.training();
    });
  }

  // Returns the first run of sealed segments that use another training.
  MergePlan Reassign() const {
    const std::size_t sealed_end = SealedEnd();
    std::size_t begin = 1;
    while (begin < sealed_end && !IsOfOtherTraining(begin)) ++begin;
    std::size_t end = begin;
    while (end < sealed_end && IsOfOtherTraining(end)) ++end;
    return begin < end ? MergePlan{begin, end, false} : MergePlan();
  }

  MergePlan DropDead() const {
    for (std::size_t i = 0; i < SealedEnd(); ++i) {
      const SegmentView& view = snapshot_.segments[i];
      if (view.dead_count() > view.live_count / 3 &&
          AreWorthDropping({&view, 1}, limits_)) {
        return {i, i + 1, false};
      }
    }
    return {};
  }

  const Snapshot& snapshot_;
  const RowTable* const growing_;
  const bool settled_;
  const MergeLimits limits_;
};

}  // namespace

bool MergePlan::TakesFrom(const Snapshot& snapshot,
                          const Segment* segment) const {
  for (std::size_t i = 0; i < end; ++i) {
    if (snapshot.segments[i].segment.get() == segment) return true;
  }
  return false;
}

MergePlan PlanSeal(const Snapshot& snapshot, const RowTable* growing,
                   const Segment* merging, const MergeLimits& limits) {
  if (snapshot.segments.empty()) return {};
  return Planner(snapshot, growing, /*settled=*/false, limits).Seal(merging);
}

MergePlan PlanTail(const Snapshot& snapshot, const RowTable* growing) {
  if (snapshot.segments.empty()) return {};
  return Planner(snapshot, growing, /*settled=*/false, MergeLimits()).Tail();
}

MergePlan PlanMerge(const Snapshot& snapshot,
                    const std::vector<NamedModel>& wanted_models,
                    const RowTable* growing, bool settled,
                    const MergeLimits& limits) {
  if (snapshot.segments.empty()) return {};
  if (!SameModels(wanted_models, snapshot.models)) {
    return {0, snapshot.segments.size(), true};
  }
  return Planner(snapshot, growing, settled, limits).Plan();
}

}  // namespace attendant

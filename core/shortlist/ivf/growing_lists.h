// Inverted lists of rows that are still being appended. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_IVF_GROWING_LISTS_H_
#define ATTENDANT_CORE_SHORTLIST_IVF_GROWING_LISTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/ids.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "core/shortlist/scan/eligible_rows.h"

namespace attendant {

// Assigns the rows of a segment to the lists of a training, so that a query
// which visits some lists finds their rows in the segment without looking at
// every row. A list is a chain from its newest row to its oldest.
//
// One writer assigns rows; readers collect those below the row_end of their
// snapshot at the same time, without locks. Publication of the rows must
// synchronise.
class GrowingLists {
 public:
  // Holds at most `capacity` rows. `training` must have an assigner.
  GrowingLists(std::shared_ptr<const IvfTraining> training,
               std::int64_t capacity);

  const std::shared_ptr<const IvfTraining>& training() const {
    return training_;
  }

  // Assigns the rows below row_end that are not assigned yet. key_of returns an
  // empty span for a row without a key, which is in no list. Writer only.
  // Throws std::bad_alloc, in which case nothing has changed.
  void Assign(RowIndex row_end,
              absl::FunctionRef<std::span<const float>(RowIndex row)> key_of);

  // Returns the list of an assigned row; -1 if it is in none.
  std::int32_t ListOf(RowIndex row) const { return list_of_[row]; }
  // As ListOf, for all rows below row_end.
  std::span<const std::int32_t> ListsBelow(RowIndex row_end) const {
    return {list_of_.data(), static_cast<std::size_t>(row_end)};
  }

  // Sets `rows` to the eligible rows of `lists`, list by list, newest first.
  void Collect(std::span<const std::int32_t> lists,
               const EligibleRows& eligible, std::vector<RowIndex>& rows) const;

  std::int64_t memory_bytes() const;

 private:
  const std::shared_ptr<const IvfTraining> training_;
  RowIndex assigned_end_ = 0;                  // writer only
  std::vector<std::atomic<RowIndex>> newest_;  // by list; -1: none
  // For each row up to the capacity: the next older row of the same list, or
  // -1, and the list.
  std::vector<RowIndex> older_;
  std::vector<std::int32_t> list_of_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_IVF_GROWING_LISTS_H_

#include "core/shortlist/ivf/growing_lists.h"

#include <utility>

namespace attendant {

GrowingLists::GrowingLists(std::shared_ptr<const IvfTraining> training,
                           std::int64_t capacity)
    : training_(std::move(training)),
      newest_(static_cast<std::size_t>(training_->means->list_count())),
      older_(static_cast<std::size_t>(capacity), -1),
      list_of_(static_cast<std::size_t>(capacity), -1) {
  for (std::atomic<RowIndex>& newest : newest_) {
    newest.store(-1, std::memory_order_relaxed);
  }
}

void GrowingLists::Assign(
    RowIndex row_end,
    absl::FunctionRef<std::span<const float>(RowIndex row)> key_of) {
  thread_local ListAssigner::Scratch scratch;
  std::vector<RowIndex> keyed;
  for (RowIndex row = assigned_end_; row < row_end; ++row) {
    if (!key_of(row).empty()) keyed.push_back(row);
  }
  std::vector<std::int32_t> lists(keyed.size());
  training_->assigner->Assign(
      static_cast<std::int64_t>(keyed.size()),
      [&](std::int64_t i) { return key_of(keyed[i]); }, lists.data(), scratch);
  for (std::size_t i = 0; i < keyed.size(); ++i) {
    const auto row = static_cast<std::size_t>(keyed[i]);
    std::atomic<RowIndex>& newest = newest_[lists[i]];
    list_of_[row] = lists[i];
    older_[row] = newest.load(std::memory_order_relaxed);
    // Readers of older snapshots skip this row on their way to theirs.
    newest.store(keyed[i], std::memory_order_release);
  }
  assigned_end_ = row_end;
}

void GrowingLists::Collect(std::span<const std::int32_t> lists,
                           const EligibleRows& eligible,
                           std::vector<RowIndex>& rows) const {
  rows.clear();
  for (const std::int32_t list : lists) {
    RowIndex row = newest_[list].load(std::memory_order_acquire);
    for (; row >= 0; row = older_[row]) {
      if (eligible.Bit(row) != 0) rows.push_back(row);
    }
  }
}

std::int64_t GrowingLists::memory_bytes() const {
  // Each owner that shares the training accounts for an equal part of it.
  return training_->memory_bytes() / training_.use_count() +
         static_cast<std::int64_t>(newest_.size() * sizeof(newest_[0]) +
                                   older_.size() * sizeof(RowIndex) +
                                   list_of_.size() * sizeof(std::int32_t));
}

}  // namespace attendant

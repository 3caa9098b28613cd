// FlatIndex: keys in the order of their rows.
#ifndef ATTENDANT_CORE_SHORTLIST_KINDS_FLAT_INDEX_H_
#define ATTENDANT_CORE_SHORTLIST_KINDS_FLAT_INDEX_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/aligned_buffer.h"
#include "core/base/scratch_files.h"
#include "core/base/touched_pages.h"
#include "core/shortlist/keys/key_floats.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

class GrowingLists;

// A fixed capacity of rows. One writer appends while readers scan the rows
// below their row_end. A row is complete before it is published and never
// changes afterwards. Publication (making row_end known) must synchronise.
//
// Every scan is exact, with one exception: if the query has chosen lists of the
// same training in another index and may leave keys unscored there, and the
// rows here are few compared with those of the other indexes, the scan scores
// only the rows in the chosen lists.
class FlatIndex : public KeyIndex {
 public:
  // dim in [1, kMaxDimension], capacity >= 1. Pages of memory are first touched
  // as rows are appended. training: that of an IvfIndex, to whose lists rows
  // are assigned unless it has so many lists that writes would wait for the
  // assignment; null: rows are in no lists.
  FlatIndex(std::int64_t dim, std::int64_t capacity,
            std::shared_ptr<const IvfTraining> training = nullptr);
  ~FlatIndex() override;

  // Appends the key of the next row: dim finite floats, or an empty span for a
  // row without a key. Requires that fewer than `capacity` rows were appended.
  // Writer only.
  void Append(std::span<const float> key);
  // Assigns the rows appended since the last call to their lists. Must be
  // called before these rows are published. Throws std::bad_alloc, in which
  // case nothing has changed. Writer only.
  void AssignLists();
  // Moves the keys to a file. To be called after the last row is appended and
  // before any reader sees the rows. Errors as ScratchFiles; throws
  // std::bad_alloc; the keys then stay in memory. Writer only.
  absl::Status MoveKeys(ScratchFiles& files);

  IndexKind kind() const override { return IndexKind::kFlat; }
  std::int64_t dim() const override { return dim_; }
  std::span<const float> Key(RowIndex row) const override;
  std::uint64_t Keyed(std::int64_t w, std::uint64_t rows) const override;
  float inverse_norm(RowIndex row) const override {
    return inverse_norms_[row];
  }
  double max_norm() const override {
    return max_norm_.load(std::memory_order_relaxed);
  }
  absl::StatusOr<ScanStats> Scan(const ScanQuery& query,
                                 AttentionState& state) const override;
  void ScanTogether(std::span<ScanTask> tasks) const override;
  const std::shared_ptr<const IvfTraining>& training() const override;
  std::int32_t ListOf(RowIndex row) const override;
  // `keys` counts the rows appended so far; rows without a key take no memory
  // where they leave whole pages untouched. Any thread.
  MemoryParts memory() const override;

 private:
  // Scores the rows in the lists that the task's query has chosen. Returns
  // false, having done nothing, if all rows are to be scored.
  bool ScanLists(ScanTask& task) const;

  std::int64_t dim_;
  std::atomic<std::int64_t> row_count_ = 0;  // publishes nothing
  // The greatest norm of the rows appended so far, including rows not yet
  // visible to readers.
  std::atomic<double> max_norm_ = 0;
  KeyFloats keys_;             // [capacity, dim]; in a file [rows, dim]
  float* writable_keys_;       // keys_ in memory; null: they are in a file
  TouchedPages touched_keys_;  // of writable_keys_; writer only
  std::atomic<std::int64_t> key_bytes_ = 0;
  // 1 / |key|; 0 for a zero key; NaN for a row without a key.
  AlignedBuffer<float> inverse_norms_;
  std::unique_ptr<GrowingLists> lists_;  // null: rows are in no lists
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_FLAT_INDEX_H_

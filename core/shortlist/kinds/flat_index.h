// Keys in the order of their rows.
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

// A fixed capacity of rows that one writer appends to while readers scan the
// rows below their row_end: a row is complete before it is published, and never
// changes after. Publication (making row_end known) must synchronise.
//
// Every scan is exact, but for that of a query which has chosen lists of the
// same training in another index, and may leave keys unscored there: of rows
// that are few beside those of other indexes it scores what is in its lists.
class FlatIndex : public KeyIndex {
 public:
  // dim in [1, kMaxDimension], capacity >= 1. Memory is touched as rows are
  // appended.
  // training: that of an IvfIndex in whose lists rows are, unless it has so
  // many that writes would wait for it; null: in none.
  FlatIndex(std::int64_t dim, std::int64_t capacity,
            std::shared_ptr<const IvfTraining> training = nullptr);
  ~FlatIndex() override;

  // Appends the key of the next row: dim finite floats, or an empty span for a
  // row without a key. Fewer than capacity rows so far. Writer only.
  void Append(std::span<const float> key);
  // Assigns the rows that were appended since it was last called to their
  // lists; to be called before they are published. Writer only. Throws
  // std::bad_alloc; then nothing has changed.
  void AssignLists();
  // Moves the keys to a file: of rows that nobody reads yet, after the last one
  // is appended. Errors of ScratchFiles; throws std::bad_alloc; either leaves
  // them in memory. Writer only.
  absl::Status MoveKeys(ScratchFiles& files);

  IndexKind kind() const override { return IndexKind::kFlat; }
  std::int64_t dim() const override { return dim_; }
  std::span<const float> Key(RowIndex row) const override;
  std::uint64_t Keyed(std::int64_t w, std::uint64_t rows) const override;
  float inverse_norm(RowIndex row) const override {
    return inverse_norms_[static_cast<std::size_t>(row)];
  }
  double max_norm() const override {
    return max_norm_.load(std::memory_order_relaxed);
  }
  absl::StatusOr<ScanStats> Scan(const ScanQuery& query,
                                 AttentionState& state) const override;
  void ScanTogether(std::span<ScanTask> tasks) const override;
  const std::shared_ptr<const IvfTraining>& training() const override;
  std::int32_t ListOf(RowIndex row) const override;
  // Keys are those of the rows appended so far: in memory, rows without one
  // take none where they leave whole pages alone. Any thread.
  MemoryParts memory() const override;

 private:
  // Scores what the lists hold that the task's query has chosen; false if all
  // rows are to be scored.
  bool ScanLists(ScanTask& task) const;

  std::int64_t dim_;
  std::atomic<std::int64_t> row_count_ = 0;  // publishes nothing
  // Of the rows appended so far, which a reader may see before it sees them.
  std::atomic<double> max_norm_ = 0;
  KeyFloats keys_;             // [capacity, dim]; in a file [rows, dim]
  float* writable_keys_;       // the same in memory; null: they are in a file
  TouchedPages touched_keys_;  // of these; the writer's
  std::atomic<std::int64_t> key_bytes_ = 0;
  // 1 / |key|; 0 for a zero key; NaN for a row without a key.
  AlignedBuffer<float> inverse_norms_;
  std::unique_ptr<GrowingLists> lists_;  // null: rows are in none
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_FLAT_INDEX_H_

// Keys in the order of their rows; every scan is exact.
#ifndef ATTENDANT_CORE_SHORTLIST_FLAT_INDEX_H_
#define ATTENDANT_CORE_SHORTLIST_FLAT_INDEX_H_

#include <atomic>
#include <cstdint>
#include <span>

#include "core/base/aligned_buffer.h"
#include "core/shortlist/key_index.h"

namespace attendant {

// A fixed capacity of rows that one writer appends to while readers scan the
// rows below their row_end: a row is complete before it is published, and never
// changes after. Publication (making row_end known) must synchronise.
class FlatIndex : public KeyIndex {
 public:
  // dim in [1, 8192], capacity >= 1. Memory is touched as rows are appended.
  FlatIndex(std::int64_t dim, std::int64_t capacity);

  // Appends the key of the next row: dim finite floats, or an empty span for a
  // row without a key. Fewer than capacity rows so far. Writer only.
  void Append(std::span<const float> key);

  IndexKind kind() const override { return IndexKind::kFlat; }
  std::int64_t dim() const override { return dim_; }
  std::span<const float> Key(RowIndex row) const override;
  absl::StatusOr<ScanStats> Scan(const ScanQuery& query,
                                 AttentionState& state) const override;
  void ScanTogether(std::span<ScanTask> tasks) const override;
  // Of the rows appended so far. Any thread.
  MemoryParts memory() const override;

 private:
  std::int64_t dim_;
  std::atomic<std::int64_t> row_count_ = 0;  // publishes nothing
  AlignedBuffer<float> keys_;                // [capacity, dim]
  // 1 / |key|; 0 for a zero key; NaN for a row without a key.
  AlignedBuffer<float> inverse_norms_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_FLAT_INDEX_H_

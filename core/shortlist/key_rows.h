// The keys of a segment for indexes that find rows one by one. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KEY_ROWS_H_
#define ATTENDANT_CORE_SHORTLIST_KEY_ROWS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/aligned_buffer.h"
#include "core/base/bitmap.h"
#include "core/base/ids.h"
#include "core/base/views.h"
#include "core/shortlist/key_index.h"
#include "core/shortlist/row_scan.h"

namespace attendant {

// Keys in the order of their rows, without the rows that have none: position p
// is that of row rows()[p]. Immutable.
class KeyRows {
 public:
  // keys[r] is the key of row r, dim floats, or empty. Throws std::bad_alloc.
  KeyRows(std::span<const std::span<const float>> keys, std::int64_t dim);

  std::int64_t dim() const { return dim_; }
  std::int64_t key_count() const {
    return static_cast<std::int64_t>(rows_.size());
  }
  MatrixView keys() const { return {keys_.data(), key_count(), dim_}; }
  // By position; see InverseNorm. None is NaN.
  std::span<const float> inverse_norms() const { return inverse_norms_; }
  std::span<const RowIndex> rows() const { return rows_; }
  // Of a row, or empty.
  std::span<const float> KeyOf(RowIndex row) const;

  // The eligible rows that have keys.
  struct Eligible {
    bool all = false;  // every row that has one; rows is then not filled
    Bitmap rows;
    std::int64_t count = 0;
  };
  Eligible FindEligible(const ScanQuery& query) const;

  // Scores all eligible rows.
  absl::StatusOr<ScanStats> ScanExactly(const ScanQuery& query,
                                        const Eligible& eligible,
                                        AttentionState& state) const;
  // About the nanoseconds that this takes, measured on 1,000,000 keys of 128
  // floats; only ratios matter.
  double CostOfExactScan(const Eligible& eligible) const;
  // Of reading and scoring one key that lies anywhere.
  double CostOfKeyAnywhere() const { return 2.7 * CostOfKey(); }

  // Scores these positions, each once, of eligible rows.
  absl::Status ScanPositions(std::span<const std::int32_t> positions,
                             RowScan& scan) const;

  std::int64_t memory_bytes() const;

 private:
  double CostOfKey() const { return 5 + 0.22 * static_cast<double>(dim_); }
  absl::Status ScanEligible(const Bitmap& eligible, RowScan& scan) const;

  const std::int64_t dim_;
  AlignedBuffer<float> keys_;  // [key_count, dim]
  std::vector<float> inverse_norms_;
  std::vector<RowIndex> rows_;
  std::vector<std::int32_t> positions_;  // by row; -1: no key
  Bitmap keyed_;                         // rows with keys
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEY_ROWS_H_

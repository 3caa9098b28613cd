// The inner part of a scan, which every index shares: tests which rows are
// eligible, scores them, and adds them to the state. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_SCAN_ROW_SCAN_H_
#define ATTENDANT_CORE_SHORTLIST_SCAN_ROW_SCAN_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "core/shortlist/scan/eligible_rows.h"
#include "core/shortlist/scan/key_index.h"
#include "core/shortlist/scan/key_scorer.h"

namespace attendant {

// Consecutive keys in memory; key i is at keys + i * dim.
struct KeyRun {
  const float* keys = nullptr;
  const float* inverse_norms = nullptr;  // see InverseNorm; NaN: no key
  // Key i belongs to row rows[i], or to first_row + i if `rows` is null.
  const RowIndex* rows = nullptr;
  RowIndex first_row = 0;
  std::int64_t count = 0;
  // KeyScorer's similarities of the query and each key, if already known.
  const float* similarities = nullptr;
  bool all_keyed = false;  // no inverse norm is known to be NaN

  // Returns the `length` keys from `begin` on.
  KeyRun Part(std::int64_t dim, std::int64_t begin, std::int64_t length) const {
    KeyRun part = *this;
    part.keys += begin * dim;
    part.inverse_norms += begin;
    if (rows != nullptr) part.rows += begin;
    part.first_row += static_cast<RowIndex>(begin);
    part.count = length;
    if (similarities != nullptr) part.similarities += begin;
    return part;
  }
};

// Scores runs of keys and hands them to the state in blocks. Rows that are
// masked, not visible or without a key are skipped before they are scored, so
// they cost nothing in the state. Blocks are filled with eligible rows in their
// order: what the state sees does not depend on how rows were divided into
// runs. Holds its scratch (16 KB). Not thread-safe.
//
// Order: Start, any number of scans, Finish.
class RowScan {
 public:
  // Rows that the state takes at once.
  static constexpr std::int64_t kBlockRows = 1024;

  // Both arguments must outlive the object.
  RowScan(const ScanQuery& query, AttentionState& state);

  // InvalidArgument if the logit factor overflows a float; or the error of an
  // interrupt.
  absl::Status Start();

  // Scores a run with `rows` set. all_eligible: no row is masked, and all are
  // visible and have keys.
  absl::Status Scan(const KeyRun& run, bool all_eligible);
  // Scores a run of consecutive rows; `rows` may be set as well. For stretches
  // where all rows are masked it reads only the mask words.
  absl::Status ScanConsecutive(const KeyRun& run);
  // Scores rows[i], all of them eligible, with the key at positions[i].
  absl::Status ScanScattered(const float* keys, const float* inverse_norms,
                             std::span<const RowIndex> rows,
                             std::span<const std::int32_t> positions);

  // Adds an eligible row whose similarity, as KeyScorer gives it, is known.
  absl::Status AddScored(const float* key, RowIndex row, float similarity) {
    similarities_[block_count_] = similarity;
    rows_[block_count_] = row;
    if (pools_) values_[block_count_] = ValueOf(row, key);
    return ++block_count_ == kBlockRows ? Flush() : absl::OkStatus();
  }

  absl::Status Finish();

  // Rows accepted so far; after Finish all of them are scored.
  std::int64_t scored_count() const { return scored_count_ + block_count_; }

 private:
  // Rows between two checks of the interrupt.
  static constexpr std::int64_t kInterruptRows = 4096;

  // Prefetches a key that will be scored.
  void Prefetch(const float* keys, std::int64_t position) const;
  absl::Status CountTowardsInterrupt(std::int64_t row_count);
  // Scores all keys, at most kBlockRows, and keeps those at `passing`; faster
  // than many short runs if most keys pass.
  absl::Status ScoreDense(const KeyRun& run,
                          std::span<const std::int32_t> passing);
  // Returns the value to pool for a row with this key.
  const float* ValueOf(RowIndex row, const float* key) const {
    const float* value =
        query_.values == nullptr ? nullptr : query_.values->ValueOf(row);
    return value == nullptr ? key : value;
  }
  // Scores unmasked rows, skipping those without a key.
  absl::Status ScoreKeyed(const KeyRun& run);
  // Scores keys that are all eligible.
  absl::Status ScoreRun(KeyRun run);
  // Hands a block to the state.
  absl::Status Add(const RowIndex* rows, const float* similarities,
                   std::int64_t count);
  absl::Status Flush();

  const ScanQuery& query_;
  AttentionState& state_;
  KeyScorer scorer_;
  const std::int64_t dim_;  // of keys in the index
  const bool pools_;
  std::int64_t scored_count_ = 0;
  std::int64_t rows_since_check_ = 0;
  const EligibleRows eligible_;
  std::int64_t block_count_ = 0;  // rows that wait for Flush
  alignas(64) float similarities_[kBlockRows];
  alignas(64) RowIndex rows_[kBlockRows];
  alignas(64) const float* values_[kBlockRows];
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_ROW_SCAN_H_

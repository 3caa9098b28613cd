// The inside of a scan, which every index shares: which rows are eligible, what
// they score, and into the state. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_SCAN_ROW_SCAN_H_
#define ATTENDANT_CORE_SHORTLIST_SCAN_ROW_SCAN_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "core/shortlist/scan/eligible_rows.h"
#include "core/shortlist/scan/key_index.h"
#include "core/shortlist/scan/key_scorer.h"

namespace attendant {

// Keys that lie one after the other in memory, key i at keys + i * dim.
struct KeyRun {
  const float* keys = nullptr;
  const float* inverse_norms = nullptr;  // see InverseNorm; NaN: no key
  // Row i is rows[i], or first_row + i if that is null.
  const RowIndex* rows = nullptr;
  RowIndex first_row = 0;
  std::int64_t count = 0;
  // Of the query and each key, if they are known already: KeyScorer's.
  const float* similarities = nullptr;
  bool all_keyed = false;  // known to have no NaN among the inverse norms

  // The `length` keys from `begin` on.
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

// Scores runs of keys that lie one after the other in memory and hands them to
// the state in blocks. Rows that are masked, not visible or without a key are
// left out before anything is scored, so they weigh nothing. Blocks are filled
// with eligible rows in their order: what the state sees does not depend on how
// they came in runs. Holds its scratch (16 KB). Not thread-safe.
//
// Order: Start, Scan any number of times, Finish.
class RowScan {
 public:
  // Rows that the state takes at once.
  static constexpr std::int64_t kBlockRows = 1024;

  // All must outlive the object.
  RowScan(const ScanQuery& query, AttentionState& state);

  // InvalidArgument if the factor is beyond a float; an interrupt.
  absl::Status Start();

  // Scores a run whose rows are given. all_eligible: nothing is masked, all are
  // visible and have keys.
  absl::Status Scan(const KeyRun& run, bool all_eligible);
  // The same of consecutive rows, which may be given as well. Where all are
  // masked, only the words of the masks are looked at.
  absl::Status ScanConsecutive(const KeyRun& run);
  // Scores rows[i], all of them eligible, with key positions[i].
  absl::Status ScanScattered(const float* keys, const float* inverse_norms,
                             std::span<const RowIndex> rows,
                             std::span<const std::int32_t> positions);

  // Takes over the similarity of an eligible row, KeyScorer's for its key.
  absl::Status AddScored(const float* key, RowIndex row, float similarity) {
    similarities_[block_count_] = similarity;
    rows_[block_count_] = row;
    if (pools_) values_[block_count_] = ValueOf(row, key);
    return ++block_count_ == kBlockRows ? Flush() : absl::OkStatus();
  }

  absl::Status Finish();

  // Rows that were taken to be scored; after Finish all of them are.
  std::int64_t scored_count() const { return scored_count_ + block_count_; }

 private:
  // Rows between two looks at the interrupt.
  static constexpr std::int64_t kInterruptRows = 4096;

  // Asks for a key that will be scored.
  void Prefetch(const float* keys, std::int64_t position) const;
  absl::Status CountTowardsInterrupt(std::int64_t row_count);
  // Scores all keys, at most kBlockRows, and keeps those at `passing`: quicker
  // than many short runs where most pass.
  absl::Status ScoreDense(const KeyRun& run,
                          std::span<const std::int32_t> passing);
  // What is pooled for a row with this key.
  const float* ValueOf(RowIndex row, const float* key) const {
    const float* value =
        query_.values == nullptr ? nullptr : query_.values->ValueOf(row);
    return value == nullptr ? key : value;
  }
  // Scores unmasked rows, but for those without a key.
  absl::Status ScoreKeyed(const KeyRun& run);
  // Scores eligible keys.
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

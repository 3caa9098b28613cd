// Exhaustive scans from floats, in passes over the keys that several queries
// share; and how much of an index a query must see to share any. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_SCAN_SHARED_SCAN_H_
#define ATTENDANT_CORE_SHORTLIST_SCAN_SHARED_SCAN_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "core/base/ids.h"
#include "core/base/views.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// Where fewer than one row in so many is eligible, a query scores those alone:
// to read a key takes about as long as to multiply it by so many queries.
inline constexpr std::int64_t kRowsPerEligible = 8;

// With at least this share of an index's keys eligible, a query of few lists or
// of codes is scanned with others that have all, and leaves out what it may not
// see.
inline constexpr double kMostlyEligible = 0.5;

// Keys that lie one after the other in memory.
struct StoredKeys {
  const float* keys = nullptr;           // [key_count, dim]
  const float* inverse_norms = nullptr;  // [key_count]; NaN: no key
  const RowIndex* rows = nullptr;        // [key_count]; null: key p is row p's
  std::int64_t key_count = 0;
  std::int64_t dim = 0;
  // No row is at or past this.
  RowIndex row_end = 0;
};

// Adds to the state of each task every eligible key, from its floats, in the
// order of `keys`, and sets the task's stats: all are exact. A query's bytes
// are the same alone and with any others.
//
// A query alone is bound by memory: it reads a key of 128 floats for as many
// products. So blocks of keys are read once for up to 64 queries, which take
// them in tiles that stay in registers (Kernels::DotRowsMulti); each then makes
// its sums of the block's logits, which are still in the cache. Queries whose
// logits are no products (ADDITIVE, projections of their own), or of which
// masks leave few rows, read for themselves.
void ScanEveryKey(const StoredKeys& keys, std::span<ScanTask* const> tasks);

// KeyIndex::Scan of an index, by its ScanTogether.
absl::StatusOr<ScanStats> ScanAlone(const KeyIndex& index,
                                    const ScanQuery& query,
                                    AttentionState& state);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_SHARED_SCAN_H_

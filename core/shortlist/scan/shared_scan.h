// Exhaustive scans from floats, in passes over the keys that several queries
// share; and the share of an index that a query must see to join them.
// Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_SCAN_SHARED_SCAN_H_
#define ATTENDANT_CORE_SHORTLIST_SCAN_SHARED_SCAN_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "core/base/ids.h"
#include "core/base/views.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// If fewer than one row in this many is eligible, a query scores the eligible
// rows alone: reading a key takes about as long as multiplying it by this many
// queries.
inline constexpr std::int64_t kRowsPerEligible = 8;

// If at least this share of an index's keys is eligible, a query of few lists
// or of codes is scanned together with queries that see all keys, and skips the
// keys it may not see.
inline constexpr double kMostlyEligible = 0.5;

// Consecutive keys in memory.
struct StoredKeys {
  const float* keys = nullptr;           // [key_count, dim]
  const float* inverse_norms = nullptr;  // [key_count]; NaN: no key
  const RowIndex* rows = nullptr;        // [key_count]; null: key p is of row p
  std::int64_t key_count = 0;
  std::int64_t dim = 0;
  // All rows are below this.
  RowIndex row_end = 0;
};

// Adds every eligible key to the state of each task, from its floats and in the
// order of `keys`, and sets the task's stats, which are all exact. The results
// for a query are the same bytes alone and together with others.
//
// A single query is bound by memory: it reads a key of 128 floats for 128
// products. So blocks of keys are read once for up to 64 queries, which
// multiply them in tiles that stay in registers (Kernels::DotRowsMulti); each
// query then adds up the logits of the block while they are still in the cache.
// Queries whose logits are not products (ADDITIVE, projections of their own),
// or to which masks leave few rows, read the keys by themselves.
void ScanEveryKey(const StoredKeys& keys, std::span<ScanTask* const> tasks);

// Implements KeyIndex::Scan of an index by its ScanTogether.
absl::StatusOr<ScanStats> ScanAlone(const KeyIndex& index,
                                    const ScanQuery& query,
                                    AttentionState& state);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_SHARED_SCAN_H_

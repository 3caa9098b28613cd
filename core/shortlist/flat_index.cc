#include "core/shortlist/flat_index.h"

#include <algorithm>
#include <cmath>

#include "core/base/status.h"
#include "core/shortlist/inverse_norm.h"
#include "core/shortlist/row_scan.h"

namespace attendant {

FlatIndex::FlatIndex(std::int64_t dim, std::int64_t capacity)
    : dim_(dim),
      keys_(static_cast<std::size_t>(capacity * dim)),
      inverse_norms_(static_cast<std::size_t>(capacity)) {}

void FlatIndex::Append(std::span<const float> key) {
  const std::int64_t row = row_count_.load(std::memory_order_relaxed);
  std::copy(key.begin(), key.end(), keys_.data() + row * dim_);
  inverse_norms_[static_cast<std::size_t>(row)] = InverseNorm(key);
  row_count_.store(row + 1, std::memory_order_relaxed);
}

std::span<const float> FlatIndex::Key(RowIndex row) const {
  if (std::isnan(inverse_norms_[static_cast<std::size_t>(row)])) return {};
  return {keys_.data() + row * dim_, static_cast<std::size_t>(dim_)};
}

absl::StatusOr<ScanStats> FlatIndex::Scan(const ScanQuery& query,
                                          AttentionState& state) const {
  RowScan scan(query, state);
  ATTENDANT_RETURN_IF_ERROR(scan.Start());
  ATTENDANT_RETURN_IF_ERROR(scan.ScanConsecutive(
      keys_.data(), inverse_norms_.data(), 0, query.row_end));
  ATTENDANT_RETURN_IF_ERROR(scan.Finish());
  return ScanStats{.scored_count = scan.scored_count(), .complete = true};
}

std::int64_t FlatIndex::memory_bytes() const {
  return row_count_.load(std::memory_order_relaxed) * (dim_ + 1) *
         static_cast<std::int64_t>(sizeof(float));
}

}  // namespace attendant

#include "core/shortlist/row_scan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/base/status.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

absl::Status LogitOverflows() {
  return StatusWithReason(absl::StatusCode::kInvalidArgument,
                          "query: a logit overflows; lower the query's norm or "
                          "raise the temperature",
                          "LOGIT_OVERFLOW");
}

// Infinities and NaN have all exponent bits set. Without a branch, so that the
// compiler vectorises it.
bool AllFinite(const float* numbers, std::int64_t n) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t found = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    found |= (std::bit_cast<std::uint32_t>(numbers[i]) & kExponent) == kExponent
                 ? 1
                 : 0;
  }
  return found == 0;
}

// A row past the end of a bitmap is not in it.
bool Contains(const Bitmap& bitmap, RowIndex row) {
  return row < bitmap.size() && bitmap.Test(row);
}

}  // namespace

RowScan::RowScan(const ScanQuery& query, AttentionState& state)
    : query_(query),
      state_(state),
      dim_(static_cast<std::int64_t>(query.query.size())),
      factor_(static_cast<float>(query.logit_factor)),
      pools_(state.value_dim() > 0) {}

absl::Status RowScan::Start() {
  if (!std::isfinite(factor_)) return LogitOverflows();
  if (query_.interrupt != nullptr) return query_.interrupt->Check();
  return absl::OkStatus();
}

bool RowScan::IsEligible(RowIndex row) const {
  return row < query_.row_end &&
         (query_.excluded == nullptr || !Contains(*query_.excluded, row)) &&
         (query_.allowed == nullptr || Contains(*query_.allowed, row));
}

absl::Status RowScan::CountTowardsInterrupt(std::int64_t row_count) {
  rows_since_check_ += row_count;
  if (rows_since_check_ < kInterruptRows) return absl::OkStatus();
  rows_since_check_ = 0;
  if (query_.interrupt == nullptr) return absl::OkStatus();
  return query_.interrupt->Check();
}

absl::Status RowScan::Scan(const float* keys, const float* inverse_norms,
                           std::span<const RowIndex> rows, bool all_eligible) {
  const auto row_count = static_cast<std::int64_t>(rows.size());
  ATTENDANT_RETURN_IF_ERROR(CountTowardsInterrupt(row_count));
  if (all_eligible) {
    return ScoreRun(keys, inverse_norms, rows.data(), 0, row_count);
  }
  for (std::int64_t i = 0; i < row_count;) {
    const std::int64_t begin = i;
    while (i < row_count && !std::isnan(inverse_norms[i]) &&
           IsEligible(rows[static_cast<std::size_t>(i)])) {
      ++i;
    }
    ATTENDANT_RETURN_IF_ERROR(ScoreRun(keys + begin * dim_,
                                       inverse_norms + begin,
                                       rows.data() + begin, 0, i - begin));
    ++i;  // what ended the run is not eligible
  }
  return absl::OkStatus();
}

absl::Status RowScan::ScanConsecutive(const float* keys,
                                      const float* inverse_norms,
                                      RowIndex first_row, std::int64_t count) {
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t begin = i;
    const std::int64_t end = std::min(count, begin + kBlockRows);
    while (i < end && !std::isnan(inverse_norms[i]) &&
           IsEligible(first_row + static_cast<RowIndex>(i))) {
      ++i;
    }
    ATTENDANT_RETURN_IF_ERROR(
        ScoreRun(keys + begin * dim_, inverse_norms + begin, nullptr,
                 first_row + static_cast<RowIndex>(begin), i - begin));
    if (i < end) ++i;  // what ended the run is not eligible
    ATTENDANT_RETURN_IF_ERROR(CountTowardsInterrupt(i - begin));
  }
  return absl::OkStatus();
}

absl::Status RowScan::ScoreRun(const float* keys, const float* inverse_norms,
                               const RowIndex* rows, RowIndex first_row,
                               std::int64_t count) {
  while (count > 0) {
    const std::int64_t n = std::min(count, kBlockRows - block_count_);
    float* similarities = similarities_ + block_count_;
    ActiveKernels().DotRows(query_.query.data(), keys, n, dim_, similarities);
    if (query_.score_kind == ScoreKind::kCosine) {
      for (std::int64_t i = 0; i < n; ++i) similarities[i] *= inverse_norms[i];
    }
    RowIndex* block_rows = rows_ + block_count_;
    if (rows != nullptr) {
      std::copy_n(rows, n, block_rows);
      rows += n;
    } else {
      std::iota(block_rows, block_rows + n, first_row);
      first_row += static_cast<RowIndex>(n);
    }
    if (pools_) {
      for (std::int64_t i = 0; i < n; ++i) {
        const float* value = query_.values == nullptr
                                 ? nullptr
                                 : query_.values->ValueOf(block_rows[i]);
        values_[block_count_ + i] = value == nullptr ? keys + i * dim_ : value;
      }
    }
    block_count_ += n;
    if (block_count_ == kBlockRows) ATTENDANT_RETURN_IF_ERROR(Flush());
    keys += n * dim_;
    inverse_norms += n;
    count -= n;
  }
  return absl::OkStatus();
}

absl::Status RowScan::Flush() {
  if (block_count_ == 0) return absl::OkStatus();
  for (std::int64_t i = 0; i < block_count_; ++i) {
    logits_[i] = similarities_[i] * factor_;
  }
  if (!AllFinite(logits_, block_count_)) return LogitOverflows();
  const auto n = static_cast<std::size_t>(block_count_);
  state_.Add(query_.segment, {rows_, n}, {logits_, n}, {similarities_, n},
             pools_ ? std::span<const float* const>(values_, n)
                    : std::span<const float* const>());
  scored_count_ += block_count_;
  block_count_ = 0;
  return absl::OkStatus();
}

absl::Status RowScan::Finish() { return Flush(); }

}  // namespace attendant

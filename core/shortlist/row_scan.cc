#include "core/shortlist/row_scan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/base/status.h"

namespace attendant {
namespace {

// Rows ahead of their turn that keys are asked for, where they don't lie one
// after the other: about as many lines of memory as can be on their way.
constexpr std::int64_t kAhead = 8;

}  // namespace

RowScan::RowScan(const ScanQuery& query, AttentionState& state)
    : query_(query),
      state_(state),
      scorer_(query),
      dim_(scorer_.key_dim()),
      pools_(state.value_dim() > 0),
      eligible_(query) {}

absl::Status RowScan::Start() {
  ATTENDANT_RETURN_IF_ERROR(scorer_.Validate());
  if (query_.interrupt != nullptr) return query_.interrupt->Check();
  return absl::OkStatus();
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
  // The rows that pass, without a branch on each.
  std::int32_t passing[kBlockRows];
  for (std::int64_t begin = 0; begin < row_count; begin += kBlockRows) {
    const std::int64_t end = std::min(row_count, begin + kBlockRows);
    std::int64_t count = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      passing[count] = static_cast<std::int32_t>(i);
      count += static_cast<std::int64_t>(
          eligible_.Bit(rows[static_cast<std::size_t>(i)]));
    }
    if (2 * count > end - begin) {
      ATTENDANT_RETURN_IF_ERROR(ScoreDense(
          keys + begin * dim_, inverse_norms + begin, rows.data() + begin,
          end - begin, begin, {passing, static_cast<std::size_t>(count)}));
      continue;
    }
    for (std::int64_t p = 0; p < std::min(count, kAhead); ++p) {
      Prefetch(keys, passing[p]);
    }
    for (std::int64_t p = 0; p < count;) {
      const std::int64_t first = passing[p];
      std::int64_t length = 1;
      while (p + length < count && passing[p + length] == first + length) {
        ++length;
      }
      const std::int64_t soon = std::min(count, p + length + kAhead);
      for (std::int64_t a = p + kAhead; a < soon; ++a) {
        Prefetch(keys, passing[a]);
      }
      ATTENDANT_RETURN_IF_ERROR(ScoreKeyed(keys + first * dim_,
                                           inverse_norms + first,
                                           rows.data() + first, 0, length));
      p += length;
    }
  }
  return absl::OkStatus();
}

absl::Status RowScan::ScanConsecutive(const float* keys,
                                      const float* inverse_norms,
                                      RowIndex first_row, std::int64_t count) {
  const std::int64_t end = first_row + count;
  for (std::int64_t w = first_row / 64; 64 * w < end; ++w) {
    std::uint64_t left = eligible_.Word(w);
    if (64 * w < first_row) left &= ~std::uint64_t{0} << (first_row - 64 * w);
    if (64 * (w + 1) > end) left &= ~std::uint64_t{0} >> (64 * (w + 1) - end);
    while (left != 0) {
      const int bit = std::countr_zero(left);
      std::int64_t length = std::countr_one(left >> bit);
      std::int64_t row = 64 * w + bit;
      // A run to the end of the word goes on with the words that are full.
      if (bit + length == 64) {
        left = 0;
        while (64 * (w + 2) <= end && length < kBlockRows &&
               eligible_.Word(w + 1) == ~std::uint64_t{0}) {
          length += 64;
          ++w;
        }
      } else {
        left &= ~std::uint64_t{0} << (bit + length);
      }
      const std::int64_t at = row - first_row;
      ATTENDANT_RETURN_IF_ERROR(ScoreKeyed(keys + at * dim_, inverse_norms + at,
                                           nullptr, static_cast<RowIndex>(row),
                                           length));
      ATTENDANT_RETURN_IF_ERROR(CountTowardsInterrupt(length));
    }
  }
  return absl::OkStatus();
}

inline void RowScan::Prefetch(const float* keys, std::int64_t position) const {
  constexpr std::int64_t kLineFloats = 16;
  const float* key = keys + position * dim_;
  for (std::int64_t d = 0; d < dim_; d += kLineFloats) {
    __builtin_prefetch(key + d);
  }
}

absl::Status RowScan::ScanScattered(const float* keys,
                                    const float* inverse_norms,
                                    std::span<const RowIndex> rows,
                                    std::span<const std::int32_t> positions) {
  const auto count = static_cast<std::int64_t>(rows.size());
  for (std::int64_t i = 0; i < std::min(count, kAhead); ++i) {
    Prefetch(keys, positions[static_cast<std::size_t>(i)]);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) {
      Prefetch(keys, positions[static_cast<std::size_t>(i + kAhead)]);
    }
    const std::int64_t position = positions[static_cast<std::size_t>(i)];
    ATTENDANT_RETURN_IF_ERROR(ScoreRun(keys + position * dim_,
                                       inverse_norms + position,
                                       rows.data() + i, 0, 1));
  }
  return CountTowardsInterrupt(count);
}

absl::Status RowScan::ScoreDense(const float* keys, const float* inverse_norms,
                                 const RowIndex* rows, std::int64_t row_count,
                                 std::int64_t first,
                                 std::span<const std::int32_t> passing) {
  const auto count = static_cast<std::int64_t>(passing.size());
  if (block_count_ + count > kBlockRows) ATTENDANT_RETURN_IF_ERROR(Flush());
  alignas(64) float similarities[kBlockRows];
  scorer_.Similarities(keys, inverse_norms, row_count, similarities);
  for (const std::int32_t position : passing) {
    const std::int64_t i = position - first;
    if (std::isnan(inverse_norms[i])) continue;
    similarities_[block_count_] = similarities[i];
    rows_[block_count_] = rows[i];
    if (pools_) {
      values_[block_count_] = ValueOf(rows[i], keys + i * dim_);
    }
    ++block_count_;
  }
  return block_count_ == kBlockRows ? Flush() : absl::OkStatus();
}

absl::Status RowScan::ScoreKeyed(const float* keys, const float* inverse_norms,
                                 const RowIndex* rows, RowIndex first_row,
                                 std::int64_t count) {
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t begin = i;
    while (i < count && !std::isnan(inverse_norms[i])) ++i;
    ATTENDANT_RETURN_IF_ERROR(
        ScoreRun(keys + begin * dim_, inverse_norms + begin,
                 rows == nullptr ? nullptr : rows + begin,
                 first_row + static_cast<RowIndex>(begin), i - begin));
    ++i;  // what ended the run has no key
  }
  return absl::OkStatus();
}

absl::Status RowScan::ScoreRun(const float* keys, const float* inverse_norms,
                               const RowIndex* rows, RowIndex first_row,
                               std::int64_t count) {
  while (count > 0) {
    const std::int64_t n = std::min(count, kBlockRows - block_count_);
    float* similarities = similarities_ + block_count_;
    scorer_.Similarities(keys, inverse_norms, n, similarities);
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
        values_[block_count_ + i] = ValueOf(block_rows[i], keys + i * dim_);
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
  ATTENDANT_RETURN_IF_ERROR(
      scorer_.Logits(similarities_, rows_, block_count_, logits_));
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

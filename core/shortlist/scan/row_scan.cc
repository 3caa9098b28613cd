#include "core/shortlist/scan/row_scan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/base/status.h"
#include "core/kernels/prefetch.h"

namespace attendant {
namespace {

// Number of rows whose keys are prefetched ahead, if they are not consecutive.
constexpr std::int64_t kAhead = 16;

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
  // A projection may take far more work than a score, so the interrupt is then
  // checked 64 times as often.
  const std::int64_t most =
      query_.projection != nullptr ? kInterruptRows / 64 : kInterruptRows;
  rows_since_check_ += row_count;
  if (rows_since_check_ < most) return absl::OkStatus();
  rows_since_check_ = 0;
  if (query_.interrupt == nullptr) return absl::OkStatus();
  return query_.interrupt->Check();
}

absl::Status RowScan::Scan(const KeyRun& run, bool all_eligible) {
  ATTENDANT_RETURN_IF_ERROR(CountTowardsInterrupt(run.count));
  if (all_eligible) return ScoreRun(run);
  // Collects the rows that pass, without a branch for each.
  std::int32_t passing[kBlockRows];
  for (std::int64_t begin = 0; begin < run.count; begin += kBlockRows) {
    const KeyRun block =
        run.Part(dim_, begin, std::min(run.count - begin, kBlockRows));
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < block.count; ++i) {
      passing[count] = static_cast<std::int32_t>(i);
      count += static_cast<std::int64_t>(eligible_.Bit(block.rows[i]));
    }
    if (block.similarities != nullptr || 2 * count > block.count) {
      ATTENDANT_RETURN_IF_ERROR(
          ScoreDense(block, {passing, static_cast<std::size_t>(count)}));
      continue;
    }
    for (std::int64_t p = 0; p < std::min(count, kAhead); ++p) {
      Prefetch(block.keys, passing[p]);
    }
    for (std::int64_t p = 0; p < count;) {
      const std::int64_t first = passing[p];
      std::int64_t length = 1;
      while (p + length < count && passing[p + length] == first + length) {
        ++length;
      }
      const std::int64_t soon = std::min(count, p + length + kAhead);
      for (std::int64_t a = p + kAhead; a < soon; ++a) {
        Prefetch(block.keys, passing[a]);
      }
      ATTENDANT_RETURN_IF_ERROR(ScoreKeyed(block.Part(dim_, first, length)));
      p += length;
    }
  }
  return absl::OkStatus();
}

absl::Status RowScan::ScanConsecutive(const KeyRun& run) {
  const std::int64_t end = run.first_row + run.count;
  for (std::int64_t w = run.first_row / 64; 64 * w < end; ++w) {
    std::uint64_t left = eligible_.Word(w);
    if (64 * w < run.first_row) {
      left &= ~std::uint64_t{0} << (run.first_row - 64 * w);
    }
    if (64 * (w + 1) > end) left &= ~std::uint64_t{0} >> (64 * (w + 1) - end);
    while (left != 0) {
      const int bit = std::countr_zero(left);
      std::int64_t length = std::countr_one(left >> bit);
      const std::int64_t row = 64 * w + bit;
      // A run to the end of the word continues with the full words that follow.
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
      ATTENDANT_RETURN_IF_ERROR(
          ScoreKeyed(run.Part(dim_, row - run.first_row, length)));
      ATTENDANT_RETURN_IF_ERROR(CountTowardsInterrupt(length));
    }
  }
  return absl::OkStatus();
}

inline void RowScan::Prefetch(const float* keys, std::int64_t position) const {
  PrefetchRow(keys + position * dim_, dim_);
}

absl::Status RowScan::ScanScattered(const float* keys,
                                    const float* inverse_norms,
                                    std::span<const RowIndex> rows,
                                    std::span<const std::int32_t> positions) {
  const auto count = static_cast<std::int64_t>(rows.size());
  for (std::int64_t i = 0; i < std::min(count, kAhead); ++i) {
    Prefetch(keys, positions[i]);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) {
      Prefetch(keys, positions[i + kAhead]);
    }
    const std::int64_t position = positions[i];
    ATTENDANT_RETURN_IF_ERROR(
        ScoreRun({.keys = keys + position * dim_,
                  .inverse_norms = inverse_norms + position,
                  .rows = rows.data() + i,
                  .count = 1}));
  }
  return CountTowardsInterrupt(count);
}

absl::Status RowScan::ScoreDense(const KeyRun& run,
                                 std::span<const std::int32_t> passing) {
  alignas(64) float scored[kBlockRows];
  const float* similarities = run.similarities;
  if (similarities == nullptr) {
    scorer_.Similarities(run.keys, run.inverse_norms, run.count, scored);
    similarities = scored;
  }
  while (!passing.empty()) {
    const std::size_t room =
        static_cast<std::size_t>(kBlockRows - block_count_);
    for (const std::int32_t i : passing.first(std::min(room, passing.size()))) {
      if (std::isnan(run.inverse_norms[i])) continue;
      similarities_[block_count_] = similarities[i];
      rows_[block_count_] = run.rows[i];
      if (pools_) {
        values_[block_count_] = ValueOf(run.rows[i], run.keys + i * dim_);
      }
      ++block_count_;
    }
    passing = passing.subspan(std::min(room, passing.size()));
    if (block_count_ == kBlockRows) ATTENDANT_RETURN_IF_ERROR(Flush());
  }
  return absl::OkStatus();
}

absl::Status RowScan::ScoreKeyed(const KeyRun& run) {
  if (run.all_keyed) return ScoreRun(run);
  for (std::int64_t i = 0; i < run.count;) {
    const std::int64_t begin = i;
    while (i < run.count && !std::isnan(run.inverse_norms[i])) ++i;
    ATTENDANT_RETURN_IF_ERROR(ScoreRun(run.Part(dim_, begin, i - begin)));
    ++i;  // the key that ended the run is missing
  }
  return absl::OkStatus();
}

absl::Status RowScan::ScoreRun(KeyRun run) {
  while (run.count > 0) {
    const std::int64_t n = std::min(run.count, kBlockRows - block_count_);
    if (n == kBlockRows && run.similarities != nullptr && run.rows != nullptr &&
        !pools_) {
      // A whole block is handed over as it is.
      ATTENDANT_RETURN_IF_ERROR(Add(run.rows, run.similarities, n));
      run = run.Part(dim_, n, run.count - n);
      continue;
    }
    float* similarities = similarities_ + block_count_;
    if (run.similarities != nullptr) {
      std::copy_n(run.similarities, n, similarities);
    } else {
      scorer_.Similarities(run.keys, run.inverse_norms, n, similarities);
    }
    RowIndex* rows = rows_ + block_count_;
    if (run.rows != nullptr) {
      std::copy_n(run.rows, n, rows);
    } else {
      std::iota(rows, rows + n, run.first_row);
    }
    if (pools_) {
      for (std::int64_t i = 0; i < n; ++i) {
        values_[block_count_ + i] = ValueOf(rows[i], run.keys + i * dim_);
      }
    }
    block_count_ += n;
    if (block_count_ == kBlockRows) ATTENDANT_RETURN_IF_ERROR(Flush());
    run = run.Part(dim_, n, run.count - n);
  }
  return absl::OkStatus();
}

absl::Status RowScan::Add(const RowIndex* rows, const float* similarities,
                          std::int64_t count) {
  alignas(64) float logits[kBlockRows];
  ATTENDANT_RETURN_IF_ERROR(scorer_.Logits(similarities, rows, count, logits));
  const auto n = static_cast<std::size_t>(count);
  state_.Add(query_.segment, {rows, n}, {logits, n}, {similarities, n},
             pools_ ? std::span<const float* const>(values_, n)
                    : std::span<const float* const>());
  scored_count_ += count;
  return absl::OkStatus();
}

absl::Status RowScan::Flush() {
  if (block_count_ == 0) return absl::OkStatus();
  const std::int64_t count = block_count_;
  block_count_ = 0;
  return Add(rows_, similarities_, count);
}

absl::Status RowScan::Finish() { return Flush(); }

}  // namespace attendant

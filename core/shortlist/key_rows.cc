#include "core/shortlist/key_rows.h"

#include <algorithm>
#include <bit>

#include "core/base/status.h"
#include "core/kernels/compare.h"
#include "core/shortlist/inverse_norm.h"

namespace attendant {

KeyRows::KeyRows(std::span<const std::span<const float>> keys, std::int64_t dim)
    : dim_(dim),
      positions_(keys.size(), -1),
      keyed_(static_cast<std::int64_t>(keys.size())) {
  std::size_t key_count = 0;
  for (const auto key : keys) key_count += key.empty() ? 0 : 1;
  keys_ = AlignedBuffer<float>(key_count * static_cast<std::size_t>(dim));
  inverse_norms_.reserve(key_count);
  rows_.reserve(key_count);
  float* to = keys_.data();
  for (std::size_t r = 0; r < keys.size(); ++r) {
    if (keys[r].empty()) continue;
    positions_[r] = static_cast<std::int32_t>(rows_.size());
    keyed_.Set(static_cast<std::int64_t>(r));
    rows_.push_back(static_cast<RowIndex>(r));
    inverse_norms_.push_back(InverseNorm(keys[r]));
    to = std::copy(keys[r].begin(), keys[r].end(), to);
  }
}

std::span<const float> KeyRows::KeyOf(RowIndex row) const {
  const std::int32_t position = positions_[static_cast<std::size_t>(row)];
  if (position < 0) return {};
  return keys().Row(position);
}

KeyRows::Eligible KeyRows::FindEligible(const ScanQuery& query) const {
  if (query.excluded == nullptr && query.allowed == nullptr &&
      query.row_end >= static_cast<RowIndex>(keyed_.size())) {
    return {.all = true, .rows = {}, .count = key_count()};
  }
  Eligible eligible = {.all = false, .rows = Bitmap(keyed_.size()), .count = 0};
  const auto words_of = [](const Bitmap* bitmap) {
    return bitmap == nullptr ? std::span<const std::uint64_t>()
                             : bitmap->words();
  };
  const std::span<const std::uint64_t> allowed = words_of(query.allowed);
  const std::span<const std::uint64_t> excluded = words_of(query.excluded);
  const std::span<const std::uint64_t> keyed = keyed_.words();
  const std::span<std::uint64_t> words = eligible.rows.words();
  for (std::size_t w = 0; w < words.size(); ++w) {
    const std::int64_t visible =
        query.row_end - 64 * static_cast<std::int64_t>(w);
    if (visible <= 0) break;
    std::uint64_t word = keyed[w];
    if (query.allowed != nullptr) word &= w < allowed.size() ? allowed[w] : 0;
    if (w < excluded.size()) word &= ~excluded[w];
    if (visible < 64) word &= (std::uint64_t{1} << visible) - 1;
    words[w] = word;
  }
  eligible.count = ActiveCompareKernels().CountBits(
      words.data(), nullptr, static_cast<std::int64_t>(words.size()));
  return eligible;
}

double KeyRows::CostOfExactScan(const Eligible& eligible) const {
  const auto n = static_cast<double>(key_count());
  if (eligible.all) return n * CostOfKey();
  constexpr double kCostOfTest = 2.7;
  const auto count = static_cast<double>(eligible.count);
  return std::min(count * CostOfKeyAnywhere(),
                  n * kCostOfTest + count * 1.6 * CostOfKey());
}

absl::StatusOr<ScanStats> KeyRows::ScanExactly(const ScanQuery& query,
                                               const Eligible& eligible,
                                               AttentionState& state) const {
  ScanQuery narrowed = query;
  narrowed.excluded = nullptr;
  narrowed.allowed = eligible.all ? nullptr : &eligible.rows;
  RowScan scan(narrowed, state);
  ATTENDANT_RETURN_IF_ERROR(scan.Start());
  const bool scattered =
      !eligible.all &&
      CostOfExactScan(eligible) ==
          static_cast<double>(eligible.count) * CostOfKeyAnywhere();
  if (scattered) {
    ATTENDANT_RETURN_IF_ERROR(ScanEligible(eligible.rows, scan));
  } else {
    ATTENDANT_RETURN_IF_ERROR(
        scan.Scan(keys_.data(), inverse_norms_.data(), rows_, eligible.all));
  }
  ATTENDANT_RETURN_IF_ERROR(scan.Finish());
  return ScanStats{.scored_count = scan.scored_count(),
                   .complete = true,
                   .exact = true,
                   .results_exact = true,
                   .knows_mass = true};
}

absl::Status KeyRows::ScanEligible(const Bitmap& eligible,
                                   RowScan& scan) const {
  constexpr std::size_t kBatch = 1024;
  std::int32_t positions[kBatch];
  std::size_t count = 0;
  for (std::size_t w = 0; w < eligible.words().size(); ++w) {
    for (std::uint64_t word = eligible.words()[w]; word != 0;
         word &= word - 1) {
      const std::size_t row =
          64 * w + static_cast<std::size_t>(std::countr_zero(word));
      positions[count++] = positions_[row];
      if (count == kBatch) {
        ATTENDANT_RETURN_IF_ERROR(ScanPositions({positions, count}, scan));
        count = 0;
      }
    }
  }
  return ScanPositions({positions, count}, scan);
}

absl::Status KeyRows::ScanPositions(std::span<const std::int32_t> positions,
                                    RowScan& scan) const {
  constexpr std::size_t kBatch = 1024;
  RowIndex rows[kBatch];
  for (std::size_t begin = 0; begin < positions.size(); begin += kBatch) {
    const auto batch =
        positions.subspan(begin, std::min(kBatch, positions.size() - begin));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      rows[i] = rows_[static_cast<std::size_t>(batch[i])];
    }
    ATTENDANT_RETURN_IF_ERROR(scan.ScanScattered(
        keys_.data(), inverse_norms_.data(), {rows, batch.size()}, batch));
  }
  return absl::OkStatus();
}

std::int64_t KeyRows::memory_bytes() const {
  return static_cast<std::int64_t>(
      keys_.size() * sizeof(float) + inverse_norms_.size() * sizeof(float) +
      rows_.size() * sizeof(RowIndex) +
      positions_.size() * sizeof(std::int32_t) +
      keyed_.words().size() * sizeof(std::uint64_t));
}

}  // namespace attendant

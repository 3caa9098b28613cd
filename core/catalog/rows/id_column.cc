#include "core/catalog/rows/id_column.h"

#include <algorithm>

#include "core/kernels/prefetch.h"

namespace attendant {
namespace {

// Chunks double up to kMaxChunkBytes, so the unused part of a chunk stays
// small.
constexpr std::size_t kFirstChunkBytes = 4096;
constexpr std::size_t kMaxChunkBytes = 256 << 10;

}  // namespace

IdColumn::IdColumn(std::int64_t capacity)
    : starts_(static_cast<std::size_t>((capacity + kRowsPerStart - 1) /
                                       kRowsPerStart)),
      sizes_(static_cast<std::size_t>(capacity)),
      chunk_bytes_(kFirstChunkBytes) {
  static_assert(kMaxItemIdBytes <= 255, "a size is a byte");
}

void IdColumn::Prefetch(RowIndex row) const {
  PrefetchLine(&starts_[row / kRowsPerStart]);
  PrefetchLine(&sizes_[row]);
}

void IdColumn::PrefetchBytes(RowIndex row) const {
  PrefetchLine(starts_[row / kRowsPerStart]);
}

void IdColumn::Append(absl::string_view id) {
  // Ids that share a start lie in one chunk.
  constexpr std::size_t kMaxBytes = kRowsPerStart * kMaxItemIdBytes;
  if (row_count_ % kRowsPerStart == 0) {
    if (left_ < kMaxBytes) {
      chunks_.push_back(std::make_unique_for_overwrite<char[]>(chunk_bytes_));
      next_ = chunks_.back().get();
      left_ = chunk_bytes_;
      chunk_bytes_ = std::min(2 * chunk_bytes_, kMaxChunkBytes);
    }
    starts_[row_count_ / kRowsPerStart] = next_;
  }
  std::copy(id.begin(), id.end(), next_);
  sizes_[row_count_] = static_cast<std::uint8_t>(id.size());
  next_ += id.size();
  left_ -= id.size();
  ++row_count_;
}

}  // namespace attendant

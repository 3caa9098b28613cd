#include "core/shortlist/flat_index.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/shortlist/huge_pages.h"
#include "core/shortlist/inverse_norm.h"
#include "core/shortlist/shared_scan.h"

namespace attendant {
namespace {

// The first 16 MiB of keys have small pages: an index of few keys takes no more
// memory than they need.
constexpr std::size_t kSmallPageFloats = std::size_t{4} << 20;

}  // namespace

FlatIndex::FlatIndex(std::int64_t dim, std::int64_t capacity)
    : dim_(dim),
      keys_(static_cast<std::size_t>(capacity * dim)),
      inverse_norms_(static_cast<std::size_t>(capacity)) {
  if (keys_.size() > kSmallPageFloats) {
    PreferHugePages(keys_.data() + kSmallPageFloats,
                    (keys_.size() - kSmallPageFloats) * sizeof(float));
  }
}

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
  ScanTask task = {.query = &query, .state = &state};
  ScanTogether({&task, 1});
  return std::move(task.stats);
}

void FlatIndex::ScanTogether(std::span<ScanTask> tasks) const {
  // Rows beyond may be on their way in.
  RowIndex row_end = 0;
  std::vector<ScanTask*> pointers;
  pointers.reserve(tasks.size());
  for (ScanTask& task : tasks) {
    row_end = std::max(row_end, task.query->row_end);
    pointers.push_back(&task);
  }
  ScanEveryKey({.keys = keys_.data(),
                .inverse_norms = inverse_norms_.data(),
                .key_count = row_end,
                .dim = dim_,
                .row_end = row_end},
               pointers);
}

MemoryParts FlatIndex::memory() const {
  const std::int64_t bytes = row_count_.load(std::memory_order_relaxed) *
                             static_cast<std::int64_t>(sizeof(float));
  return {.keys = bytes * dim_, .index = bytes};
}

}  // namespace attendant

#include "core/shortlist/kinds/flat_index.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/base/status.h"
#include "core/shortlist/ivf/growing_lists.h"
#include "core/shortlist/ivf/list_carry.h"
#include "core/shortlist/keys/huge_pages.h"
#include "core/shortlist/keys/inverse_norm.h"
#include "core/shortlist/scan/eligible_rows.h"
#include "core/shortlist/scan/row_scan.h"
#include "core/shortlist/scan/shared_scan.h"

namespace attendant {
namespace {

// The first 16 MiB of keys have small pages, so that an index of few keys takes
// no more memory than they need.
constexpr std::size_t kSmallPageFloats = std::size_t{4} << 20;

// Most products of a row's components with the lists' means that a write waits
// for: 9 us per row of many, 24 us for a single row. Beyond this, rows are
// assigned to lists only when they are sealed.
constexpr std::int64_t kMaxProducts = std::int64_t{1} << 20;

bool MayAssign(const IvfTraining* training) {
  return training != nullptr &&
         training->means->list_count() * training->means->dim <= kMaxProducts;
}

// Scores `rows`, which must all be eligible, and nothing else.
absl::Status ScanRows(const ScanQuery& query, const KeyFloats& keys,
                      std::int64_t dim, const float* inverse_norms,
                      std::span<const RowIndex> rows, AttentionState& state) {
  keys.Await(rows, dim);
  RowScan scan(query, state);
  ATTENDANT_RETURN_IF_ERROR(scan.Start());
  // Each row's key is at the row's own position.
  ATTENDANT_RETURN_IF_ERROR(
      scan.ScanScattered(keys.data(), inverse_norms, rows, rows));
  return scan.Finish();
}

}  // namespace

FlatIndex::FlatIndex(std::int64_t dim, std::int64_t capacity,
                     std::shared_ptr<const IvfTraining> training)
    : dim_(dim),
      inverse_norms_(static_cast<std::size_t>(capacity)),
      lists_(MayAssign(training.get())
                 ? std::make_unique<GrowingLists>(std::move(training), capacity)
                 : nullptr) {
  AlignedBuffer<float> keys(static_cast<std::size_t>(capacity * dim));
  if (keys.size() > kSmallPageFloats) {
    PreferHugePages(keys.data() + kSmallPageFloats,
                    (keys.size() - kSmallPageFloats) * sizeof(float));
  }
  writable_keys_ = keys.data();
  touched_keys_ = TouchedPages(
      keys.data(), keys.data() + std::min(keys.size(), kSmallPageFloats));
  keys_ = KeyFloats(std::move(keys));
}

FlatIndex::~FlatIndex() = default;

void FlatIndex::Append(std::span<const float> key) {
  const std::int64_t row = row_count_.load(std::memory_order_relaxed);
  if (!key.empty()) {
    float* const to = writable_keys_ + row * dim_;
    std::copy(key.begin(), key.end(), to);
    key_bytes_.fetch_add(touched_keys_.Write(to, key.size_bytes()),
                         std::memory_order_relaxed);
  }
  inverse_norms_[row] = InverseNorm(key);
  max_norm_.store(std::max(max_norm(), Norm(key)), std::memory_order_relaxed);
  row_count_.store(row + 1, std::memory_order_relaxed);
}

void FlatIndex::AssignLists() {
  if (lists_ == nullptr) return;
  const auto row_end =
      static_cast<RowIndex>(row_count_.load(std::memory_order_relaxed));
  lists_->Assign(row_end, [this](RowIndex row) { return Key(row); });
}

absl::Status FlatIndex::MoveKeys(ScratchFiles& files) {
  const std::vector<float> none(static_cast<std::size_t>(dim_));
  ATTENDANT_ASSIGN_OR_RETURN(
      keys_, KeyFloats::Gather(
                 row_count_.load(std::memory_order_relaxed), dim_, &files,
                 [&](std::int64_t row) {
                   const auto key = Key(static_cast<RowIndex>(row));
                   return key.empty() ? std::span<const float>(none) : key;
                 }));
  writable_keys_ = nullptr;
  return absl::OkStatus();
}

const std::shared_ptr<const IvfTraining>& FlatIndex::training() const {
  return lists_ == nullptr ? KeyIndex::training() : lists_->training();
}

std::int32_t FlatIndex::ListOf(RowIndex row) const {
  return lists_ == nullptr ? -1 : lists_->ListOf(row);
}

std::span<const float> FlatIndex::Key(RowIndex row) const {
  if (std::isnan(inverse_norms_[row])) return {};
  // From a file, reads in runs: Key is called to build another index, row after
  // row.
  return {keys_.runs() + row * dim_, static_cast<std::size_t>(dim_)};
}

std::uint64_t FlatIndex::Keyed(std::int64_t w, std::uint64_t rows) const {
  std::uint64_t keyed = rows;
  for (; rows != 0; rows &= rows - 1) {
    const int i = std::countr_zero(rows);
    if (std::isnan(inverse_norms_[64 * w + i])) {
      keyed &= ~(std::uint64_t{1} << i);
    }
  }
  return keyed;
}

absl::StatusOr<ScanStats> FlatIndex::Scan(const ScanQuery& query,
                                          AttentionState& state) const {
  return ScanAlone(*this, query, state);
}

// The rows that the scan leaves unscored are guessed without looking at any of
// them, so they must be few compared with those of the other indexes.
bool FlatIndex::ScanLists(ScanTask& task) const {
  constexpr std::int64_t kOthersPerRow = 64;
  if (lists_ == nullptr || task.carry == nullptr) return false;
  ListCarry* const carry = ListCarry::Find(*task.carry, *lists_->training());
  const std::optional<std::int64_t>& count = task.query->eligible_count;
  if (carry == nullptr || !carry->has_choice() || !count.has_value() ||
      kOthersPerRow * (carry->growing_count() + *count) >
          carry->eligible_count()) {
    return false;
  }
  thread_local std::vector<RowIndex> rows;
  lists_->Collect(carry->lists(), EligibleRows(*task.query), rows);
  if (const absl::Status status = ScanRows(
          *task.query, keys_, dim_, inverse_norms_.data(), rows, *task.state);
      !status.ok()) {
    task.stats = status;
    return true;
  }
  const auto scored_count = static_cast<std::int64_t>(rows.size());
  const bool all = scored_count == *count;
  if (!all) {
    carry->AddGrowing(lists_->ListsBelow(task.query->row_end), *task.query,
                      *count, scored_count);
  }
  task.stats = ScanStats{.scored_count = scored_count,
                         .complete = all,
                         .exact = all,
                         .results_exact = all,
                         .knows_mass = true};
  return true;
}

void FlatIndex::ScanTogether(std::span<ScanTask> tasks) const {
  // Rows past the greatest row_end may be in the middle of being appended.
  RowIndex row_end = 0;
  // A single task, the common case, needs no allocation.
  absl::InlinedVector<ScanTask*, 1> pointers;
  pointers.reserve(tasks.size());
  for (ScanTask& task : tasks) {
    if (ScanLists(task)) continue;
    row_end = std::max(row_end, task.query->row_end);
    pointers.push_back(&task);
  }
  if (pointers.empty()) return;
  ScanEveryKey({.keys = keys_.runs(),
                .inverse_norms = inverse_norms_.data(),
                .key_count = row_end,
                .dim = dim_,
                .row_end = row_end},
               {pointers.data(), pointers.size()});
}

MemoryParts FlatIndex::memory() const {
  const std::int64_t bytes = row_count_.load(std::memory_order_relaxed) *
                             static_cast<std::int64_t>(sizeof(float));
  MemoryParts parts = {
      .index = bytes + (lists_ == nullptr ? 0 : lists_->memory_bytes())};
  // A file contains zeros for rows that have no key.
  if (keys_.on_disk()) {
    parts.mapped = bytes * dim_;
  } else {
    parts.keys = key_bytes_.load(std::memory_order_relaxed);
  }
  return parts;
}

}  // namespace attendant

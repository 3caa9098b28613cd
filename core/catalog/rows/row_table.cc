#include "core/catalog/rows/row_table.h"

#include <xxhash.h>

#include <algorithm>

#include "absl/hash/hash.h"
#include "core/kernels/prefetch.h"

namespace attendant {
namespace {

std::uint64_t HashOf(absl::string_view id) {
  return XXH3_64bits(id.data(), id.size());
}

}  // namespace

RowTable::RowTable(std::int64_t value_dim, std::int64_t capacity)
    : capacity_(capacity),
      value_dim_(value_dim),
      ids_(capacity),
      values_(capacity * value_dim),
      touched_values_(values_.data()),
      has_value_(capacity),
      columns_(capacity),
      opaque_values_(capacity),
      newer_than_(capacity),
      slot_count_(capacity + capacity / 3 + 1),
      slots_(std::make_unique<std::atomic<Slot>[]>(slot_count_)) {
  CountBytes(slot_count_ * std::int64_t{sizeof(Slot)}, 0);
}

void RowTable::CountBytes(std::int64_t id_bytes, std::int64_t value_bytes) {
  id_bytes_ += id_bytes;
  value_bytes_ += value_bytes;
  all_id_bytes_.store(id_bytes_ + newer_than_.memory_bytes(),
                      std::memory_order_relaxed);
  all_value_bytes_.store(
      value_bytes_ + has_value_.memory_bytes() + opaque_values_.memory_bytes(),
      std::memory_order_relaxed);
}

MemoryParts RowTable::memory() const {
  return {.attributes = columns_.memory_bytes(),
          .values = all_value_bytes_.load(std::memory_order_relaxed),
          .ids = all_id_bytes_.load(std::memory_order_relaxed)};
}

std::uint64_t RowTable::IdHash(RowIndex row) const { return HashOf(ids_[row]); }

std::int64_t RowTable::FirstSlot(std::uint64_t hash) const {
  // Hashes again with the process's seed, so that nobody can choose ids whose
  // slots collide.
  const std::uint64_t mixed = absl::Hash<std::uint64_t>{}(hash) >> 32;
  return static_cast<std::int64_t>(
      mixed * static_cast<std::uint64_t>(slot_count_) >> 32);
}

std::atomic<RowTable::Slot>& RowTable::SlotOf(absl::string_view id,
                                              std::uint64_t hash) const {
  std::int64_t at = FirstSlot(hash);
  while (true) {
    const Slot slot = slots_[at].load(std::memory_order_acquire);
    const RowIndex row = RowOf(slot);
    if (row < 0 || (MayBe(slot, hash) && ids_[row] == id)) return slots_[at];
    at = NextSlot(at);
  }
}

RowIndex RowTable::Append(absl::string_view id, std::span<const float> value,
                          const Attributes& attributes,
                          std::shared_ptr<const std::string> opaque_value) {
  const auto row = static_cast<RowIndex>(row_count_);
  const std::uint64_t hash = HashOf(id);
  std::atomic<Slot>& slot = SlotOf(id, hash);
  ids_.Append(id);
  std::int64_t value_bytes = 0;
  if (!value.empty()) {
    float* const to = values_.data() + row * value_dim_;
    std::copy(value.begin(), value.end(), to);
    value_bytes = touched_values_.Write(to, value.size_bytes());
    has_value_.Set(row, true);
    value_count_.fetch_add(1, std::memory_order_relaxed);
  }
  columns_.Append(row, attributes);
  if (opaque_value != nullptr) {
    // Includes allocator overhead and the shared pointer's control block.
    constexpr std::size_t kOverhead = 48;
    value_bytes += static_cast<std::int64_t>(
        sizeof(std::string) + opaque_value->capacity() + kOverhead);
    opaque_values_.Set(row, std::move(opaque_value));
  }
  const RowIndex older = RowOf(slot.load(std::memory_order_relaxed));
  if (older >= 0) newer_than_.Set(row, older + 1);
  slot.store(SlotFor(hash, row), std::memory_order_release);
  CountBytes(IdColumn::BytesOf(id.size()), value_bytes);
  ++row_count_;
  return row;
}

RowIndex RowTable::Find(absl::string_view id, RowIndex row_end,
                        const Bitmap* dead) const {
  const RowIndex newest =
      RowOf(SlotOf(id, HashOf(id)).load(std::memory_order_acquire));
  return VisibleRow(newest, row_end, dead);
}

void RowTable::FindAll(std::span<const ItemId> ids, RowIndex row_end,
                       const Bitmap* dead, RowIndex* rows) const {
  // A lookup waits for the memory of a slot and of the id of its row. The batch
  // is large enough to overlap these waits, and small enough to stay in the L1
  // cache.
  constexpr std::size_t kBatch = 64;
  std::uint64_t hashes[kBatch];
  std::int64_t slots[kBatch];
  RowIndex likely[kBatch];
  while (!ids.empty()) {
    const auto batch = ids.first(std::min(kBatch, ids.size()));
    ids = ids.subspan(batch.size());
    for (std::size_t i = 0; i < std::min(kBatch, ids.size()); ++i) {
      PrefetchLine(ids[i].data());
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      hashes[i] = HashOf(batch[i]);
      slots[i] = FirstSlot(hashes[i]);
      PrefetchLine(&slots_[slots[i]]);
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      std::int64_t at = slots[i];
      Slot slot = slots_[at].load(std::memory_order_acquire);
      while (slot != 0 && !MayBe(slot, hashes[i])) {
        at = NextSlot(at);
        slot = slots_[at].load(std::memory_order_acquire);
      }
      likely[i] = RowOf(slot);
      if (likely[i] >= 0) ids_.Prefetch(likely[i]);
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (likely[i] >= 0) ids_.PrefetchBytes(likely[i]);
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      RowIndex newest = likely[i];
      // Two ids may agree in the part of the hash that a slot has.
      if (newest >= 0 && ids_[newest] != batch[i]) {
        newest =
            RowOf(SlotOf(batch[i], hashes[i]).load(std::memory_order_acquire));
      }
      *rows++ = VisibleRow(newest, row_end, dead);
    }
  }
}

RowIndex RowTable::VisibleRow(RowIndex newest, RowIndex row_end,
                              const Bitmap* dead) const {
  RowIndex row = newest;
  while (row >= row_end) row = newer_than_[row] - 1;
  if (row >= 0 && dead != nullptr && dead->Test(row)) return -1;
  return row;
}

}  // namespace attendant

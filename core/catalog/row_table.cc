#include "core/catalog/row_table.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "absl/hash/hash.h"

namespace attendant {
namespace {

// libstdc++ keeps strings up to this size in themselves.
constexpr std::size_t kInlineIdBytes = 15;

std::uint64_t HashOf(absl::string_view id) {
  return XXH3_64bits(id.data(), id.size());
}

}  // namespace

RowTable::RowTable(std::int64_t value_dim, std::int64_t capacity)
    : capacity_(capacity),
      value_dim_(value_dim),
      ids_(std::make_unique<std::string[]>(capacity)),
      id_hashes_(capacity),
      values_(capacity * value_dim),
      has_value_(std::make_unique<bool[]>(capacity)),
      columns_(capacity),
      opaque_values_(
          std::make_unique<std::shared_ptr<const std::string>[]>(capacity)),
      previous_(capacity),
      slot_mask_(static_cast<std::int64_t>(
                     std::bit_ceil(static_cast<std::uint64_t>(2 * capacity))) -
                 1),
      slots_(std::make_unique<std::atomic<Slot>[]>(slot_mask_ + 1)) {
  memory_bytes_ = (slot_mask_ + 1) * std::int64_t{sizeof(Slot)} +
                  capacity_ * std::int64_t{sizeof(std::string) +
                                           sizeof(opaque_values_[0]) + 1};
}

std::int64_t RowTable::FirstSlot(std::uint64_t hash) const {
  // Hashed once more, with the process's seed: nobody can choose ids for slots
  // that collide.
  return static_cast<std::int64_t>(absl::Hash<std::uint64_t>{}(hash)) &
         slot_mask_;
}

std::atomic<RowTable::Slot>& RowTable::SlotOf(absl::string_view id,
                                              std::uint64_t hash) const {
  std::int64_t at = FirstSlot(hash);
  while (true) {
    const Slot slot = slots_[at].load(std::memory_order_acquire);
    const RowIndex row = RowOf(slot);
    if (row < 0 || (MayBe(slot, hash) && ids_[row] == id)) return slots_[at];
    at = (at + 1) & slot_mask_;
  }
}

RowIndex RowTable::Append(absl::string_view id, std::span<const float> value,
                          const Attributes& attributes,
                          std::shared_ptr<const std::string> opaque_value) {
  const auto row = static_cast<RowIndex>(row_count_);
  const std::uint64_t hash = HashOf(id);
  std::atomic<Slot>& slot = SlotOf(id, hash);
  ids_[row] = std::string(id);
  id_hashes_[row] = hash;
  if (!value.empty()) {
    std::copy(value.begin(), value.end(), values_.data() + row * value_dim_);
    has_value_[row] = true;
  }
  columns_.Append(row, attributes);
  opaque_values_[row] = std::move(opaque_value);
  previous_[row] = RowOf(slot.load(std::memory_order_relaxed));
  slot.store(SlotFor(hash, row), std::memory_order_release);
  // The row's share of arrays whose pages are touched as rows are appended, and
  // what its id and opaque value hold outside of them.
  const std::size_t bytes =
      static_cast<std::size_t>(value_dim_) * sizeof(float) + sizeof(RowIndex) +
      sizeof(hash) +
      (opaque_values_[row] != nullptr
           ? sizeof(std::string) + opaque_values_[row]->capacity()
           : 0) +
      (ids_[row].size() > kInlineIdBytes ? ids_[row].capacity() : 0);
  memory_bytes_.fetch_add(static_cast<std::int64_t>(bytes),
                          std::memory_order_relaxed);
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
  // A look-up waits for a slot, and for the id of the row in it: enough
  // look-ups at once to wait for all of them together, few enough to stay in
  // the first cache.
  constexpr std::size_t kBatch = 64;
  std::uint64_t hashes[kBatch];
  std::int64_t slots[kBatch];
  RowIndex likely[kBatch];
  while (!ids.empty()) {
    const auto batch = ids.first(std::min(kBatch, ids.size()));
    ids = ids.subspan(batch.size());
    for (std::size_t i = 0; i < std::min(kBatch, ids.size()); ++i) {
      __builtin_prefetch(ids[i].data());
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      hashes[i] = HashOf(batch[i]);
      slots[i] = FirstSlot(hashes[i]);
      __builtin_prefetch(&slots_[slots[i]]);
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      std::int64_t at = slots[i];
      Slot slot = slots_[at].load(std::memory_order_acquire);
      while (slot != 0 && !MayBe(slot, hashes[i])) {
        at = (at + 1) & slot_mask_;
        slot = slots_[at].load(std::memory_order_acquire);
      }
      likely[i] = RowOf(slot);
      if (likely[i] >= 0) __builtin_prefetch(&ids_[likely[i]]);
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (likely[i] >= 0) __builtin_prefetch(ids_[likely[i]].data());
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      RowIndex newest = likely[i];
      // Two ids may look alike.
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
  while (row >= row_end) row = previous_[row];
  if (row >= 0 && dead != nullptr && dead->Test(row)) return -1;
  return row;
}

}  // namespace attendant

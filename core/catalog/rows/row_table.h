// Rows of items: ids, values, opaque values and attributes, and the hash table
// from id to row.
#ifndef ATTENDANT_CORE_CATALOG_ROWS_ROW_TABLE_H_
#define ATTENDANT_CORE_CATALOG_ROWS_ROW_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "core/base/aligned_buffer.h"
#include "core/base/bitmap.h"
#include "core/base/ids.h"
#include "core/base/memory_parts.h"
#include "core/base/touched_pages.h"
#include "core/catalog/rows/attribute_columns.h"
#include "core/catalog/rows/id_column.h"
#include "core/catalog/rows/sparse_array.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// A fixed capacity of rows. One writer appends while readers use the rows below
// the row_end of their snapshot, without locks. A row never changes once it is
// published. A row takes about 11 bytes in addition to its id, value and
// attributes, and more if it has an opaque value or replaces another row.
class RowTable final : public ValueSource {
 public:
  // Requires capacity >= 1.
  RowTable(std::int64_t value_dim, std::int64_t capacity);

  // Appends a row and returns its index. Requires fewer than `capacity` rows.
  // An id may be appended again: Find returns the newest row below row_end.
  // `value` is empty or has value_dim floats; `opaque_value` is null or not
  // empty. Writer only.
  RowIndex Append(absl::string_view id, std::span<const float> value,
                  const Attributes& attributes,
                  std::shared_ptr<const std::string> opaque_value = nullptr);

  std::int64_t value_dim() const { return value_dim_; }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t row_count() const { return row_count_; }  // writer only
  // The number of rows with a value so far.
  std::int64_t value_count() const {
    return value_count_.load(std::memory_order_relaxed);
  }

  absl::string_view Id(RowIndex row) const { return ids_[row]; }
  // Returns a hash of the id that is the same in every process and version.
  std::uint64_t IdHash(RowIndex row) const;
  // Returns value_dim floats, or null if the row has no value.
  const float* ValueOf(RowIndex row) const override {
    return has_value_[row] ? values_.data() + row * value_dim_ : nullptr;
  }
  Attributes AttributesOf(RowIndex row,
                          const std::vector<bool>* wanted = nullptr) const {
    return columns_.AttributesOf(row, wanted);
  }
  // The attributes, stored by column.
  const AttributeColumns& columns() const { return columns_; }
  // Returns null if the row has none. Tables may share one.
  const std::shared_ptr<const std::string>& OpaqueValueOf(RowIndex row) const {
    return opaque_values_[row];
  }
  // Returns the newest row of `id` below row_end, or -1 if there is none or it
  // is in `dead` (may be null).
  RowIndex Find(absl::string_view id, RowIndex row_end,
                const Bitmap* dead) const;
  // Sets rows[i] to Find(ids[i], row_end, dead). Overlaps the memory latency of
  // many ids.
  void FindAll(std::span<const ItemId> ids, RowIndex row_end,
               const Bitmap* dead, RowIndex* rows) const;
  // Memory of ids, values and attributes. Callable from any thread.
  MemoryParts memory() const;
  std::int64_t memory_bytes() const { return memory().sum(); }

 private:
  // A slot of the hash table. The upper half is that of an id's hash, which
  // tells ids apart without reading them; the lower half is the id's newest row
  // + 1. 0: free.
  using Slot = std::uint64_t;
  static Slot SlotFor(std::uint64_t hash, RowIndex row) {
    return (hash & ~std::uint64_t{0xffffffff}) |
           static_cast<std::uint64_t>(row + 1);
  }
  static RowIndex RowOf(Slot slot) {
    return static_cast<RowIndex>(slot & 0xffffffff) - 1;
  }
  static bool MayBe(Slot slot, std::uint64_t hash) {
    return (slot ^ hash) >> 32 == 0;
  }

  // Returns the slot that has `id` of this hash, or the free slot where it
  // belongs.
  std::atomic<Slot>& SlotOf(absl::string_view id, std::uint64_t hash) const;
  // FirstSlot returns the slot where a lookup begins, NextSlot the slot after
  // another.
  std::int64_t FirstSlot(std::uint64_t hash) const;
  std::int64_t NextSlot(std::int64_t slot) const {
    return slot + 1 == slot_count_ ? 0 : slot + 1;
  }
  // Adds to the byte counts and publishes the totals, which include arrays that
  // grow with their content.
  void CountBytes(std::int64_t id_bytes, std::int64_t value_bytes);
  // Returns the row of an id that a reader sees, starting from the newest; -1:
  // none.
  RowIndex VisibleRow(RowIndex newest, RowIndex row_end,
                      const Bitmap* dead) const;

  std::int64_t capacity_;
  std::int64_t value_dim_;
  std::int64_t row_count_ = 0;
  std::atomic<std::int64_t> value_count_ = 0;
  // Set by the writer. Memory of ids and values, without (first two) and with
  // (last two) arrays that grow with their content.
  std::int64_t id_bytes_ = 0;
  std::int64_t value_bytes_ = 0;
  std::atomic<std::int64_t> all_id_bytes_ = 0;
  std::atomic<std::int64_t> all_value_bytes_ = 0;
  IdColumn ids_;
  AlignedBuffer<float> values_;  // [capacity, value_dim]
  TouchedPages touched_values_;  // touched pages of values_; writer only
  SparseArray<bool> has_value_;
  AttributeColumns columns_;
  SparseArray<std::shared_ptr<const std::string>> opaque_values_;
  // The previous row of the same id, + 1; 0: none.
  SparseArray<RowIndex> newer_than_;
  // The hash table: open addressing with linear probing, at most three quarters
  // full.
  std::int64_t slot_count_;
  std::unique_ptr<std::atomic<Slot>[]> slots_;
};

// A row table with one key index for each key field and one for each head of a
// field's model.
struct Segment {
  // The first write whose items are among the rows, if the log of changes may
  // contain it; 0: unknown.
  std::int64_t first_sequence = 0;
  std::shared_ptr<const RowTable> rows;
  std::vector<std::shared_ptr<const KeyIndex>> indexes;  // by key field
  // By key field and head; empty for a field whose model stores no keys.
  std::vector<std::vector<std::shared_ptr<const KeyIndex>>> head_indexes;

  // Returns the index of a head's keys; head -1: of the field's own keys.
  const KeyIndex& IndexOf(int field, int head) const {
    return head < 0 ? *indexes[field] : *head_indexes[field][head];
  }
};

// Calls visit(const KeyIndex&) for each index of a segment.
template <typename Visit>
void ForEachIndex(const Segment& segment, Visit visit) {
  for (std::size_t f = 0; f < segment.indexes.size(); ++f) {
    visit(*segment.indexes[f]);
    for (const auto& head : segment.head_indexes[f]) visit(*head);
  }
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_ROWS_ROW_TABLE_H_

// Rows of items: ids, values, opaque values and attributes, and the table from
// id to row.
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

// A fixed capacity of rows that one writer appends to while readers use the
// rows below the row_end of their snapshot, without locks. A row never changes
// once it is published. A row takes some 11 bytes beside its id, value and
// attributes, and more where it has an opaque value or replaces another row.
class RowTable final : public ValueSource {
 public:
  // capacity >= 1.
  RowTable(std::int64_t value_dim, std::int64_t capacity);

  // Appends a row and returns it; fewer than capacity rows so far. An id may be
  // appended again: Find takes the newest row below row_end. value is empty or
  // has value_dim floats; opaque_value is null or not empty. Writer only.
  RowIndex Append(absl::string_view id, std::span<const float> value,
                  const Attributes& attributes,
                  std::shared_ptr<const std::string> opaque_value = nullptr);

  std::int64_t value_dim() const { return value_dim_; }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t row_count() const { return row_count_; }  // writer only
  // Rows with a value, so far.
  std::int64_t value_count() const {
    return value_count_.load(std::memory_order_relaxed);
  }

  absl::string_view Id(RowIndex row) const { return ids_[row]; }
  // A hash of the id that is the same in every process and version.
  std::uint64_t IdHash(RowIndex row) const;
  // value_dim floats, or null if the row has no value.
  const float* ValueOf(RowIndex row) const override {
    return has_value_[row] ? values_.data() + row * value_dim_ : nullptr;
  }
  Attributes AttributesOf(RowIndex row,
                          const std::vector<bool>* wanted = nullptr) const {
    return columns_.AttributesOf(row, wanted);
  }
  // Attributes column by column.
  const AttributeColumns& columns() const { return columns_; }
  // Null if the row has none. Tables may share one.
  const std::shared_ptr<const std::string>& OpaqueValueOf(RowIndex row) const {
    return opaque_values_[row];
  }
  // The newest row of `id` below row_end unless it is in `dead` (may be null);
  // else -1.
  RowIndex Find(absl::string_view id, RowIndex row_end,
                const Bitmap* dead) const;
  // rows[i] = Find(ids[i], row_end, dead), waiting for the memory of many ids
  // at once.
  void FindAll(std::span<const ItemId> ids, RowIndex row_end,
               const Bitmap* dead, RowIndex* rows) const;
  // Ids, values and attributes. May be called from any thread.
  MemoryParts memory() const;
  std::int64_t memory_bytes() const { return memory().sum(); }

 private:
  // A slot: the upper half of an id's hash, so that other ids are told apart
  // without looking at theirs, and the id's newest row + 1; 0: free.
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

  // The slot where `id` of this hash is, or the free one where it would be.
  std::atomic<Slot>& SlotOf(absl::string_view id, std::uint64_t hash) const;
  // The slot that a look-up begins with, and the one after another.
  std::int64_t FirstSlot(std::uint64_t hash) const;
  std::int64_t NextSlot(std::int64_t slot) const {
    return slot + 1 == slot_count_ ? 0 : slot + 1;
  }
  // Keeps what arrays that grow with what is in them have come to.
  void CountBytes(std::int64_t id_bytes, std::int64_t value_bytes);
  // The row of an id that a reader sees, from the newest; -1: none.
  RowIndex VisibleRow(RowIndex newest, RowIndex row_end,
                      const Bitmap* dead) const;

  std::int64_t capacity_;
  std::int64_t value_dim_;
  std::int64_t row_count_ = 0;
  std::atomic<std::int64_t> value_count_ = 0;
  // Written by the writer. What ids and values took, without and with arrays
  // that grow with what is in them.
  std::int64_t id_bytes_ = 0;
  std::int64_t value_bytes_ = 0;
  std::atomic<std::int64_t> all_id_bytes_ = 0;
  std::atomic<std::int64_t> all_value_bytes_ = 0;
  IdColumn ids_;
  AlignedBuffer<float> values_;  // [capacity, value_dim]
  TouchedPages touched_values_;  // of them; the writer's
  SparseArray<bool> has_value_;
  AttributeColumns columns_;
  SparseArray<std::shared_ptr<const std::string>> opaque_values_;
  // An older row of the same id, + 1; 0: none.
  SparseArray<RowIndex> newer_than_;
  // Open addressing with linear probing, at most three quarters full.
  std::int64_t slot_count_;
  std::unique_ptr<std::atomic<Slot>[]> slots_;
};

// A row table with one key index for each key field, and one for each head of a
// field's model.
struct Segment {
  // The first write whose items are among the rows, where the log of changes
  // may have it; 0: nobody knows.
  std::int64_t first_sequence = 0;
  std::shared_ptr<const RowTable> rows;
  std::vector<std::shared_ptr<const KeyIndex>> indexes;  // by key field
  // By key field and head; none for a field whose model stores no keys.
  std::vector<std::vector<std::shared_ptr<const KeyIndex>>> head_indexes;

  // What a head's keys are in; head -1: the field's keys themselves.
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

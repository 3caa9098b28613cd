// Rows of items: the unit that snapshots are made of.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENT_H_
#define ATTENDANT_CORE_CATALOG_SEGMENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/aligned_buffer.h"
#include "core/base/bitmap.h"
#include "core/base/ids.h"
#include "core/shortlist/flat_index.h"
#include "core/shortlist/key_index.h"
#include "core/storage/item.h"

namespace attendant {

// The payload of rows: ids, values, attributes, and the table from id to row.
// One writer appends up to a fixed capacity while readers use rows below the
// row_end of their snapshot. Shared by a segment's flat and IVF forms.
class RowTable : public ValueSource {
 public:
  RowTable(const CatalogSchema& schema, std::int64_t capacity);

  // Writer only.
  RowIndex Append(const Item& item);

  std::int64_t capacity() const { return capacity_; }
  std::int64_t row_count() const { return row_count_; }  // writer only
  absl::string_view Id(RowIndex row) const { return ids_[row]; }
  // value_dim floats, or null.
  const float* ValueOf(RowIndex row) const override;
  std::span<const std::pair<int, AttributeValue>> Attributes(
      RowIndex row) const {
    return attributes_[row];
  }
  // The one row of `id` that is below row_end and not in `dead` (which may be
  // null), or -1.
  RowIndex Find(absl::string_view id, RowIndex row_end,
                const Bitmap* dead) const;
  std::int64_t memory_bytes() const;

 private:
  std::int64_t capacity_;
  std::int64_t row_count_ = 0;
  std::int64_t value_dim_;
  std::unique_ptr<std::string[]> ids_;
  AlignedBuffer<float> values_;  // [capacity, value_dim]
  std::unique_ptr<bool[]> has_value_;
  std::unique_ptr<std::vector<std::pair<int, AttributeValue>>[]> attributes_;
  // Open addressing by linear probing, at most half full; row + 1, 0 is free.
  // An id that was written again stands several times: Find takes the live one.
  std::unique_ptr<std::atomic<RowIndex>[]> slots_;
  std::int64_t slot_mask_;
};

// A row table with one key index for each key field.
struct Segment {
  std::shared_ptr<RowTable> rows;
  std::vector<std::shared_ptr<const KeyIndex>> indexes;  // by key field
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENT_H_

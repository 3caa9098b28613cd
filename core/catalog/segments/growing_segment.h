// The segment that receives written rows.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_GROWING_SEGMENT_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_GROWING_SEGMENT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/catalog/rows/row_table.h"
#include "core/catalog/segments/snapshot.h"
#include "core/shortlist/kinds/flat_index.h"
#include "core/storage/records/item.h"

namespace attendant {

// The last segment of a catalog, while one writer appends to it. Readers see as
// many of its rows as the view in their snapshot says. One writer at a time.
class GrowingSegment {
 public:
  // Creates an object without a segment.
  GrowingSegment() = default;

  // Creates an empty segment with room for `capacity` rows and appends a view
  // of it to `next`, which determines the schema and models. Keys are assigned
  // to the same lists as the keys before them.
  GrowingSegment(std::int64_t capacity, Snapshot& next);

  // Null: there is no segment.
  const RowTable* rows() const { return rows_.get(); }
  bool is_full() const {
    return rows_ == nullptr || rows_->row_count() == rows_->capacity();
  }
  const std::shared_ptr<FlatIndex>& index(std::size_t field) const {
    return indexes_[field];
  }
  // By head.
  std::span<const std::shared_ptr<FlatIndex>> head_indexes(
      std::size_t field) const {
    return head_indexes_[field];
  }

  // Appends a row, which the last view of `next` must be of this segment and
  // then shows. The segment must not be full. Throws std::bad_alloc: the object
  // is then unusable, since it may contain rows that no view shows.
  void Append(const Item& item, Snapshot& next);

  // Assigns the new rows to their lists. Call before they are published.
  void AssignLists();

 private:
  void AppendHeadKeys(std::size_t field, std::span<const float> key,
                      const Snapshot& next);

  std::shared_ptr<RowTable> rows_;
  std::vector<std::shared_ptr<FlatIndex>> indexes_;  // by field
  // By field and head.
  std::vector<std::vector<std::shared_ptr<FlatIndex>>> head_indexes_;
  std::vector<float> projected_;  // scratch
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_GROWING_SEGMENT_H_

// The segment that takes the rows of writes.
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

// The last segment of a catalog, while one writer appends to it: readers see as
// many of its rows as the view of their snapshot says. One writer at a time.
class GrowingSegment {
 public:
  // There is none.
  GrowingSegment() = default;

  // An empty one of so many rows at most, of the schema and the models of
  // `next`, which gets a view of it at its end. Keys go by the lists that those
  // before them go by.
  GrowingSegment(std::int64_t capacity, Snapshot& next);

  // Null: there is none.
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

  // Appends a row, which the last view of `next`, of this segment, then shows.
  // It must not be full. Throws std::bad_alloc: then it is of no use any more,
  // as rows may be there that no view shows.
  void Append(const Item& item, Snapshot& next);

  // Assigns the rows to their lists: before they are published.
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

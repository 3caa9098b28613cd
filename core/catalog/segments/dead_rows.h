// Marks rows as dead in a snapshot that is not yet published.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_DEAD_ROWS_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_DEAD_ROWS_H_

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/bitmap.h"
#include "core/catalog/segments/snapshot.h"
#include "core/shortlist/scan/dead_keys.h"

namespace attendant {

// Copies each segment's bitmaps at most once for all rows marked. Not
// thread-safe.
class DeadRows {
 public:
  // Marks the live row of `id` in `next` as dead, if there is one. `next` must
  // be the same snapshot in every call; segments may be added to it. Throws
  // std::bad_alloc.
  void Kill(Snapshot& next, absl::string_view id);

 private:
  struct Copies {
    std::shared_ptr<Bitmap> rows;                 // null: none yet
    std::vector<std::shared_ptr<DeadKeys>> keys;  // as SegmentView::dead_keys
  };

  static Copies CopyOf(const SegmentView& view);

  std::vector<Copies> copies_;  // by segment
};

// Sets the dead rows of a view, and its dead keys; no counts.
void SetDead(SegmentView& view, std::shared_ptr<const Bitmap> dead);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_DEAD_ROWS_H_

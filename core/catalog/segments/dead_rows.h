// Marks rows as dead in a snapshot that is not yet published.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_DEAD_ROWS_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_DEAD_ROWS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/bitmap.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// Copies each segment's bitmap at most once for all rows marked. Not
// thread-safe.
class DeadRows {
 public:
  // Marks the live row of `id` in `next` as dead, if there is one. `next` must
  // be the same snapshot in every call; segments may be added to it. Throws
  // std::bad_alloc.
  void Kill(Snapshot& next, absl::string_view id) {
    const std::optional<RowAddress> address = next.Find(id);
    if (!address) return;
    SegmentView& view = next.segments[address->segment];
    copies_.resize(next.segments.size());
    std::shared_ptr<Bitmap>& copy = copies_[address->segment];
    if (copy == nullptr) {
      copy = view.dead != nullptr
                 ? std::make_shared<Bitmap>(*view.dead)
                 : std::make_shared<Bitmap>(view.segment->rows->capacity());
      view.dead = copy;
    }
    copy->Set(address->row);
    --view.live_count;
    for (std::size_t f = 0; f < view.live_key_counts.size(); ++f) {
      if (!view.segment->indexes[f]->Key(address->row).empty()) {
        --view.live_key_counts[f];
      }
    }
  }

 private:
  std::vector<std::shared_ptr<Bitmap>> copies_;  // by segment; null: none yet
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_DEAD_ROWS_H_

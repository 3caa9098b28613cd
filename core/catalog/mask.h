// Which items a query may attend to: live ones that no list and no filter of
// the query leaves out. A mask leaves a row out before it is scored, so the row
// weighs nothing: no finite number is added to its logit.
#ifndef ATTENDANT_CORE_CATALOG_MASK_H_
#define ATTENDANT_CORE_CATALOG_MASK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/bitmap.h"
#include "core/base/ids.h"
#include "core/catalog/snapshot.h"

namespace attendant {

// What is not eligible in one segment.
struct SegmentMask {
  // Dead, denied and example rows; null: none. Points to `own`, or to the
  // snapshot's dead rows where the query adds nothing.
  const Bitmap* excluded = nullptr;
  std::unique_ptr<Bitmap> own;
  // The allowed rows, all of them below the segment's row_end; null: all.
  std::unique_ptr<Bitmap> allowed;
};

// The masks of a query by segment, the same for every key field. Which of the
// rows they leave have a key differs by field, and so does EligibleCount.
// Movable; the snapshot must outlive it. Not thread-safe while it is built.
class Masks {
 public:
  Masks() = default;
  // Nothing masked but what is dead.
  explicit Masks(const Snapshot& snapshot);

  // Only these items; unknown ids match nothing. At most once.
  void AllowOnly(const std::vector<ItemId>& ids);
  void Exclude(RowAddress address);

  const SegmentMask& operator[](std::size_t segment) const {
    return masks_[segment];
  }
  // Rows that are live, not masked and have a key in the field. Reads the
  // masks' words, and the keys too where rows lack keys in the field.
  std::int64_t EligibleCount(int field) const;
  // The same of one segment.
  std::int64_t EligibleCount(std::size_t segment, int field) const;

 private:
  const Snapshot* snapshot_ = nullptr;
  std::vector<SegmentMask> masks_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_MASK_H_

// Which items a query may attend to: live ones that no list and no filter of
// the query leaves out. A mask leaves a row out before it is scored, so the row
// weighs nothing: no finite number is added to its logit.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_MASK_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_MASK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/bitmap.h"
#include "core/base/ids.h"
#include "core/base/interrupt.h"
#include "core/catalog/filter/filter.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// Which rows of one segment are eligible: those of `allowed` if it is not null,
// else those below row_end that are not in `excluded`. At most one is set.
struct SegmentMask {
  // Dead, denied and example rows; null: none. Points to `own`, or to the
  // snapshot's dead rows where the query adds nothing.
  const Bitmap* excluded = nullptr;
  std::unique_ptr<Bitmap> own;
  std::int64_t own_count = 0;  // live rows that are in `own`
  // Rows below row_end that are live, and allowed by all masks.
  std::unique_ptr<Bitmap> allowed;
};

// The masks of a query by segment, the same for every key field. Which of the
// rows they leave have a key differs by field, and so does EligibleCount.
// Movable; the snapshot must outlive it. Not thread-safe while it is built.
//
// Order: AllowOnly at most once, then Keep and Exclude any number of times.
class Masks {
 public:
  Masks() = default;
  // Nothing masked but what is dead.
  explicit Masks(const Snapshot& snapshot);

  // Only these items; unknown ids match nothing. InvalidArgument naming
  // `field`[i] for an id that is none; Cancelled, DeadlineExceeded.
  absl::Status AllowOnly(std::span<const ItemId> ids, absl::string_view field,
                         const Interrupt& interrupt);
  // Only items that the filter is true of. It is evaluated over the rows that
  // are left, once a segment. Errors: as ValidateFilter, naming fields of
  // "filter_expression"; Cancelled, DeadlineExceeded.
  absl::Status Keep(const Filter& filter, const Interrupt& interrupt);
  // Not these items; unknown ids match nothing. Errors as AllowOnly.
  absl::Status Exclude(std::span<const ItemId> ids, absl::string_view field,
                       const Interrupt& interrupt);
  void Exclude(RowAddress address);

  const SegmentMask& operator[](std::size_t segment) const {
    return masks_[segment];
  }
  // EligibleCount of a segment, where nothing has to be counted: no filter or
  // allow list, and the query leaves none out, or every live row has a key in
  // the field.
  std::optional<std::int64_t> KnownEligibleCount(std::size_t segment,
                                                 int field) const;
  // Rows that are live, not masked and have a key in the field. Reads the
  // masks' words, where it is not known.
  std::int64_t EligibleCount(int field) const;
  // The same with a key in some of the fields. Reads all words.
  std::int64_t EligibleCount(std::span<const int> fields) const;
  // The same of one segment.
  std::int64_t EligibleCount(std::size_t segment, int field) const;

 private:
  const Snapshot* snapshot_ = nullptr;
  absl::InlinedVector<SegmentMask, 1> masks_;
};

// The live items, with keys or without, that the filter is true of. Errors as
// Masks::Keep.
absl::StatusOr<std::int64_t> CountMatching(const Snapshot& snapshot,
                                           const Filter& filter,
                                           const Interrupt& interrupt = {});

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_MASK_H_

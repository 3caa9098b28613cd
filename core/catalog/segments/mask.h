// Determines which items a query may attend to: live items that no list or
// filter of the query excludes. A masked row is skipped before it is scored and
// so weighs exactly 0; its logit is not merely lowered by a finite number.
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

// The eligible rows of one segment: those of `allowed` if it is not null,
// otherwise those below row_end that are not in `excluded`. At most one of the
// two is set.
struct SegmentMask {
  // Dead, denied and example rows; null: none. Points to `own`, or to the
  // snapshot's dead rows if the query excludes no others.
  const Bitmap* excluded = nullptr;
  std::unique_ptr<Bitmap> own;
  std::int64_t own_count = 0;  // live rows in `own`
  // Rows below row_end that are live and allowed by all masks.
  std::unique_ptr<Bitmap> allowed;
};

// The masks of a query by segment, valid for every key field. Which of the
// remaining rows have a key differs by field, and so does EligibleCount.
// Movable; the snapshot must outlive it. Not thread-safe while it is being
// built.
//
// Order: AllowOnly at most once, then Keep and Exclude any number of times.
class Masks {
 public:
  Masks() = default;
  // Masks only dead rows.
  explicit Masks(const Snapshot& snapshot);

  // Keeps only these items; unknown ids match nothing. InvalidArgument naming
  // `field`[i] for an invalid id; Cancelled, DeadlineExceeded.
  absl::Status AllowOnly(std::span<const ItemId> ids, absl::string_view field,
                         const Interrupt& interrupt);
  // Keeps only items that match the filter. It is evaluated once per segment
  // over the remaining rows. Errors: as ValidateFilter, naming fields of
  // "filter_expression"; Cancelled, DeadlineExceeded.
  absl::Status Keep(const Filter& filter, const Interrupt& interrupt);
  // Excludes these items; unknown ids match nothing. Errors as AllowOnly.
  absl::Status Exclude(std::span<const ItemId> ids, absl::string_view field,
                       const Interrupt& interrupt);
  void Exclude(RowAddress address);

  const SegmentMask& operator[](std::size_t segment) const {
    return masks_[segment];
  }
  // Returns EligibleCount of a segment if it is known without counting: there
  // is no filter or allow list, and either the query excludes no rows or every
  // live row has a key in the field. Otherwise nullopt.
  std::optional<std::int64_t> KnownEligibleCount(std::size_t segment,
                                                 int field) const;
  // Returns the number of rows that are live, not masked and have a key in the
  // field. Reads the masks' words of segments where it is not known.
  std::int64_t EligibleCount(int field) const;
  // Returns the number of such rows with a key in at least one of the fields.
  // Reads all words.
  std::int64_t EligibleCount(std::span<const int> fields) const;
  // Returns EligibleCount of one segment.
  std::int64_t EligibleCount(std::size_t segment, int field) const;

 private:
  const Snapshot* snapshot_ = nullptr;
  absl::InlinedVector<SegmentMask, 1> masks_;
};

// Counts the live items, with or without keys, that match the filter. Errors as
// Masks::Keep.
absl::StatusOr<std::int64_t> CountMatching(const Snapshot& snapshot,
                                           const Filter& filter,
                                           const Interrupt& interrupt = {});

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_MASK_H_

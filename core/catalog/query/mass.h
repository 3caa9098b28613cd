// What scans know of the catalog's attention: how far off a guessed partition
// may be, and which share of it some items hold.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_MASS_H_
#define ATTENDANT_CORE_CATALOG_QUERY_MASS_H_

#include <cstddef>

#include "core/catalog/query/attend.h"
#include "core/catalog/query/by_head.h"
#include "core/catalog/query/scan.h"
#include "core/catalog/query/weigh.h"

namespace attendant {

// Where the log partition of a scan lies, as distances from its guess: certain
// for kBound, an interval that 95 % of queries hold for kEstimate; both 0 for
// kExact, of no meaning for kUnknown. below <= 0 <= above.
//
// An estimate takes the partition to be log-normal about its guess with the
// scan's variance, whichever of the two is the mean: the interval is half of
// log(1 + r^2) wider, each way, than 1.96 of its root, r being the standard
// deviation as a share of the guess. For a small r that is 1.96 r; for a large
// one, where guess - 1.96 deviations is below 0, it still means something.
struct PartitionError {
  MassMethod method = MassMethod::kUnknown;
  double below = 0;
  double above = 0;

  // The greater distance.
  double most() const;
};

// Of one scan. prefers_bounds: where bounds are certified they are the interval
// even if an estimate would be narrower.
PartitionError ErrorOf(const HeadScan& scan, bool prefers_bounds);

// The same, no less than the sum of `exact`, which are rows of the catalog
// scored exactly but for the rounding of floats; bounds, which know of both,
// stay as they are.
PartitionError NotBelow(PartitionError error, const LogPartition& guess,
                        const LogPartition& exact);

// The shares that parts of the catalog, by head, are of it.
class MassReader {
 public:
  // Both have one entry a head.
  MassReader(LogPartitions catalog, ByHead<PartitionError> errors);

  const PartitionError& error(std::size_t head) const { return errors_[head]; }
  Mass InHead(const LogPartitions& part, std::size_t head) const;
  // The mean over the heads that see something. kEstimate where some head's is
  // not exact, kUnknown where some head's is.
  Mass MeanOf(const LogPartitions& part) const;
  // The catalog's partitions at their most, where estimated somewhat more.
  LogPartitions Greatest() const;

 private:
  LogPartitions catalog_;
  ByHead<PartitionError> errors_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_MASS_H_

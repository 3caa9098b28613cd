// Knowledge of scans about the catalog's attention: the error of a guessed
// partition, and the share of it that given items hold.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_MASS_H_
#define ATTENDANT_CORE_CATALOG_QUERY_MASS_H_

#include <cstddef>

#include "core/catalog/query/attend.h"
#include "core/catalog/query/by_head.h"
#include "core/catalog/query/scan.h"
#include "core/catalog/query/weigh.h"

namespace attendant {

// An interval of a scan's log partition, as distances from its guess: certain
// for kBound, a 95 % interval for kEstimate, both 0 for kExact, meaningless for
// kUnknown. below <= 0 <= above.
//
// An estimate assumes that the partition is log-normal about its guess with the
// scan's variance, and does not assume which of the two is the mean. Let r be
// the standard deviation relative to the guess and v = log(1 + r^2). The
// interval extends 1.96 sqrt(v) + v / 2 to each side. For a small r that is
// 1.96 r; for a large r, where guess - 1.96 deviations is below 0, the interval
// remains meaningful.
struct PartitionError {
  MassMethod method = MassMethod::kUnknown;
  double below = 0;
  double above = 0;

  // The greater of the two distances.
  double most() const;
};

// Returns the error of one scan. With prefers_bounds, certified bounds are the
// interval even if an estimate would be narrower.
PartitionError ErrorOf(const HeadScan& scan, bool prefers_bounds);

// Returns `error`, narrowed so that the partition is no less than `exact`: the
// sum of catalog rows whose logits are exact up to the rounding of floats.
// Bounds, which already account for both, are returned unchanged.
PartitionError NotBelow(PartitionError error, const LogPartition& guess,
                        const LogPartition& exact);

// Computes the shares of the catalog's attention, by head, that parts of it
// hold.
class MassReader {
 public:
  // All have one entry per head; head_weights are > 0.
  MassReader(LogPartitions catalog, ByHead<PartitionError> errors,
             ByHead<double> head_weights);

  const PartitionError& error(std::size_t head) const { return errors_[head]; }
  Mass InHead(const LogPartitions& part, std::size_t head) const;
  // The mean over the heads that see something, by their weights. kEstimate if
  // some head's mass is not exact, kUnknown if some head's mass is unknown.
  Mass MeanOf(const LogPartitions& part) const;
  // The upper ends of the catalog's partitions; slightly more if estimated.
  LogPartitions Greatest() const;

 private:
  LogPartitions catalog_;
  ByHead<PartitionError> errors_;
  ByHead<double> head_weights_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_MASS_H_

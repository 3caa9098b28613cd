// How widely a head's attention is spread over the catalog: its entropy, and
// how many items share it.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_SPREAD_H_
#define ATTENDANT_CORE_CATALOG_QUERY_SPREAD_H_

#include <optional>

#include "core/catalog/query/attend.h"
#include "core/catalog/query/mass.h"
#include "core/catalog/query/scan.h"

namespace attendant {

// Both with the method of the log partition.
struct AttentionSpread {
  std::optional<double> entropy;  // nats; nothing if nothing is eligible
  std::optional<Interval> entropy_interval;
  double effective_count = 0;  // 1 / sum of squared weights
  Interval effective_count_interval;
};

// `error` is that of the scan's partition, and its method known.
//
// Rows scored from floats have an entropy that is known. The others weigh
// something between what `error` says, and share that as evenly as there are
// many of them at most, and at least as rows none of which has a logit above
// the least of the shortlist, if that is proven; else above the best or what is
// guessed of theirs, but for one row, as heavy as `error` leaves room for one
// that nobody has seen. So intervals are certain where that of the partition is
// and the shortlist is proven. They are wide where much was not scored. Where
// every key was scored from its code, the two are as near as the logits, and
// hardly one of the others weighs more than the last of the shortlist: see
// docs/mass.md.
AttentionSpread SpreadOf(const HeadScan& scan, const PartitionError& error);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_SPREAD_H_

// How widely a head's attention is spread over the catalog: its entropy and its
// effective item count.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_SPREAD_H_
#define ATTENDANT_CORE_CATALOG_QUERY_SPREAD_H_

#include <optional>

#include "core/catalog/query/attend.h"
#include "core/catalog/query/mass.h"
#include "core/catalog/query/scan.h"

namespace attendant {

// Both are obtained by the method of the log partition.
struct AttentionSpread {
  std::optional<double> entropy;  // in nats; unset if nothing is eligible
  std::optional<Interval> entropy_interval;
  double effective_count = 0;  // 1 / sum of squared weights
  Interval effective_count_interval;
};

// Returns the spread of a scan's attention. `error` is that of the scan's
// partition; its method must not be kUnknown.
//
// The entropy of rows scored from floats is known. The other rows together
// weigh an amount within `error`. Their greatest possible entropy is that of
// equal weights over their greatest possible number. For the least, no row has
// a logit above the least of the shortlist, if that is proven. Otherwise none
// has a logit above the best one or above what is guessed of theirs, except one
// unseen row that weighs as much as `error` allows. So the intervals are
// certain if that of the partition is certain and the shortlist is proven. They
// are wide if much was not scored. Where every key was scored from its code,
// entropy and effective count are as precise as the logits, and few of the
// other rows, if any, weigh more than the last of the shortlist; see
// docs/mass.md.
AttentionSpread SpreadOf(const HeadScan& scan, const PartitionError& error);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_SPREAD_H_

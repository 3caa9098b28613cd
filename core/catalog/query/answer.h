// Makes the answer of a query from what its scans found.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_ANSWER_H_
#define ATTENDANT_CORE_CATALOG_QUERY_ANSWER_H_

#include "absl/status/statusor.h"
#include "core/base/interrupt.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/query/query_plan.h"
#include "core/catalog/query/query_scan.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// Selects, weighs, pools, and says what the answer holds. Errors:
// InvalidArgument if a pooled value or a logit overflows; an interrupt.
absl::StatusOr<AttendAnswer> MakeAnswer(const Snapshot& snapshot,
                                        const QueryPlan& plan, HeadScans scans,
                                        const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_ANSWER_H_

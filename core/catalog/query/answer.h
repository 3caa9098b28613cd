// Turns the results of a query's scans into its answer.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_ANSWER_H_
#define ATTENDANT_CORE_CATALOG_QUERY_ANSWER_H_

#include "absl/status/statusor.h"
#include "core/base/interrupt.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/query/query_plan.h"
#include "core/catalog/query/query_scan.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// Selects, weighs and pools items, and computes masses. Errors: InvalidArgument
// if a pooled value or a logit overflows; those of the interrupt.
absl::StatusOr<AttendAnswer> MakeAnswer(const Snapshot& snapshot,
                                        const QueryPlan& plan, HeadScans scans,
                                        const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_ANSWER_H_

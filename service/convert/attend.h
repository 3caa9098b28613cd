// Converts queries from the wire to core.
#ifndef ATTENDANT_SERVICE_CONVERT_ATTEND_H_
#define ATTENDANT_SERVICE_CONVERT_ATTEND_H_

#include "absl/status/statusor.h"
#include "attendant/v1/attention_service.pb.h"
#include "core/catalog/query/attend.h"

namespace attendant {

// Converts all but the catalog, the model, the read mask and the filter (see
// FilterOfRequest). InvalidArgument names a field of AttendRequest. Core checks
// ranges, limits and what depends on the catalog.
absl::StatusOr<AttendQuery> AttendQueryFromProto(const v1::AttendRequest& wire);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_ATTEND_H_

// Filters of the wire to core's.
#ifndef ATTENDANT_SERVICE_CONVERT_FILTER_H_
#define ATTENDANT_SERVICE_CONVERT_FILTER_H_

#include <optional>

#include "absl/status/statusor.h"
#include "attendant/v1/attention_service.pb.h"
#include "attendant/v1/filter.pb.h"
#include "core/catalog/filter.h"

namespace attendant {

// InvalidArgument names fields under `field`. What must fit the schema, and the
// limits, are core's to check.
absl::StatusOr<Filter> FilterFromProto(const v1::Filter& wire,
                                       absl::string_view field);

// The filter of a request, as text or as a message; nothing if it has none.
// InvalidArgument if it has both, or a bad one; ResourceExhausted over a limit
// of the text.
absl::StatusOr<std::optional<Filter>> FilterOfRequest(
    const v1::AttendRequest& wire, const CatalogSchema& schema);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_FILTER_H_

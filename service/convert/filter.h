// Converts filters from the wire to core.
#ifndef ATTENDANT_SERVICE_CONVERT_FILTER_H_
#define ATTENDANT_SERVICE_CONVERT_FILTER_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "attendant/v1/filter.pb.h"
#include "core/catalog/filter/filter.h"

namespace attendant {

// InvalidArgument names a field under `field`. Core checks the schema and the
// limits.
absl::StatusOr<Filter> FilterFromProto(const v1::Filter& wire,
                                       absl::string_view field);

// Parses a filter given as text or as a message (null: none).
absl::StatusOr<std::optional<Filter>> FilterFrom(const std::string& text,
                                                 const v1::Filter* expression,
                                                 const CatalogSchema& schema,
                                                 int max_depth);

// Returns the filter in the request's fields filter and filter_expression;
// nothing if neither is set. InvalidArgument if both are set or the filter is
// invalid; ResourceExhausted if the text exceeds a limit or the filter is
// nested deeper than max_depth.
template <typename Request>
absl::StatusOr<std::optional<Filter>> FilterOfRequest(
    const Request& wire, const CatalogSchema& schema, int max_depth) {
  return FilterFrom(
      wire.filter(),
      wire.has_filter_expression() ? &wire.filter_expression() : nullptr,
      schema, max_depth);
}

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_FILTER_H_

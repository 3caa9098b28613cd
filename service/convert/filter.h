// Filters of the wire to core's.
#ifndef ATTENDANT_SERVICE_CONVERT_FILTER_H_
#define ATTENDANT_SERVICE_CONVERT_FILTER_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "attendant/v1/filter.pb.h"
#include "core/catalog/filter/filter.h"

namespace attendant {

// InvalidArgument names fields under `field`. What must fit the schema, and the
// limits, are core's to check.
absl::StatusOr<Filter> FilterFromProto(const v1::Filter& wire,
                                       absl::string_view field);

// A filter as text, or as a message (null: none).
absl::StatusOr<std::optional<Filter>> FilterFrom(const std::string& text,
                                                 const v1::Filter* expression,
                                                 const CatalogSchema& schema,
                                                 int max_depth);

// The filter of a request in its fields filter and filter_expression; nothing
// if it has none. InvalidArgument if it has both, or a bad one;
// ResourceExhausted over a limit of the text, or deeper than max_depth.
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

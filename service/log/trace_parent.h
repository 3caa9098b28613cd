// The header `traceparent` of W3C Trace Context: the trace a call is part of.
#ifndef ATTENDANT_SERVICE_LOG_TRACE_PARENT_H_
#define ATTENDANT_SERVICE_LOG_TRACE_PARENT_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace attendant {

// Views into the header.
struct TraceParent {
  absl::string_view trace_id;   // 32 hex digits
  absl::string_view parent_id;  // 16 hex digits: the calling span
};

// Returns nothing for a header that is invalid according to the recommendation
// (level 1, section 3.2). For versions above 00, parses the known part.
std::optional<TraceParent> ParseTraceParent(absl::string_view header);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_LOG_TRACE_PARENT_H_

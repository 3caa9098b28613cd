// The header `traceparent` of W3C Trace Context: which trace a call is part of.
#ifndef ATTENDANT_SERVICE_LOG_TRACE_PARENT_H_
#define ATTENDANT_SERVICE_LOG_TRACE_PARENT_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace attendant {

// Views of the header.
struct TraceParent {
  absl::string_view trace_id;   // 32 hex digits
  absl::string_view parent_id;  // 16 hex digits: the span that made the call
};

// Nothing for what the recommendation (level 1, section 3.2) calls invalid. Of
// a later version than 00, what is known of it.
std::optional<TraceParent> ParseTraceParent(absl::string_view header);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_LOG_TRACE_PARENT_H_

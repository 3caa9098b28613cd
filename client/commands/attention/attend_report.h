// An answer as a person reads it.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_ATTEND_REPORT_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_ATTEND_REPORT_H_

#include <string>
#include <vector>

#include "attendant/v1/attention_service.pb.h"
#include "client/format/text.h"

namespace attendant {

struct AttendReportOptions {
  std::vector<std::string> shown_attributes = {};
  bool hard = false;
  // Whether the pooled value is reported.
  bool pooled_value = false;
  // Whether the items' opaque values are shown, as text.
  bool opaque_value = false;
  // Whether each head's weights are shown, where there are several.
  bool head_weights = false;
  Style style = {};
};

// A table of the items with weights as bars, the longest for the greatest; then
// sentences on the mass they hold, how many items share the attention, what it
// was computed with, unknown examples and the pooled value.
std::string AttendReport(const v1::AttendResponse& response,
                         const AttendReportOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_ATTEND_REPORT_H_

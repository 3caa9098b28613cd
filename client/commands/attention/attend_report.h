// Formats an answer for people.
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
  // True if the pooled value is reported.
  bool pooled_value = false;
  // True if the items' opaque values are shown, as text.
  bool opaque_value = false;
  // True if each head's weights are shown. Ignored with a single head.
  bool head_weights = false;
  // The flags that keep items out of the answer, as "--filter".
  std::vector<std::string> masks = {};
  Style style = {};
};

// Returns a table of the items with weights as bars, scaled to the greatest
// weight, followed by sentences on the mass that the items hold, the effective
// number of items, how the weights were computed, unknown examples and the
// pooled value.
std::string AttendReport(const v1::AttendResponse& response,
                         const AttendReportOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_ATTEND_REPORT_H_

// Formats the plan of an answer for people.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_PLAN_REPORT_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_PLAN_REPORT_H_

#include <string>

#include "attendant/v1/attention_service.pb.h"
#include "client/format/text.h"

namespace attendant {

// Returns a table of the time by stage with bars, a table of the scans, and a
// sentence on candidates, segments, kernels and the request id.
std::string PlanReport(const v1::QueryPlan& plan, const Style& style);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_PLAN_REPORT_H_

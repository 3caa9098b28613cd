// How an answer came about, as a person reads it.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_PLAN_REPORT_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_PLAN_REPORT_H_

#include <string>

#include "attendant/v1/attention_service.pb.h"
#include "client/format/text.h"

namespace attendant {

// A table of where the time went, with bars; one of the scans; and a sentence
// on the rest.
std::string PlanReport(const v1::QueryPlan& plan, const Style& style);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_PLAN_REPORT_H_

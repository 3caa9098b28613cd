// Findings, as people and programs read them.
#ifndef ATTENDANT_CLIENT_DOCTOR_REPORT_H_
#define ATTENDANT_CLIENT_DOCTOR_REPORT_H_

#include <span>
#include <string>
#include <vector>

#include "client/doctor/finding.h"
#include "client/format/text.h"

namespace attendant {

// What was looked at together.
struct Examination {
  std::string title;
  std::vector<Finding> findings;
};

// The worst of all; kOk if there are none, or only skipped ones.
Verdict WorstOf(std::span<const Examination> examinations);

// A list a part, a mark before each finding and what to do below it, and a
// sentence at the end.
std::string DoctorReport(std::span<const Examination> examinations,
                         const Style& style);

// {"verdict": ..., "examinations": [{"title": ..., "findings": [{"subject",
// "verdict", "text", "advice"}]}]}, verdicts being ok, skipped, warning and
// failure.
std::string DoctorJson(std::span<const Examination> examinations);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_REPORT_H_

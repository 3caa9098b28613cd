// Formats findings for people and programs.
#ifndef ATTENDANT_CLIENT_DOCTOR_REPORT_H_
#define ATTENDANT_CLIENT_DOCTOR_REPORT_H_

#include <span>
#include <string>
#include <vector>

#include "client/doctor/finding.h"
#include "client/format/text.h"

namespace attendant {

// Findings about one part, such as the machine.
struct Examination {
  std::string title;
  std::vector<Finding> findings;
};

// Returns the worst verdict; kOk if there are no findings, or only skipped
// ones.
Verdict WorstOf(std::span<const Examination> examinations);

// Returns a list for each examination, with a mark before each finding and the
// advice below it, and a summary at the end.
std::string DoctorReport(std::span<const Examination> examinations,
                         const Style& style);

// Returns {"verdict": ..., "examinations": [{"title": ..., "findings":
// [{"subject", "verdict", "text", "advice"}]}]}. A verdict is ok, skipped,
// warning or failure.
std::string DoctorJson(std::span<const Examination> examinations);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_REPORT_H_

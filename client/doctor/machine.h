// Examines whether a machine is fit to run attendantd.
#ifndef ATTENDANT_CLIENT_DOCTOR_MACHINE_H_
#define ATTENDANT_CLIENT_DOCTOR_MACHINE_H_

#include <string>
#include <vector>

#include "client/doctor/finding.h"

namespace attendant {

// Examines the processor; the kernels in use, against their scalar twin; FAISS,
// by searching a small index; memory; and huge pages. `root` contains /proc and
// /sys. Takes some tens of milliseconds.
std::vector<Finding> ExamineMachine(const std::string& root = "");

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_MACHINE_H_

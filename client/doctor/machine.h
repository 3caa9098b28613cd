// Whether this machine is one to run attendantd on.
#ifndef ATTENDANT_CLIENT_DOCTOR_MACHINE_H_
#define ATTENDANT_CLIENT_DOCTOR_MACHINE_H_

#include <string>
#include <vector>

#include "client/doctor/finding.h"

namespace attendant {

// The processor, the kernels chosen and whether they agree with their scalar
// twin, FAISS and whether a small index of it finds what is there, memory and
// huge pages. `root` is where /proc and /sys are. Takes some tens of
// milliseconds.
std::vector<Finding> ExamineMachine(const std::string& root = "");

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_MACHINE_H_

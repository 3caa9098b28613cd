// Whether a directory is one to give to attendantd.
#ifndef ATTENDANT_CLIENT_DOCTOR_DATA_DIRECTORY_H_
#define ATTENDANT_CLIENT_DOCTOR_DATA_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/doctor/finding.h"

namespace attendant {

// Whether it is there or can be made and be written to, what format it has, who
// holds it, whether its files can be used, what space the disk has, what file
// system it is and how long a sync takes. Leaves the directory as it is but for
// a file that it removes again, also while a server has it open.
// `server_answers`: on this machine, so that its directory is held.
std::vector<Finding> ExamineDataDirectory(const std::string& path,
                                          bool server_answers = false);

// The process that has the directory open; 0: none.
std::int64_t HolderOf(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_DATA_DIRECTORY_H_

// Examines a data directory of attendantd.
#ifndef ATTENDANT_CLIENT_DOCTOR_DATA_DIRECTORY_H_
#define ATTENDANT_CLIENT_DOCTOR_DATA_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/doctor/finding.h"

namespace attendant {

// Examines whether the directory exists or can be made, and can be written to;
// its format; which process holds it; whether its files can be used; free
// space; the file system; and how long a sync takes. Changes nothing but for a
// temporary file, and is safe while a server has the directory open.
// `server_answers` is true if a server on this machine answers: some process
// should then hold the directory.
std::vector<Finding> ExamineDataDirectory(const std::string& path,
                                          bool server_answers = false);

// Returns the id of the process that has the directory open, or 0.
std::int64_t HolderOf(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_DATA_DIRECTORY_H_

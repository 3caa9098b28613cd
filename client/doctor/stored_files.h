// Examines the permissions of the files in a data directory.
#ifndef ATTENDANT_CLIENT_DOCTOR_STORED_FILES_H_
#define ATTENDANT_CLIENT_DOCTOR_STORED_FILES_H_

#include <string>

#include "client/doctor/finding.h"

namespace attendant {

// Examines whether this process may read and write every file under the
// directory and enter every folder. Names the first that it may not. Skips
// symbolic links, and files that are removed meanwhile, as by a server.
Finding ExamineStoredFiles(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_STORED_FILES_H_

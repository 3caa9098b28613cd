// Whether what a data directory holds may be used.
#ifndef ATTENDANT_CLIENT_DOCTOR_STORED_FILES_H_
#define ATTENDANT_CLIENT_DOCTOR_STORED_FILES_H_

#include <string>

#include "client/doctor/finding.h"

namespace attendant {

// Whether this process may read and write every file under the directory, and
// go into every folder. Names the first that it may not. Symbolic links are
// passed over, as is what is removed meanwhile, by a server for one.
Finding ExamineStoredFiles(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_STORED_FILES_H_

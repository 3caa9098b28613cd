// Examines how many files a server may have open.
#ifndef ATTENDANT_CLIENT_DOCTOR_OPEN_FILES_H_
#define ATTENDANT_CLIENT_DOCTOR_OPEN_FILES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "client/doctor/finding.h"

namespace attendant {

inline constexpr char kOpenFiles[] = "open files";

// Says how many catalogs a server with this limit can hold. `open` is the
// number of open files, if known. An infinite limit means none. Two thirds of
// the limit are for catalogs, as in CheckOpenFiles.
Finding OpenFilesOf(double limit, std::optional<double> open);

// Returns that finding for a process, from /proc in `root`; nothing if there is
// no such process.
std::optional<Finding> ExamineOpenFiles(std::int64_t pid,
                                        const std::string& root = "");

// Returns that finding for this process. A server may have another limit.
Finding ExamineOwnOpenFiles();

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_OPEN_FILES_H_

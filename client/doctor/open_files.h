// How many files a server may have open.
#ifndef ATTENDANT_CLIENT_DOCTOR_OPEN_FILES_H_
#define ATTENDANT_CLIENT_DOCTOR_OPEN_FILES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "client/doctor/finding.h"

namespace attendant {

inline constexpr char kOpenFiles[] = "open files";

// What a server of such a limit can hold; `open`: how many are, where that is
// known. Infinity is no limit. Two thirds are for catalogs, as CheckOpenFiles
// has it.
Finding OpenFilesOf(double limit, std::optional<double> open);

// The same of a process, as /proc of `root` has it; nothing if it is not there.
std::optional<Finding> ExamineOpenFiles(std::int64_t pid,
                                        const std::string& root = "");

// Of this process: a server may have another.
Finding ExamineOwnOpenFiles();

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_OPEN_FILES_H_

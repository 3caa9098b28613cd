// Makes names last.
#ifndef ATTENDANT_CLIENT_FILES_SYNC_DIRECTORY_H_
#define ATTENDANT_CLIENT_FILES_SYNC_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"

namespace attendant {

// After OK, what was renamed in the directory before stays so after a crash.
absl::Status SyncDirectory(const std::string& directory);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_SYNC_DIRECTORY_H_

// Makes renames durable.
#ifndef ATTENDANT_CLIENT_FILES_SYNC_DIRECTORY_H_
#define ATTENDANT_CLIENT_FILES_SYNC_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"

namespace attendant {

// Syncs a directory: after OK, earlier renames in it survive a crash.
absl::Status SyncDirectory(const std::string& directory);

// Returns the directory that a path is in, "." if the path names none.
std::string DirectoryOf(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_SYNC_DIRECTORY_H_

// Files of item ids, one per line.
#ifndef ATTENDANT_CLIENT_FILES_IDS_H_
#define ATTENDANT_CLIENT_FILES_IDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant {

// Returns the ids in order. InvalidArgument, naming file and line, if an id is
// not 1 to 128 bytes of UTF-8 or appears twice.
absl::StatusOr<std::vector<std::string>> ReadIds(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_IDS_H_

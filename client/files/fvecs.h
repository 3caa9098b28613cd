// .fvecs files: each row is its dimension as a little-endian 32-bit integer and
// so many little-endian binary32 numbers.
#ifndef ATTENDANT_CLIENT_FILES_FVECS_H_
#define ATTENDANT_CLIENT_FILES_FVECS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/files/vector_file.h"

namespace attendant {

// InvalidArgument if the first row's dimension is not in [1, kMaxFileDim], or
// the file does not hold a whole number of such rows; a later row of another
// dimension is an error of ReadRow.
absl::StatusOr<std::unique_ptr<VectorFile>> OpenFvecs(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_FVECS_H_

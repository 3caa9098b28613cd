// .fvecs files: each row is its dimension as a little-endian 32-bit integer,
// followed by that number of little-endian binary32 numbers.
#ifndef ATTENDANT_CLIENT_FILES_FVECS_H_
#define ATTENDANT_CLIENT_FILES_FVECS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/files/vector_file.h"

namespace attendant {

// InvalidArgument if the first row's dimension is not in [1, kMaxFileDim] or
// the file is not a whole number of rows of that size. ReadRow reports a later
// row of another dimension.
absl::StatusOr<std::unique_ptr<VectorFile>> OpenFvecs(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_FVECS_H_

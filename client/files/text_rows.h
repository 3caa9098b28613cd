// Vectors that a person can write and read: a row a line, its numbers parted by
// spaces, tabs or commas. A line that is empty or begins with # is none.
#ifndef ATTENDANT_CLIENT_FILES_TEXT_ROWS_H_
#define ATTENDANT_CLIENT_FILES_TEXT_ROWS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/files/vector_file.h"

namespace attendant {

// Reads all of the file. InvalidArgument, naming the line: what is no number,
// a row of another length than the first, more than kMaxFileDim numbers; or a
// file without a row.
absl::StatusOr<std::unique_ptr<VectorFile>> OpenTextRows(
    const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_TEXT_ROWS_H_

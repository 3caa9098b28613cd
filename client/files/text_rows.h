// Text files of vectors: one row per line, its numbers separated by spaces,
// tabs or commas. Lines that are empty or begin with # are skipped.
#ifndef ATTENDANT_CLIENT_FILES_TEXT_ROWS_H_
#define ATTENDANT_CLIENT_FILES_TEXT_ROWS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/files/vector_file.h"

namespace attendant {

// Reads the whole file. InvalidArgument, naming the line, if a word is not a
// number, a row has another length than the first, or a row has more than
// kMaxFileDim numbers; also if the file has no row.
absl::StatusOr<std::unique_ptr<VectorFile>> OpenTextRows(
    const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_TEXT_ROWS_H_

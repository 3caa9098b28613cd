// Writing a file, or a directory of them, so that no reader ever takes half of
// it for a whole.
#ifndef ATTENDANT_CLIENT_FILES_OUTPUT_H_
#define ATTENDANT_CLIENT_FILES_OUTPUT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace attendant {

struct OutputFile {
  std::string name;
  std::string content;
};

// Where a file of this path is written until it is whole: a name beside it that
// no other process takes.
std::string AsidePath(const std::string& path);

// Whether WriteFile could write this file, for a caller that has much to do
// before it does. Changes nothing.
absl::Status CheckWritableFile(const std::string& path);

// Writes a file beside its place, syncs and renames it. After an error one that
// was there is as it was, and what was written aside is gone. A device or a
// pipe is written as it is.
absl::Status WriteFile(const std::string& path, const std::string& content);

// Whether WriteDirectory could write into `directory`, for a caller that has
// much to do before it does. Changes nothing.
absl::Status CheckWritableDirectory(const std::string& directory);

// Writes the files into `directory`, made if missing. The last file stands for
// the whole: it is removed first if it is there, and appears when all others
// are in place. All is written beside its place, synced and renamed; the
// signals of SignalsCaught wait until that is done. After an error, what was
// written aside is gone, and either nothing has changed or the last file is
// missing.
absl::Status WriteDirectory(const std::string& directory,
                            const std::vector<OutputFile>& files);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_OUTPUT_H_

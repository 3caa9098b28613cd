// Writes a file or a directory of files atomically: no reader mistakes a
// partial one for a complete one.
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

// Returns the path at which this file is written until it is complete: in the
// same directory, under a name that no other process uses.
std::string AsidePath(const std::string& path);

// Returns OK if WriteFile could write this file now. Lets a caller fail before
// long work. Changes nothing.
absl::Status CheckWritableFile(const std::string& path);

// Writes a file under its AsidePath, syncs it and renames it. After an error,
// an existing file is unchanged and the aside file is removed. A device or a
// pipe is written directly.
absl::Status WriteFile(const std::string& path, const std::string& content);

// Returns OK if WriteDirectory could write into `directory` now. Lets a caller
// fail before long work. Changes nothing.
absl::Status CheckWritableDirectory(const std::string& directory);

// Writes the files into `directory`, which is created if missing. The last file
// marks the directory as complete: an existing one is removed first, and it
// appears once all others are in place. Every file is written aside, synced and
// renamed; the signals of SignalsCaught are delayed until that is done. After
// an error, the aside files are removed, and either nothing has changed or the
// last file is missing.
absl::Status WriteDirectory(const std::string& directory,
                            const std::vector<OutputFile>& files);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_OUTPUT_H_

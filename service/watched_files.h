// Whether files have changed, asked now and then.
#ifndef ATTENDANT_SERVICE_WATCHED_FILES_H_
#define ATTENDANT_SERVICE_WATCHED_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant {

// Knows files by their inode, size and times, through links: what replaces a
// file by rename, or a link above it, is a change too. Not thread-safe.
class WatchedFiles {
 public:
  // Paths that are empty are left out.
  explicit WatchedFiles(std::vector<std::string> paths);

  // True if any is another than at the last call, or than at the construction.
  // Ask before reading: what is written while it is read changes it again.
  bool HaveChanged();

 private:
  std::string Signature() const;

  std::vector<std::string> paths_;
  std::string signature_;
};

// The whole file. NotFound, PermissionDenied or another code with the path and
// the reason; ResourceExhausted above 1 MiB, which no file of ours has.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHED_FILES_H_

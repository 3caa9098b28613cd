// Detects changes to files by polling.
#ifndef ATTENDANT_SERVICE_SECURITY_WATCHED_FILES_H_
#define ATTENDANT_SERVICE_SECURITY_WATCHED_FILES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant {

// Identifies files by inode, size and times, following links, so that a file
// replaced by rename, or through a link in its path, counts as changed. Not
// thread-safe.
class WatchedFiles {
 public:
  // Empty paths are ignored.
  explicit WatchedFiles(std::vector<std::string> paths);

  // True if any file has changed since the last call or construction. Call
  // before reading, so that a write during the read is detected next time.
  bool HaveChanged();

  // Call if the files could not be read: HaveChanged then returns true next
  // time.
  void ReadAgain() { signature_.clear(); }

 private:
  std::string Signature() const;

  std::vector<std::string> paths_;
  std::string signature_;
};

inline constexpr std::size_t kMaxSmallFileBytes = 1 << 20;

// Reads a whole file. NotFound, PermissionDenied or another code, with the path
// and the reason; InvalidArgument if it is not a regular file;
// ResourceExhausted above kMaxSmallFileBytes.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_WATCHED_FILES_H_

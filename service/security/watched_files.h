// Whether files have changed, asked now and then.
#ifndef ATTENDANT_SERVICE_SECURITY_WATCHED_FILES_H_
#define ATTENDANT_SERVICE_SECURITY_WATCHED_FILES_H_

#include <cstddef>
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

  // They could not be read: HaveChanged is true next time too.
  void ReadAgain() { signature_.clear(); }

 private:
  std::string Signature() const;

  std::vector<std::string> paths_;
  std::string signature_;
};

inline constexpr std::size_t kMaxSmallFileBytes = 1 << 20;

// The whole file. NotFound, PermissionDenied or another code with the path and
// the reason; InvalidArgument if it is no regular file; ResourceExhausted above
// kMaxSmallFileBytes.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_WATCHED_FILES_H_

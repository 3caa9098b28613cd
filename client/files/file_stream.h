// Writes a large file part by part.
#ifndef ATTENDANT_CLIENT_FILES_FILE_STREAM_H_
#define ATTENDANT_CLIENT_FILES_FILE_STREAM_H_

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/files/signals.h"

namespace attendant {

// A file that is written under another name until it is complete. An
// uncommitted file is removed by the destructor and by the signals of
// SignalsCaught. At most one object exists at a time. Not thread-safe. Errors
// name the path.
class FileStream {
 public:
  // AlreadyExists if `path` exists, InvalidArgument if it is a directory.
  static absl::StatusOr<std::unique_ptr<FileStream>> Create(
      const std::string& path);
  ~FileStream();
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

  absl::Status Append(absl::string_view bytes);
  // Syncs the file and renames it to its path. AlreadyExists if the path was
  // created meanwhile. No calls may follow.
  absl::Status Commit();

 private:
  explicit FileStream(std::string path);

  const std::string path_;
  const std::string aside_;
  std::optional<SignalsCaught> signals_;
  std::FILE* file_ = nullptr;  // null once committed, or if not created
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_FILE_STREAM_H_

// A large file that is written part by part.
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

// Written beside its place until it is whole; what is not committed is removed
// at the end, as by the signals of SignalsCaught. At most one at a time. Not
// thread-safe. Errors name the path.
class FileStream {
 public:
  // AlreadyExists if there is a file PATH.
  static absl::StatusOr<std::unique_ptr<FileStream>> Create(
      const std::string& path);
  ~FileStream();
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

  absl::Status Append(absl::string_view bytes);
  // Syncs the file and gives it its name. AlreadyExists if another has got it
  // meanwhile. Nothing after it.
  absl::Status Commit();

 private:
  explicit FileStream(std::string path);

  const std::string path_;
  const std::string aside_;
  std::optional<SignalsCaught> signals_;
  std::FILE* file_ = nullptr;  // null: committed, or never made
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_FILE_STREAM_H_

#include "core/storage/files/data_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Not synced: the kernel holds the lock, and the pid only helps to find the
// holder.
void WritePid(const FileDescriptor& lock) {
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(lock.get(), 0) != 0) return;
  if (pwrite(lock.get(), pid.data(), pid.size(), 0) < 0) return;
}

absl::StatusOr<FileDescriptor> Lock(const std::string& directory) {
  const std::string path = directory + "/LOCK";
  FileDescriptor lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.valid()) return FileError(errno, "can't open", path);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
    WritePid(lock);
    return lock;
  }
  if (errno != EWOULDBLOCK) return FileError(errno, "can't lock", path);
  std::string holder = "another process";
  const auto pid = Files().ReadFile(path);
  if (pid.ok() && pid->has_value() && !(*pid)->empty()) {
    absl::StrAppend(&holder, " (pid ",
                    absl::string_view(absl::StripAsciiWhitespace(**pid)), ")");
  }
  return StatusWithReason(absl::StatusCode::kFailedPrecondition,
                          absl::StrCat(holder, " holds the data directory ",
                                       directory, ": it has locked ", path),
                          "DATA_DIRECTORY_IN_USE");
}

}  // namespace

absl::StatusOr<DataDirectory> DataDirectory::Open(const std::string& path,
                                                  const Files& files) {
  if (path.empty()) return InvalidField("directory", "\"\"", "a path");
  const absl::Status made = files.MakeDirectory(path);
  // A file is in the place of the directory or a parent: nothing of ours is
  // damaged.
  if (absl::IsDataLoss(made)) {
    return absl::FailedPreconditionError(made.message());
  }
  ATTENDANT_RETURN_IF_ERROR(made);
  ATTENDANT_ASSIGN_OR_RETURN(FileDescriptor lock, Lock(path));
  DataDirectory directory(path, files, std::move(lock));
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<int> version,
                             FormatVersionOf(path, files));
  directory.fresh_ = !version.has_value();
  return directory;
}

absl::StatusOr<std::optional<int>> DataDirectory::FormatVersionOf(
    const std::string& path, const Files& files) {
  const std::string file = path + "/FORMAT";
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                             files.ReadFile(file));
  if (!text.has_value()) {
    const DataDirectory directory(path, files, FileDescriptor());
    for (const std::string& data :
         {directory.items_path(), directory.models_path(),
          directory.snapshots_path()}) {
      ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                                 files.ListDirectory(data));
      if (names.empty()) continue;
      return absl::DataLossError(
          absl::StrCat(file, " is missing, but ", data, " holds data"));
    }
    return std::nullopt;
  }
  int version = 0;
  if (!absl::SimpleAtoi(*text, &version) || version < 1) {
    return absl::DataLossError(
        absl::StrCat(file, " does not hold a format version"));
  }
  if (version > kFormatVersion) {
    return StatusWithReason(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat(path, " has format version ", version,
                     ", and this program reads up to ", kFormatVersion,
                     ": start the newer program that wrote it, or one newer "
                     "still"),
        "DATA_FORMAT_TOO_NEW");
  }
  return version;
}

absl::Status DataDirectory::MarkComplete() {
  ATTENDANT_RETURN_IF_ERROR(files_.ReplaceFile(
      path_ + "/FORMAT", absl::StrCat(kFormatVersion, "\n")));
  fresh_ = false;
  return absl::OkStatus();
}

absl::Status DataDirectory::Sync() const {
  for (const std::string& path : {path_, models_path(), snapshots_path()}) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool exists, files_.PathExists(path));
    if (exists) ATTENDANT_RETURN_IF_ERROR(files_.SyncDirectory(path));
  }
  return absl::OkStatus();
}

std::string DataDirectory::segments_path(absl::string_view uid) const {
  return absl::StrCat(segments_path(), "/", uid);
}

std::string DataDirectory::items_path(absl::string_view uid) const {
  return absl::StrCat(items_path(), "/", uid);
}

}  // namespace attendant

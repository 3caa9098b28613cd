#include "core/storage/files/rocks_status.h"

#include <rocksdb/status.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/storage/files/files.h"

namespace attendant {
namespace {

// RocksDB keeps only the text of an errno, except for ENOSPC.
bool SaysErrno(const rocksdb::Status& status, int error) {
  return absl::StrContains(
      status.ToString(),
      std::error_code(error, std::generic_category()).message());
}

}  // namespace

int ErrnoOf(const rocksdb::Status& status) {
  if (status.IsNoSpace()) return ENOSPC;
  for (const int error : {ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, EACCES, EPERM,
                          EROFS, EISDIR, ENOTDIR}) {
    if (SaysErrno(status, error)) return error;
  }
  return 0;
}

absl::Status FromRocks(const rocksdb::Status& status,
                       absl::string_view directory) {
  if (status.ok()) return absl::OkStatus();
  const std::string message =
      absl::StrCat("database ", directory, ": ", status.ToString());
  const int error = ErrnoOf(status);
  if (error != 0) return FileError(error, message);
  if (status.IsMemoryLimit()) return absl::ResourceExhaustedError(message);
  if (status.IsCorruption()) return absl::DataLossError(message);
  return absl::InternalError(message);
}

absl::Status FromOpening(const rocksdb::Status& status,
                         absl::string_view directory) {
  const std::string text = status.ToString();
  // Errors that prevent trying the lock have the same words, with another
  // reason after them.
  const bool is_locked =
      absl::StrContains(text, "While lock file") &&
      (SaysErrno(status, EAGAIN) || SaysErrno(status, EACCES));
  if (is_locked || absl::StrContains(text, "lock hold by current process")) {
    return absl::FailedPreconditionError(
        absl::StrCat("database ", directory, " is open already: ", text));
  }
  // A file that the manifest names is missing.
  if (status.IsPathNotFound()) {
    return absl::DataLossError(
        absl::StrCat("database ", directory, ": ", text));
  }
  return FromRocks(status, directory);
}

}  // namespace attendant

// A data directory before anything is read from it: who holds it, and whether
// this program understands it.
#ifndef ATTENDANT_CORE_STORAGE_FILES_DATA_DIRECTORY_H_
#define ATTENDANT_CORE_STORAGE_FILES_DATA_DIRECTORY_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/storage/files/files.h"

namespace attendant {

// The version that this program writes into FORMAT, and the newest it reads.
inline constexpr int kFormatVersion = 1;

//   LOCK          held with flock while the directory is open; the holder's pid
//   FORMAT        the format's version, written once the rest is in place
//   catalogs/     RocksDB: the list of catalogs and that of models
//   items/UID/    RocksDB: one catalog
//   models/NAME/VERSION    a version of a model
//   snapshots/CATALOG/NAME/    a stored snapshot of a catalog
//   segments/UID/ the segments of a catalog: a cache of its database
//   keys/         files without names: keys that indexes keep on disk
//
// Movable; lets go of the lock at the end.
class DataDirectory {
 public:
  // Makes and locks the directory and reads FORMAT. Errors as Store::Open.
  static absl::StatusOr<DataDirectory> Open(const std::string& path,
                                            const Files& files);

  // The format's version, without the lock; nullopt: nothing was stored there
  // yet. DataLoss, FailedPrecondition and errors of reading as Store::Open.
  static absl::StatusOr<std::optional<int>> FormatVersionOf(
      const std::string& path, const Files& files);

  // True until MarkComplete: nothing was stored here yet.
  bool fresh() const { return fresh_; }
  // Writes FORMAT. From then on a part that is missing is damage.
  absl::Status MarkComplete();
  // Syncs the names in it, and below models/ and snapshots/: a start that ended
  // early, or could not sync them, may have made some.
  absl::Status Sync() const;

  std::string catalogs_path() const { return path_ + "/catalogs"; }
  std::string models_path() const { return path_ + "/models"; }
  std::string snapshots_path() const { return path_ + "/snapshots"; }
  std::string keys_path() const { return path_ + "/keys"; }
  std::string items_path() const { return path_ + "/items"; }
  std::string items_path(absl::string_view uid) const;
  std::string segments_path() const { return path_ + "/segments"; }
  std::string segments_path(absl::string_view uid) const;

 private:
  DataDirectory(std::string path, Files files, FileDescriptor lock)
      : path_(std::move(path)),
        files_(std::move(files)),
        lock_(std::move(lock)) {}

  std::string path_;
  Files files_;
  FileDescriptor lock_;
  bool fresh_ = false;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_FILES_DATA_DIRECTORY_H_

// Opens a data directory before anything is read from it: locks it and checks
// that this program understands its format.
#ifndef ATTENDANT_CORE_STORAGE_FILES_DATA_DIRECTORY_H_
#define ATTENDANT_CORE_STORAGE_FILES_DATA_DIRECTORY_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_descriptor.h"
#include "core/storage/files/files.h"

namespace attendant {

// The version that this program writes into FORMAT, and the newest it reads.
inline constexpr int kFormatVersion = 1;

//   LOCK          locked by flock while the directory is open; the holder's pid
//   FORMAT        the format's version, written once the rest is in place
//   catalogs/     RocksDB: the list of catalogs and that of models
//   items/UID/    RocksDB: one catalog
//   models/NAME/VERSION    a version of a model
//   snapshots/CATALOG/NAME/    a stored snapshot of a catalog
//   segments/UID/ the segments of a catalog: a cache of its database
//   keys/         files without names: keys that indexes keep on disk
//
// Movable; releases the lock when destroyed.
class DataDirectory {
 public:
  // Creates and locks the directory and reads FORMAT. Errors as for
  // Store::Open.
  static absl::StatusOr<DataDirectory> Open(const std::string& path,
                                            const Files& files);

  // Returns the format's version without locking; nullopt: nothing was stored
  // there yet. DataLoss, FailedPrecondition and read errors as for Store::Open.
  static absl::StatusOr<std::optional<int>> FormatVersionOf(
      const std::string& path, const Files& files);

  // True if nothing was stored here yet; false after MarkComplete.
  bool fresh() const { return fresh_; }
  // Writes FORMAT. From then on a missing part is damage.
  absl::Status MarkComplete();
  // Syncs the names in the directory and below models/ and snapshots/: an
  // earlier start may have created some without syncing them.
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

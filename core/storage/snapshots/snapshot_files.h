// The stored snapshots of a data directory: copies of catalogs at some time,
// every file with its checksum.
#ifndef ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_FILES_H_
#define ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_FILES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/interrupt.h"
#include "core/base/long_work.h"
#include "core/base/mutex.h"
#include "core/storage/records/store.h"
#include "core/storage/snapshots/snapshot_manifest.h"

namespace attendant {

struct DatabaseResources;

// The reason of DataLoss if a part of a snapshot is not what it was.
inline constexpr absl::string_view kSnapshotDamaged = "SNAPSHOT_DAMAGED";

// The most snapshots of a catalog.
inline constexpr int kMaxSnapshots = 1000;

struct SnapshotId {
  std::string catalog;
  std::string name;

  auto operator<=>(const SnapshotId&) const = default;
};

// Which snapshots to list, and how many of them.
struct SnapshotPage {
  std::function<bool(absl::string_view catalog)> holds;  // null: true for all
  // Unset: lists from the first snapshot on, and `damages` then covers all
  // snapshots, whatever the limit; otherwise only those on the page.
  std::optional<SnapshotId> after = std::nullopt;
  std::size_t limit = std::numeric_limits<std::size_t>::max();
};

struct SnapshotList {
  std::vector<SnapshotManifest> manifests;     // by catalog and name
  std::map<SnapshotId, absl::Status> damages;  // of manifests: DataLoss
};

// DIRECTORY/CATALOG/NAME/ holds MANIFEST, record, database/ and models/. A
// snapshot is built in DIRECTORY/.partial and gets its name in one step, once
// all of it is synced: a crash leaves a whole snapshot or none.
//
// A snapshot outlives its catalog. Its tables are hard links to those of the
// catalog: while both exist, they take their space once and share any damage on
// disk.
//
// Thread-safe. Errors of every method: those of Files and of Database.
class SnapshotFiles {
 public:
  // A directory below .partial, removed on destruction unless it was published.
  class Draft {
   public:
    ~Draft();
    Draft(const Draft&) = delete;
    Draft& operator=(const Draft&) = delete;
    const std::string& path() const { return path_; }

   private:
    friend class SnapshotFiles;
    Draft(const SnapshotFiles* snapshots, std::string path)
        : snapshots_(snapshots), path_(std::move(path)) {}
    const SnapshotFiles* const snapshots_;
    const std::string path_;
  };

  // A snapshot that can't be removed while this object lives.
  class Lease {
   public:
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    const SnapshotManifest& manifest() const { return manifest_; }
    std::string path() const;
    std::string database_path() const;

   private:
    friend class SnapshotFiles;
    Lease(SnapshotFiles* snapshots, SnapshotId id)
        : snapshots_(snapshots), id_(std::move(id)) {}
    SnapshotFiles* const snapshots_;
    const SnapshotId id_;
    SnapshotManifest manifest_;
  };

  // Both arguments must outlive the object.
  SnapshotFiles(std::string directory, const DatabaseResources* resources);

  // Removes what a crash left. Call before any other method.
  void RemoveLeftOvers();

  // Makes a database of the directory, and gives the record the attributes that
  // its items may have by then.
  using Checkpoint = absl::FunctionRef<absl::Status(
      const std::string& directory, CatalogRecord& record)>;
  // Creates a snapshot of the catalog that `record` describes; `models` are
  // those that it names. An empty name is replaced by a free one made of the
  // time and the last write. InvalidArgument naming "name" for an invalid name;
  // AlreadyExists with reason SNAPSHOT_EXISTS; ResourceExhausted beyond
  // kMaxSnapshots; DataLoss if what was copied is damaged. After an error
  // nothing is left.
  absl::StatusOr<SnapshotManifest> Create(
      CatalogRecord record, const std::vector<ModelRecord>& models,
      absl::string_view name, absl::Time now, Checkpoint checkpoint,
      LongWork& work);

  // Lists the snapshots of one catalog, or of all if it is empty. Reads the
  // manifests of the page, or every manifest if it reports all damages. Errors
  // of the interrupt.
  absl::StatusOr<SnapshotList> List(absl::string_view catalog,
                                    const SnapshotPage& page = {},
                                    const Interrupt& interrupt = {}) const;

  // NotFound with reason SNAPSHOT_NOT_FOUND if there is none.
  absl::Status CheckExists(const SnapshotId& id) const;

  // NotFound as for CheckExists; DataLoss if the manifest is damaged.
  absl::StatusOr<SnapshotManifest> Get(const SnapshotId& id) const;

  // Opens a snapshot for reading. Errors as for Get.
  absl::StatusOr<std::unique_ptr<Lease>> Open(const SnapshotId& id);

  // What an opened snapshot holds in addition to its items. Returned once every
  // byte was verified; DataLoss with reason kSnapshotDamaged, naming the part,
  // if one is wrong.
  struct Verified {
    CatalogRecord record;
    std::vector<ModelRecord> models;
  };
  absl::StatusOr<Verified> Verify(const Lease& lease, LongWork& work) const;

  // Removes a snapshot, damaged or not. NotFound as for CheckExists;
  // FailedPrecondition with reason SNAPSHOT_IN_USE while it is open.
  absl::Status Remove(const SnapshotId& id);

  // Creates a draft for an imported snapshot (see SnapshotImport) of this id.
  // The id, if it has a name yet, is checked before the work. Errors as for
  // Create.
  absl::StatusOr<std::unique_ptr<Draft>> NewDraft(const SnapshotId& id);
  // Verifies everything in the draft against the manifest and makes it a
  // snapshot. Errors as for Create and Verify.
  absl::Status Adopt(const Draft& draft, const SnapshotManifest& manifest,
                     LongWork& work);

  const DatabaseResources& resources() const { return *resources_; }

 private:
  std::string catalog_path(absl::string_view catalog) const;
  std::string path_of(const SnapshotId& id) const;
  absl::StatusOr<SnapshotManifest> ReadManifest(const SnapshotId& id) const;
  // Returns the ids of the page and those after it, by catalog and name.
  absl::StatusOr<std::vector<SnapshotId>> ListIds(
      absl::string_view catalog, const SnapshotPage& page) const;
  // Writes the manifest, choosing a free name if it has none, and renames the
  // draft to that name.
  absl::Status Publish(const Draft& draft, SnapshotManifest& manifest);
  // Returns a name made of the time and the last write, with a number appended
  // if it is taken.
  absl::StatusOr<std::string> FreeName(const SnapshotManifest& manifest) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckNew(const SnapshotId& id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_;
  const DatabaseResources* const resources_;
  mutable Mutex mutex_;  // held while names are added and removed
  std::int64_t draft_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Never held during disk access, because leases end on gRPC threads. A lease
  // begins with both mutexes held.
  Mutex lease_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  std::map<SnapshotId, int> lease_counts_ ABSL_GUARDED_BY(lease_mutex_);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_FILES_H_

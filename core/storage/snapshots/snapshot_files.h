// The stored snapshots of a data directory: copies of catalogs as they were,
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

// The reason of DataLoss where a part of a snapshot is not what it was.
inline constexpr absl::string_view kSnapshotDamaged = "SNAPSHOT_DAMAGED";

// Of a catalog.
inline constexpr int kMaxSnapshots = 1000;

struct SnapshotId {
  std::string catalog;
  std::string name;

  auto operator<=>(const SnapshotId&) const = default;
};

// Which snapshots to list, and how many.
struct SnapshotPage {
  std::function<bool(absl::string_view catalog)> holds;  // null: true of all
  // Nothing: from the first on. Damages are then those of all, whatever the
  // limit; else of those on the page.
  std::optional<SnapshotId> after = std::nullopt;
  std::size_t limit = std::numeric_limits<std::size_t>::max();
};

struct SnapshotList {
  std::vector<SnapshotManifest> manifests;     // by catalog and name
  std::map<SnapshotId, absl::Status> damages;  // of manifests: DataLoss
};

// DIRECTORY/CATALOG/NAME/ holds MANIFEST, record, database/ and models/. What
// is being made lies in DIRECTORY/.partial and gets its name in one step, when
// all of it is synced: a crash leaves a whole snapshot or none.
//
// A snapshot outlives its catalog. Its tables are links to those of the
// catalog: while both are there they take their space once, and share the fate
// of the disk.
//
// Thread-safe. Errors of every method: those of Files and of Database.
class SnapshotFiles {
 public:
  // A directory below .partial, removed at the end unless it was published.
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

  // A snapshot that is not removed while this lives.
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

  // Removes what a crash left. Before any other method.
  void RemoveLeftOvers();

  // Makes a snapshot: `checkpoint` makes a database of the directory it is
  // given, `models` are what the record names. An empty name becomes one of the
  // time and the last write that is free. InvalidArgument naming "name" for a
  // bad one; AlreadyExists with reason SNAPSHOT_EXISTS; ResourceExhausted past
  // kMaxSnapshots; DataLoss if what was copied is damaged. After an error
  // nothing is left.
  absl::StatusOr<SnapshotManifest> Create(
      const CatalogRecord& record, const std::vector<ModelRecord>& models,
      absl::string_view name, absl::Time now,
      absl::FunctionRef<absl::Status(const std::string&)> checkpoint,
      LongWork& work);

  // Of one catalog, or of all if it is empty. Reads the manifests of the page,
  // and where it tells of all damages every one. Errors of the interrupt.
  absl::StatusOr<SnapshotList> List(absl::string_view catalog,
                                    const SnapshotPage& page = {},
                                    const Interrupt& interrupt = {}) const;

  // NotFound with reason SNAPSHOT_NOT_FOUND if there is none.
  absl::Status CheckExists(const SnapshotId& id) const;

  // NotFound as CheckExists; DataLoss if its manifest is damaged.
  absl::StatusOr<SnapshotManifest> Get(const SnapshotId& id) const;

  // The same, to read it. Errors as Get.
  absl::StatusOr<std::unique_ptr<Lease>> Open(const SnapshotId& id);

  // What an opened snapshot holds beside its items, once every byte of it was
  // found to be what it was; DataLoss with reason kSnapshotDamaged, naming the
  // part, if not.
  struct Verified {
    CatalogRecord record;
    std::vector<ModelRecord> models;
  };
  absl::StatusOr<Verified> Verify(const Lease& lease, LongWork& work) const;

  // NotFound as CheckExists; FailedPrecondition with reason SNAPSHOT_IN_USE
  // while it is opened. A damaged one goes too.
  absl::Status Remove(const SnapshotId& id);

  // For what comes from elsewhere (see SnapshotImport), to be a snapshot of
  // this id, which is checked before the work, if it has a name yet. Errors as
  // Create.
  absl::StatusOr<std::unique_ptr<Draft>> NewDraft(const SnapshotId& id);
  // Verifies all that lies in the draft against the manifest and makes it a
  // snapshot. Errors as Create and Verify.
  absl::Status Adopt(const Draft& draft, const SnapshotManifest& manifest,
                     LongWork& work);

  const DatabaseResources& resources() const { return *resources_; }

 private:
  std::string catalog_path(absl::string_view catalog) const;
  std::string path_of(const SnapshotId& id) const;
  absl::StatusOr<SnapshotManifest> ReadManifest(const SnapshotId& id) const;
  // Of the page and those after it, by catalog and name.
  absl::StatusOr<std::vector<SnapshotId>> ListIds(
      absl::string_view catalog, const SnapshotPage& page) const;
  // Writes the manifest, with a name that is free if it has none, and gives the
  // draft that name.
  absl::Status Publish(const Draft& draft, SnapshotManifest& manifest);
  // Of the time and the last write; with a number if that is taken.
  absl::StatusOr<std::string> FreeName(const SnapshotManifest& manifest) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckNew(const SnapshotId& id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_;
  const DatabaseResources* const resources_;
  mutable Mutex mutex_;  // held while names come and go
  std::int64_t draft_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Never held while a disk is waited for: leases end on threads of gRPC. They
  // begin with both held.
  Mutex lease_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  std::map<SnapshotId, int> lease_counts_ ABSL_GUARDED_BY(lease_mutex_);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_FILES_H_

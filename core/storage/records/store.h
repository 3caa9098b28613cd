// The persistent state: one RocksDB for the lists of catalogs and attention
// models, one per catalog, and a file for each version of a model.
#ifndef ATTENDANT_CORE_STORAGE_RECORDS_STORE_H_
#define ATTENDANT_CORE_STORAGE_RECORDS_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/attention/models/model.h"
#include "core/base/interrupt.h"
#include "core/base/scratch_files.h"
#include "core/storage/records/item.h"
#include "core/storage/records/store_figures.h"

namespace rocksdb {
class FileSystem;
}  // namespace rocksdb

namespace attendant {

class SegmentDirectory;
class SnapshotFiles;

struct StoreOptions {
  // The file system for all files of the directory, those of RocksDB and
  // others. Null: the operating system's. Tests replace it by one that fails.
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

// A catalog's entry in the list of catalogs.
struct CatalogRecord {
  std::string name;
  std::string uid;  // 16 hex digits, never reused
  CatalogSchema schema;
  absl::Time create_time;

  bool operator==(const CatalogRecord&) const = default;
};

// The list of catalogs and of their aliases.
struct CatalogList {
  std::vector<CatalogRecord> records;           // by name
  std::map<std::string, absl::Status> damages;  // of records, by name: DataLoss
  // The catalog that an alias names, which need not exist; DataLoss if the
  // entry is damaged.
  std::map<std::string, absl::StatusOr<std::string>> aliases;
};

// A version of an attention model.
struct ModelRecord {
  ModelName name;
  absl::Time create_time;
  // Asymmetry of the model (see core/attention/models/asymmetry.h), stored
  // because it may take long to compute.
  std::optional<double> asymmetry;
  AttentionModel model;

  bool operator==(const ModelRecord&) const = default;
};

// The attention models, by name and version.
struct ModelList {
  std::vector<ModelRecord> records;
  // The last version assigned to a name, deleted or not.
  std::map<std::string, std::int64_t> last_versions;
  // DataLoss of records. Under version 0: of the name's last version.
  std::map<std::pair<std::string, std::int64_t>, absl::Status> damages;
};

// The outcome of a write, remembered under its request_id.
struct WriteOutcome {
  std::uint64_t fingerprint = 0;  // of the request's content
  std::int64_t sequence = 0;      // after the write
  std::int64_t inserted_count = 0;
  std::int64_t updated_count = 0;
  std::int64_t deleted_count = 0;
  std::int64_t missing_count = 0;

  bool operator==(const WriteOutcome&) const = default;
};

// A write to one catalog, applied in full or not at all.
struct StoreWrite {
  std::span<const Item* const> upserts;
  std::span<const absl::string_view> deletes;
  absl::string_view request_id;  // empty: not remembered
  WriteOutcome outcome;          // outcome.sequence becomes the catalog's
};

// The items of one catalog. Thread-safe, but only one thread may write at a
// time. Errors of every method: ResourceExhausted if the disk is full or too
// many files are open, Unavailable (reason kFilesNotAccessible) if access to
// files is denied, DataLoss on damage, Internal on other failures of the file
// system.
class CatalogStore {
 public:
  virtual ~CatalogStore() = default;

  // Writes all of `writes`, at least one, or none, and returns after one sync
  // covers them. Their sequences must grow. After an error the writes may or
  // may not be found at the next start, and further writes fail until these are
  // taken back. Until then reads may see them if they were synced.
  virtual absl::Status WriteGroup(std::span<const StoreWrite> writes) = 0;

  // OK if no write failed, to these items or to the list of catalogs, or if the
  // failed ones are taken back and will not be found at the next start. Each
  // write first tries this for the database that it writes to; WriteGroup tries
  // it for the list again before it returns.
  virtual absl::Status TakeBackFailed() = 0;

  // Returns the number of the last write; 0 if there was none.
  virtual std::int64_t sequence() const = 0;

  // From now on, reads items by `schema`: the current one, perhaps with
  // attributes appended. Call it before an item with these is written; one call
  // at a time.
  virtual void AdoptSchema(std::shared_ptr<const CatalogSchema> schema) = 0;

  // Calls `visit` for each item in the order of ids, from the first id after
  // `after` on (all if empty), until it returns false. Sees one consistent
  // state.
  virtual absl::Status Scan(
      absl::string_view after,
      absl::FunctionRef<bool(StoredItem item)> visit) const = 0;

  // Calls `visit` for each id, in order, with its item, or nothing if there is
  // none. Stops at the first error of `visit` and returns it. Sees one
  // consistent state.
  using VisitItem =
      absl::FunctionRef<absl::Status(std::size_t i, std::optional<StoredItem>)>;
  virtual absl::Status Get(std::span<const absl::string_view> ids,
                           VisitItem visit) const = 0;

  // Returns the outcome remembered under `request_id`, if it is among the last
  // 100,000.
  virtual absl::StatusOr<std::optional<WriteOutcome>> FindRequest(
      absl::string_view request_id) const = 0;

  // The text encoder of a key field as opaque bytes; empty if there is none.
  // PutEncoders stores all encoders or none, synced before it returns.
  virtual absl::StatusOr<std::string> GetEncoder(
      absl::string_view key_field) const = 0;
  struct EncoderBytes {
    std::string key_field;
    std::string bytes;
  };
  virtual absl::Status PutEncoders(std::span<const EncoderBytes> encoders) = 0;

  // The model that made the stored keys of a key field. Empty: no model.
  // Nothing: never stored, the model is the record's. PutActiveModel syncs
  // before it returns; like WriteGroup, only one thread may call it at a time.
  virtual absl::StatusOr<std::optional<ModelName>> GetActiveModel(
      absl::string_view key_field) const = 0;
  virtual absl::Status PutActiveModel(absl::string_view key_field,
                                      const ModelName& model) = 0;

  // Makes `directory`, which must not exist, a separate database that holds
  // every write that returned before, and each later one in full or not at all.
  virtual absl::Status Checkpoint(const std::string& directory) = 0;
  // Scans the log of changes: the ids of the items that each write upserted or
  // deleted, kept until the log is cut. Calls `visit` for those of the writes
  // after `sequence`, in order, until it returns false. DataLoss if the log
  // begins after that.
  virtual absl::Status ScanChanges(
      std::int64_t sequence,
      absl::FunctionRef<bool(absl::string_view id)> visit) const = 0;
  // Removes the changes up to `sequence`; synced. Like WriteGroup, only one
  // thread may call it at a time.
  virtual absl::Status CutChanges(std::int64_t sequence) = 0;
  // Returns the directory of the catalog's segments; null: segments are not
  // stored. Lives as long as the store.
  virtual const SegmentDirectory* segment_directory() const = 0;

  // For data that is derived from the items and need not be in memory. Lives as
  // long as the store.
  virtual ScratchFiles& scratch_files() = 0;

  // Figures of this catalog's database only.
  virtual StoreFigures figures() const = 0;
};

// A data directory: its lock, its format version, the list of catalogs and the
// models. Thread-safe.
class Store {
 public:
  virtual ~Store() = default;

  // Opens `directory`, created if missing. FailedPrecondition if another
  // process holds it (the message says so) or if its format is newer than ours
  // (the message has both versions); Unavailable (reason kFilesNotAccessible)
  // if it can't be read or written; DataLoss on damage.
  static absl::StatusOr<std::unique_ptr<Store>> Open(
      const std::string& directory, const StoreOptions& options = {});

  // Returns all catalogs. A record that can't be read is listed in `damages`
  // and does not affect the others.
  virtual absl::StatusOr<CatalogList> List() const = 0;

  // Adds or replaces a record, by name, and creates the items of a new one if
  // they were not opened before; synced. `begun`, if not null, is set to true
  // if the record may be found at the next Open whatever Put returns, and to
  // false if it was refused.
  virtual absl::Status Put(const CatalogRecord& record,
                           bool* begun = nullptr) = 0;

  // Removes the record of this name, if it exists; synced. The catalog is then
  // gone: any files that remain are removed at the next Open.
  virtual absl::Status RemoveRecord(absl::string_view name) = 0;

  // Makes the alias name the catalog, instead of what it named before; synced.
  // Both must be valid names.
  virtual absl::Status PutAlias(absl::string_view alias,
                                absl::string_view catalog) = 0;

  // Removes the alias, if it exists; synced.
  virtual absl::Status RemoveAlias(absl::string_view alias) = 0;

  // Returns why files of unlisted catalogs remain after Open; OK if none do.
  // Files of unfinished or deleted catalogs that could not be removed do no
  // harm except for their space. Files that were neither are kept: the list
  // lost their catalog (FailedPrecondition).
  virtual absl::Status left_overs() const = 0;

  // Removes the files of a catalog whose record is removed. Its CatalogStore
  // must be closed.
  virtual absl::Status RemoveFiles(const CatalogRecord& record) = 0;

  // Returns all versions of all models. A version whose record or file can't be
  // read is listed in `damages` and does not affect the others; while a record
  // can't be read, no files are treated as left over.
  virtual absl::StatusOr<ModelList> ListModels() const = 0;

  // Adds a version and records it as the last of its name; synced. It must be
  // above any version that the name had. InvalidArgument if the name is not
  // valid for a model, or the version is below 1.
  virtual absl::Status PutModel(const ModelRecord& record) = 0;

  // Removes a version, if it exists; synced. Its number is not reused. A file
  // that remains is removed at the next Open.
  virtual absl::Status RemoveModel(const ModelName& name) = 0;

  // The stored snapshots, which live as long as the store.
  virtual SnapshotFiles& snapshots() = 0;

  // Creates the items of a new catalog from the database in `directory`, which
  // must hold a catalog of the same schema and be verified; synced. Does not
  // put the record. After an error, including one of the interrupt, nothing is
  // left.
  virtual absl::Status CopyItems(const std::string& directory,
                                 const CatalogRecord& record,
                                 const Interrupt& interrupt) = 0;

  // Memory held for all catalogs together, in bytes: the cache of blocks read,
  // and the buffers of data written.
  virtual std::int64_t cache_bytes() const = 0;
  virtual std::int64_t write_buffer_bytes() const = 0;

  // Opens the items of a catalog. If they are missing, creates them for an
  // unlisted catalog and returns DataLoss for a listed one. At most one
  // CatalogStore per uid may be open at a time. The Store must outlive it.
  virtual absl::StatusOr<std::unique_ptr<CatalogStore>> OpenCatalog(
      const CatalogRecord& record) = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_RECORDS_STORE_H_

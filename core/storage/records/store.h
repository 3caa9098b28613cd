// The truth on disk: one RocksDB for the list of catalogs and that of attention
// models, one a catalog, and a file for each version of a model.
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
  // What all files of the directory are read and written through, those of
  // RocksDB and others alike. Null: the operating system's. Tests put one in
  // its place that fails.
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

// One catalog's entry in the list of catalogs.
struct CatalogRecord {
  std::string name;
  std::string uid;  // 16 hex digits, never reused
  CatalogSchema schema;
  absl::Time create_time;

  bool operator==(const CatalogRecord&) const = default;
};

// The list of catalogs, and of the other names that they have.
struct CatalogList {
  std::vector<CatalogRecord> records;           // by name
  std::map<std::string, absl::Status> damages;  // of records, by name: DataLoss
  // The catalog that an alias names, which need not be there; DataLoss if that
  // can't be told.
  std::map<std::string, absl::StatusOr<std::string>> aliases;
};

// A version of an attention model.
struct ModelRecord {
  ModelName name;
  absl::Time create_time;
  // Of the model (see core/attention/models/asymmetry.h), kept as it may take
  // long.
  std::optional<double> asymmetry;
  AttentionModel model;

  bool operator==(const ModelRecord&) const = default;
};

// The attention models, by name and version.
struct ModelList {
  std::vector<ModelRecord> records;
  // The last version given out for a name, deleted or not.
  std::map<std::string, std::int64_t> last_versions;
  // Of records: DataLoss. Under version 0: of the name's last version.
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

// A write of one catalog, applied whole or not at all.
struct StoreWrite {
  std::span<const Item* const> upserts;
  std::span<const absl::string_view> deletes;
  absl::string_view request_id;  // empty: not remembered
  WriteOutcome outcome;          // outcome.sequence becomes the catalog's
};

// The items of one catalog. Thread-safe, but writes only from one thread at a
// time. Errors of every method: ResourceExhausted when the disk is full or
// too many files are open, Unavailable (reason kFilesNotAccessible) where files
// are without rights, DataLoss on damage, Internal on other failures of the
// file system.
class CatalogStore {
 public:
  virtual ~CatalogStore() = default;

  // Writes all of them, or none, at least one, and returns after they are
  // synced by one sync. Their sequences grow. After an error they may or may
  // not be found at the next start, further writes fail until they were taken
  // back, and reads go on without them.
  virtual absl::Status WriteGroup(std::span<const StoreWrite> writes) = 0;

  // OK if no write failed, of these items or of the list of catalogs, or what
  // did is taken back: it will not be found at the next start. Each write first
  // tries it, too, of what is written to, and WriteGroup of the list once more
  // before it returns.
  virtual absl::Status TakeBackFailed() = 0;

  // The number of the last write; 0 if there was none.
  virtual std::int64_t sequence() const = 0;

  // Calls `visit` for each item in the order of ids, from the first id after
  // `after` on (all if empty), until it returns false. Sees one state.
  virtual absl::Status Scan(
      absl::string_view after,
      absl::FunctionRef<bool(StoredItem item)> visit) const = 0;

  // Calls `visit` for each of these ids, in their order, with its item or,
  // where there is none, nothing, until it returns an error, which is returned.
  // Sees one state.
  using VisitItem =
      absl::FunctionRef<absl::Status(std::size_t i, std::optional<StoredItem>)>;
  virtual absl::Status Get(std::span<const absl::string_view> ids,
                           VisitItem visit) const = 0;

  // What was remembered under request_id, among the last 100,000.
  virtual absl::StatusOr<std::optional<WriteOutcome>> FindRequest(
      absl::string_view request_id) const = 0;

  // The text encoder of a key field as opaque bytes; empty if there is none.
  // Those that PutEncoders stores are there all or none, and synced before it
  // returns.
  virtual absl::StatusOr<std::string> GetEncoder(
      absl::string_view key_field) const = 0;
  struct EncoderBytes {
    std::string key_field;
    std::string bytes;
  };
  virtual absl::Status PutEncoders(std::span<const EncoderBytes> encoders) = 0;

  // The model that made the stored keys of a key field, empty for none; nothing
  // if that was not told: it is the record's. Synced before PutActiveModel
  // returns; as WriteGroup, only from one thread at a time.
  virtual absl::StatusOr<std::optional<ModelName>> GetActiveModel(
      absl::string_view key_field) const = 0;
  virtual absl::Status PutActiveModel(absl::string_view key_field,
                                      const ModelName& model) = 0;

  // Makes `directory`, which does not exist, a database of its own that holds
  // every write that returned before, and each later one whole or not at all.
  virtual absl::Status Checkpoint(const std::string& directory) = 0;
  // A log of changes: the ids of the items that each write upserted or deleted,
  // kept until it is cut. Calls `visit` for those of the writes after
  // `sequence`, in their order. DataLoss if the log does not reach back so far.
  virtual absl::Status ScanChanges(
      std::int64_t sequence,
      absl::FunctionRef<void(absl::string_view id)> visit) const = 0;
  // Forgets the changes up to `sequence`; synced. As WriteGroup, only from one
  // thread at a time.
  virtual absl::Status CutChanges(std::int64_t sequence) = 0;
  // Of the catalog's segments; null: they are not kept. Lives as long as the
  // store.
  virtual const SegmentDirectory* segment_directory() const = 0;

  // For what is made of the items and need not be in memory. Lives as long as
  // the store.
  virtual ScratchFiles& scratch_files() = 0;

  // Of these items alone.
  virtual StoreFigures figures() const = 0;
};

// A data directory: its lock, its format version, the list of catalogs, the
// models.
// Thread-safe.
class Store {
 public:
  virtual ~Store() = default;

  // Opens `directory`, created if missing. FailedPrecondition if another
  // process holds it (says so) or if its format is newer than ours (says both
  // versions); Unavailable (reason kFilesNotAccessible) if it can't be read or
  // written; DataLoss on damage.
  static absl::StatusOr<std::unique_ptr<Store>> Open(
      const std::string& directory, const StoreOptions& options = {});

  // All catalogs. A record that can't be read is among the damages, and fails
  // nothing else.
  virtual absl::StatusOr<CatalogList> List() const = 0;

  // Adds or replaces a record, and makes the items of a new one if they were
  // not opened before; synced. The name is the key. `begun`, if given, becomes
  // true if the record may be found at the next Open whatever Put returns, and
  // false if it was refused.
  virtual absl::Status Put(const CatalogRecord& record,
                           bool* begun = nullptr) = 0;

  // Removes the record of this name, if there is one; synced. The catalog is
  // gone then: its files, if they stay, go at the next Open.
  virtual absl::Status RemoveRecord(absl::string_view name) = 0;

  // Makes the alias a name of the catalog, in place of what it named before;
  // synced. Both are valid names.
  virtual absl::Status PutAlias(absl::string_view alias,
                                absl::string_view catalog) = 0;

  // Removes the alias, if it is there; synced.
  virtual absl::Status RemoveAlias(absl::string_view alias) = 0;

  // Why files of catalogs that are not listed are still there after Open; OK if
  // there are none. What was begun or deleted could not be removed, and is in
  // nobody's way but for the space it takes. Items that were neither are kept:
  // it is the list that lost them (FailedPrecondition).
  virtual absl::Status left_overs() const = 0;

  // Removes the files of a catalog after its record. Its CatalogStore must be
  // closed.
  virtual absl::Status RemoveFiles(const CatalogRecord& record) = 0;

  // All versions of all models. One whose record or file can't be read is among
  // the damages, and fails nothing else; while there is a record that can't, no
  // files are taken for left-overs.
  virtual absl::StatusOr<ModelList> ListModels() const = 0;

  // Adds a version, and notes it as the last of its name; synced. Its version
  // must be above any that the name had. InvalidArgument for what is no name of
  // a model, or a version below 1.
  virtual absl::Status PutModel(const ModelRecord& record) = 0;

  // Removes a version, if it is there; synced. It stays used up. Its file, if
  // it stays, goes at the next Open.
  virtual absl::Status RemoveModel(const ModelName& name) = 0;

  // The stored snapshots, which live as long as the store.
  virtual SnapshotFiles& snapshots() = 0;

  // Makes the items of a new catalog from the database in `directory`, which
  // holds a catalog of the same schema and was verified; synced. The record is
  // not put. After an error, which may be the interrupt's, nothing is left.
  virtual absl::Status CopyItems(const std::string& directory,
                                 const CatalogRecord& record,
                                 const Interrupt& interrupt) = 0;

  // Held for all catalogs together, in bytes: the cache of blocks read, and
  // buffers of what was written.
  virtual std::int64_t cache_bytes() const = 0;
  virtual std::int64_t write_buffer_bytes() const = 0;

  // Opens the items of a catalog; made if it is not listed and they are
  // missing, DataLoss if it is. At most once a uid at a time. The Store must
  // outlive it.
  virtual absl::StatusOr<std::unique_ptr<CatalogStore>> OpenCatalog(
      const CatalogRecord& record) = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_RECORDS_STORE_H_

// All catalogs and attention models of a data directory, as served by a server
// or opened by a process that links core.
#ifndef ATTENDANT_CORE_CATALOG_LIVE_CATALOG_SET_H_
#define ATTENDANT_CORE_CATALOG_LIVE_CATALOG_SET_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/long_work.h"
#include "core/base/memory_budget.h"
#include "core/base/mutex.h"
#include "core/base/published.h"
#include "core/catalog/live/background.h"
#include "core/catalog/live/live_catalog.h"
#include "core/catalog/live/model_set.h"
#include "core/storage/records/store.h"
#include "core/storage/snapshots/snapshot_files.h"
#include "core/storage/snapshots/snapshot_manifest.h"

namespace attendant {

inline constexpr int kMaxCatalogs = 1000;
// The approximate number of files that a catalog's database keeps open.
inline constexpr std::int64_t kCatalogFiles = 7;
inline constexpr int kMaxAliases = 1000;
// The error reason of Delete while an alias names the catalog.
inline constexpr absl::string_view kCatalogHasAlias = "CATALOG_HAS_ALIAS";

// An alternative name of a catalog.
struct Alias {
  std::string name;
  std::string catalog;

  bool operator==(const Alias&) const = default;
};

// Thread-safe; Get takes no lock. A catalog that was handed out stays readable
// after its deletion until its last holder releases it. The set must outlive
// everything it handed out.
//
//    auto catalogs = CatalogSet::Open("/var/lib/attendant", {});
//    auto created = (*catalogs)->Create("shop", schema, {});
//    created->catalog->Upsert(items, /*request_id=*/"");
//    auto answer = Attend(*created->catalog->snapshot(), query, Interrupt());
class CatalogSet {
 public:
  struct Options {
    StoreOptions store;
    LiveCatalogOptions catalog;
    const Clock* clock = &Clock::System();  // of the catalogs too
    // Memory limit of the process, in bytes; 0: none. Writes that would exceed
    // it are refused and index builds postponed; see MemoryBudget. Existing
    // catalogs are opened regardless of the limit.
    std::int64_t memory_limit_bytes = 0;
    // In [1, kMaxCatalogs]. Once there are this many catalogs, no more can be
    // created. Existing catalogs are opened regardless of the limit.
    std::int64_t most_catalogs = kMaxCatalogs;
  };
  // Memory used by the process, in bytes.
  struct MemoryUse {
    MemoryBudget::Use budget;
    std::int64_t cache_bytes = 0;         // of the block cache
    std::int64_t write_buffer_bytes = 0;  // of all catalogs
  };
  struct Created {
    std::shared_ptr<LiveCatalog> catalog;
    bool created = false;
  };
  // The action of a restore if a model of the snapshot no longer exists. A
  // version that it creates is visible to all catalogs.
  enum class MissingModels { kCreate, kRefuse };
  struct AliasMove {
    Alias alias;
    std::string previous;  // the previous catalog; empty: none
  };
  // A text encoder and the key field it serves.
  struct FieldEncoder {
    std::string key_field;
    TextEncoder encoder;
  };

  // Opens every catalog in `directory`, which is created if missing. A catalog
  // that cannot be opened, usually because it is damaged, keeps its name and
  // every call for it returns the error; the others are served. Errors as
  // Store::Open.
  static absl::StatusOr<std::unique_ptr<CatalogSet>> Open(
      const std::string& directory, const Options& options);

  using Encoders = absl::StatusOr<std::vector<FieldEncoder>>;
  // Creates a catalog, or returns the existing one unchanged, encoders
  // included, if it has the same schema, or further attributes, in any order;
  // defaults (temperature, combine_kind, index_kind, keys_on_disk, model) are
  // not compared. `encoders` is called at most once, and only if there is no
  // such catalog yet; its error is returned.
  //
  // InvalidArgument for an invalid name, schema or encoder; AlreadyExists if
  // the schema differs or the name is an alias; ResourceExhausted beyond
  // most_catalogs, if memory is full, or for a model that indexes cannot hold
  // (CheckIndexable).
  absl::StatusOr<Created> Create(absl::string_view name,
                                 const CatalogSchema& schema,
                                 absl::FunctionRef<Encoders()> encoders);
  absl::StatusOr<Created> Create(absl::string_view name,
                                 const CatalogSchema& schema,
                                 std::vector<FieldEncoder> encoders) {
    return Create(name, schema, [&] { return Encoders(std::move(encoders)); });
  }

  // Returns the catalog of this name or alias. NotFound, naming the catalog;
  // DataLoss if it is damaged, or the error that prevented it from being
  // opened.
  absl::StatusOr<std::shared_ptr<LiveCatalog>> Get(
      absl::string_view name) const;

  // Returns the first `limit` catalogs after `after`, ordered by name, without
  // damaged ones.
  std::vector<std::shared_ptr<LiveCatalog>> List(absl::string_view after,
                                                 std::int64_t limit) const;

  // Stores a schema with other defaults (temperature, combine_kind, index_kind,
  // keys_on_disk and model of each field) or with attributes after those there
  // are, and encoders. A model of version 0 is the newest of its name. NotFound
  // if there is no such catalog, or `uid` is not empty and not the catalog's;
  // InvalidArgument as Create, and if anything else differs. Encoders are
  // stored first, all at once: if storing the schema fails, the encoders may
  // already be the new ones.
  absl::Status Update(absl::string_view name, const CatalogSchema& schema,
                      std::vector<FieldEncoder> encoders,
                      absl::string_view uid = "");

  // Deletes a catalog, damaged or not, and returns once it is gone from the
  // disk. Its name is free as soon as Get does not find it any more, which is
  // earlier. NotFound, naming the catalog; FailedPrecondition with reason
  // kCatalogHasAlias, naming an alias of the catalog, while one exists.
  absl::Status Delete(absl::string_view name);

  // Makes `alias` a name of the catalog, or moves it there from the catalog it
  // names now; synced. Calls that begin after the return use the new catalog.
  // With `expected`, only if the alias names that catalog now, or does not
  // exist if `expected` is empty; otherwise Aborted with reason ALIAS_MOVED.
  // InvalidArgument naming "alias" for an invalid name; NotFound if there is no
  // such catalog; AlreadyExists if a catalog has the alias's name;
  // ResourceExhausted beyond kMaxAliases.
  absl::StatusOr<AliasMove> SetAlias(
      absl::string_view alias, absl::string_view catalog,
      const std::optional<std::string>& expected);

  // Returns an alias. NotFound with reason ALIAS_NOT_FOUND, naming the alias;
  // DataLoss if it is damaged.
  absl::StatusOr<Alias> GetAlias(absl::string_view alias) const;

  // Returns the first `limit` aliases after `after`, ordered by name. Damaged
  // ones are left out; see damages().
  std::vector<Alias> ListAliases(absl::string_view after,
                                 std::int64_t limit) const;

  // Deletes an alias; the catalog stays. Synced. NotFound as GetAlias,
  // including for a damaged alias.
  absl::Status DeleteAlias(absl::string_view alias);

  // The attention models. Delete them with DeleteModel, not ModelSet::Delete.
  ModelSet& models() { return *models_; }
  const ModelSet& models() const { return *models_; }

  // Deletes a version of a model. NotFound as ModelSet::Get; FailedPrecondition
  // with reason MODEL_IN_USE while a catalog names this version or still
  // answers by it.
  absl::Status DeleteModel(const ModelName& name);

  // The stored snapshots of existing and deleted catalogs, by the catalogs'
  // names. Aliases must be resolved first; see Resolve.
  SnapshotFiles& snapshots();
  // Returns the catalog that an alias names; any other name unchanged.
  std::string Resolve(absl::string_view name) const;

  // Stores a snapshot of everything acknowledged before the call. Each write
  // that arrives meanwhile is contained as a whole or not at all. Reads and
  // writes continue. Errors as Get and SnapshotFiles::Create.
  absl::StatusOr<SnapshotManifest> CreateSnapshot(absl::string_view catalog,
                                                  absl::string_view name,
                                                  LongWork& work);

  // Creates a catalog `name` from a snapshot, which is verified as a whole
  // before anything changes. The new catalog has its own uid, so tokens of the
  // old one are not valid for it. A model that no longer exists, or exists with
  // other weights, becomes the next version of its name, or is refused:
  // PermissionDenied with reason MODEL_MISSING, naming it.
  //
  // InvalidArgument naming "new_catalog" for an invalid name; AlreadyExists if
  // a catalog or alias has it; ResourceExhausted beyond most_catalogs, or for a
  // model that indexes cannot hold, as Create; DataLoss with reason
  // kSnapshotDamaged, naming the part; otherwise as SnapshotFiles::Open and
  // Create. After an error the catalogs are unchanged; a model may remain,
  // which the next try uses.
  absl::StatusOr<std::shared_ptr<LiveCatalog>> RestoreSnapshot(
      const SnapshotId& id, absl::string_view name, LongWork& work,
      MissingModels missing_models = MissingModels::kCreate);

  MemoryUse memory_use() const;

  // OK if the disk of the directory has room for a write of `write_bytes`;
  // otherwise ResourceExhausted with reason DISK_FULL. Errors of querying the
  // disk.
  absl::Status CheckDiskRoom(std::uint64_t write_bytes) const;
  // FreeDiskBytes of the directory.
  absl::StatusOr<std::uint64_t> free_disk_bytes() const;

  // The error of each catalog that could not be opened and each alias that
  // could not be read, by name.
  std::map<std::string, absl::Status> damages() const;
  // See Store::left_overs.
  absl::Status left_overs() const { return store_->left_overs(); }

 private:
  // The meaning of a name: a catalog; the record of a catalog that could not be
  // opened, with the error; or an alias.
  struct Entry {
    std::shared_ptr<LiveCatalog> catalog;
    absl::Status damage;
    CatalogRecord damaged_record;
    bool is_alias = false;
    std::string target;  // the catalog that an alias names
  };
  using Catalogs = absl::btree_map<std::string, Entry>;

  CatalogSet(std::string directory, std::unique_ptr<Store> store,
             const Options& options);

  // Finds the entry of a catalog, given its name or an alias. NotFound;
  // DataLoss for a damaged alias, but not for a damaged catalog.
  static absl::StatusOr<Catalogs::const_iterator> Find(const Catalogs& catalogs,
                                                       absl::string_view name);
  // Counts the entries that are aliases, or those that are not.
  static std::int64_t Count(const Catalogs& catalogs, bool aliases);
  // True if the catalog names this version, or may use it (MayUse).
  static bool Uses(const Entry& entry, const ModelName& model);

  absl::StatusOr<std::shared_ptr<LiveCatalog>> OpenCatalog(
      const CatalogRecord& record);
  // The part of Delete that takes effect immediately and permanently: the
  // catalog no longer exists. Errors as Delete.
  absl::StatusOr<Entry> Remove(absl::string_view name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the models that the fields name, and sets the version of those
  // named without one. NotFound; InvalidArgument if a model does not fit its
  // field.
  absl::StatusOr<std::vector<NamedModel>> ResolveModels(
      CatalogSchema& schema) const;
  // OK if one more catalog may be created; otherwise ResourceExhausted.
  absl::Status CheckCount(const Catalogs& catalogs) const;
  // OK if a catalog of this name can be created; otherwise AlreadyExists or the
  // error of CheckCount.
  absl::Status CheckNewName(const Catalogs& catalogs,
                            absl::string_view name) const;
  // Makes the fields name versions with the content of these models.
  absl::Status AdoptModels(const std::vector<ModelRecord>& models,
                           MissingModels missing_models, CatalogSchema& schema);
  // Sets `put` to true if the next start may find the record, whatever is
  // returned.
  absl::Status AddRestored(const CatalogRecord& record,
                           const std::shared_ptr<LiveCatalog>& catalog,
                           bool& put);
  std::string NewUid() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_;
  const Options options_;
  const std::unique_ptr<Store> store_;
  const std::unique_ptr<MemoryBudget> memory_;
  std::unique_ptr<ModelSet> models_;  // set by Open
  BackgroundWorker background_;
  Mutex mutex_;  // serialises changes
  Published<Catalogs> catalogs_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_CATALOG_SET_H_

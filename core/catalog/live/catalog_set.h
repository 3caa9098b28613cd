// All catalogs and attention models of a data directory: what a server serves,
// and what a process that links core opens.
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
// That the database of one has open, about.
inline constexpr std::int64_t kCatalogFiles = 7;
inline constexpr int kMaxAliases = 1000;
// The reason why a catalog is not deleted.
inline constexpr absl::string_view kCatalogHasAlias = "CATALOG_HAS_ALIAS";

// Another name of a catalog.
struct Alias {
  std::string name;
  std::string catalog;

  bool operator==(const Alias&) const = default;
};

// Thread-safe; Get takes no lock. A catalog that is handed out can be read
// after its deletion, until the last holder lets go; the set must outlive all
// that it handed out.
//
//   auto catalogs = CatalogSet::Open("/var/lib/attendant", {});
//   auto created = (*catalogs)->Create("shop", schema, {});
//   created->catalog->Upsert(items, /*request_id=*/"");
//   auto answer = Attend(*created->catalog->snapshot(), query, Interrupt());
class CatalogSet {
 public:
  struct Options {
    StoreOptions store;
    LiveCatalogOptions catalog;
    const Clock* clock = &Clock::System();  // the catalogs' too
    // What the process may use of memory, in bytes; 0: any. Of what would pass
    // it writes are refused and index builds put off; see MemoryBudget. What a
    // directory holds is opened in any case.
    std::int64_t memory_limit_bytes = 0;
    // In [1, kMaxCatalogs]: how many may be made. More that a directory holds
    // are opened in any case.
    std::int64_t most_catalogs = kMaxCatalogs;
  };
  // What the process uses of memory, in bytes.
  struct MemoryUse {
    MemoryBudget::Use budget;
    std::int64_t cache_bytes = 0;         // of blocks read
    std::int64_t write_buffer_bytes = 0;  // of all catalogs
  };
  struct Created {
    std::shared_ptr<LiveCatalog> catalog;
    bool created = false;
  };
  // What a restore does about a model of the snapshot that is not there any
  // more: a version that it creates is one for all catalogs.
  enum class MissingModels { kCreate, kRefuse };
  struct AliasMove {
    Alias alias;
    std::string previous;  // the catalog that it named before; empty: none
  };
  // A text encoder and the key field it serves.
  struct FieldEncoder {
    std::string key_field;
    TextEncoder encoder;
  };

  // Opens every catalog in `directory`, created if missing. One that can't be
  // opened, mostly for damage, keeps its name and answers with that error; the
  // others are served. Errors as Store::Open.
  static absl::StatusOr<std::unique_ptr<CatalogSet>> Open(
      const std::string& directory, const Options& options);

  using Encoders = absl::StatusOr<std::vector<FieldEncoder>>;
  // InvalidArgument on a bad name, schema or encoder; AlreadyExists with
  // another schema, or where the name is an alias; ResourceExhausted past
  // most_catalogs, where memory is full, or for a model that indexes can't hold
  // (CheckIndexable). With the same schema, its defaults (temperature,
  // combine_kind, index_kind, keys_on_disk, model) aside, the existing one as
  // it is, its encoders untouched. Encoders are asked for, at most once, where
  // there is no such catalog yet; an error in their place is returned.
  absl::StatusOr<Created> Create(absl::string_view name,
                                 const CatalogSchema& schema,
                                 absl::FunctionRef<Encoders()> encoders);
  absl::StatusOr<Created> Create(absl::string_view name,
                                 const CatalogSchema& schema,
                                 std::vector<FieldEncoder> encoders) {
    return Create(name, schema, [&] { return Encoders(std::move(encoders)); });
  }

  // NotFound, naming the catalog; DataLoss if it is damaged, or whatever else
  // kept it from being opened.
  absl::StatusOr<std::shared_ptr<LiveCatalog>> Get(
      absl::string_view name) const;

  // In the order of names, the first after `after`, at most `limit`. Damaged
  // ones are left out.
  std::vector<std::shared_ptr<LiveCatalog>> List(absl::string_view after,
                                                 std::int64_t limit) const;

  // Stores new defaults (temperature, combine_kind, index_kind, keys_on_disk
  // and model of each field, all fields in the schema's order) and encoders. A
  // model of version 0 is the newest of its name. NotFound, also of a catalog
  // that is not of this uid, unless it is empty; InvalidArgument as Create,
  // also if anything else of a field differs. Encoders come first, all at once:
  // after an error of storing the defaults they may be the new ones.
  absl::Status Update(absl::string_view name,
                      const std::vector<KeyFieldSchema>& key_fields,
                      std::vector<FieldEncoder> encoders,
                      absl::string_view uid = "");

  // NotFound, naming the catalog; FailedPrecondition with reason
  // kCatalogHasAlias, naming an alias of it, while there is one. Returns after
  // the catalog, damaged or not, is gone from the disk. Its name is free once
  // Get does not find it any more, which is before that.
  absl::Status Delete(absl::string_view name);

  // Makes `alias` a name of the catalog, or moves it there from the one that it
  // names now; synced. Calls that begin after it returned meet the new catalog.
  // With `expected`, only if the alias names that catalog now, or, if empty,
  // does not exist: Aborted with reason ALIAS_MOVED otherwise. InvalidArgument
  // naming "alias" for a bad name; NotFound if there is no such catalog;
  // AlreadyExists if a catalog has the alias's name; ResourceExhausted past
  // kMaxAliases.
  absl::StatusOr<AliasMove> SetAlias(
      absl::string_view alias, absl::string_view catalog,
      const std::optional<std::string>& expected);

  // NotFound with reason ALIAS_NOT_FOUND, naming the alias; DataLoss if it is
  // damaged.
  absl::StatusOr<Alias> GetAlias(absl::string_view alias) const;

  // In the order of names, the first after `after`, at most `limit`. Damaged
  // ones are left out, and among the damages.
  std::vector<Alias> ListAliases(absl::string_view after,
                                 std::int64_t limit) const;

  // NotFound as GetAlias, also of a damaged one. The catalog stays; synced.
  absl::Status DeleteAlias(absl::string_view alias);

  // The attention models. Delete them with DeleteModel.
  ModelSet& models() { return *models_; }
  const ModelSet& models() const { return *models_; }

  // NotFound, as ModelSet::Get; FailedPrecondition with reason MODEL_IN_USE
  // while a catalog names this version, or still answers by it.
  absl::Status DeleteModel(const ModelName& name);

  // The stored snapshots, of catalogs that are there and of others. By the
  // names of catalogs, not by aliases: see Resolve.
  SnapshotFiles& snapshots();
  // The catalog that an alias names; any other name as it is.
  std::string Resolve(absl::string_view name) const;

  // Stores a snapshot of the catalog: all that was acknowledged before the
  // call, and of what is written meanwhile each write whole or not at all.
  // Reads and writes go on. Errors as Get and SnapshotFiles::Create.
  absl::StatusOr<SnapshotManifest> CreateSnapshot(absl::string_view catalog,
                                                  absl::string_view name,
                                                  LongWork& work);

  // Makes a catalog `name` of a snapshot, which is verified whole before
  // anything changes. It is another catalog: it has a uid of its own, which
  // tokens of the old one don't fit. A model that is not there any more, or
  // with other weights, becomes the next version of its name, or is refused:
  // PermissionDenied with reason MODEL_MISSING, naming it. InvalidArgument
  // naming "new_catalog" for a bad name; AlreadyExists if a catalog or alias
  // has it; ResourceExhausted past most_catalogs; DataLoss with reason
  // kSnapshotDamaged, naming the part; ResourceExhausted for a model that
  // indexes can't hold, as Create; else as SnapshotFiles::Open and Create.
  // After an error catalogs are as they were; a model may be left, and is taken
  // by the next try.
  absl::StatusOr<std::shared_ptr<LiveCatalog>> RestoreSnapshot(
      const SnapshotId& id, absl::string_view name, LongWork& work,
      MissingModels missing_models = MissingModels::kCreate);

  MemoryUse memory_use() const;

  // OK if the disk of the directory has room for a write of so many bytes; else
  // ResourceExhausted with reason DISK_FULL. Errors of asking it.
  absl::Status CheckDiskRoom(std::uint64_t write_bytes) const;
  // As FreeDiskBytes, of the directory.
  absl::StatusOr<std::uint64_t> free_disk_bytes() const;

  // Why, for each catalog that could not be opened and each alias that could
  // not be read, by name.
  std::map<std::string, absl::Status> damages() const;
  // Store::left_overs.
  absl::Status left_overs() const { return store_->left_overs(); }

 private:
  // What a name stands for: a catalog, or why there is only a record of it; or
  // an alias.
  struct Entry {
    std::shared_ptr<LiveCatalog> catalog;
    absl::Status damage;
    CatalogRecord damaged_record;
    bool is_alias = false;
    std::string target;  // of an alias: the catalog's name
  };
  using Catalogs = absl::btree_map<std::string, Entry>;

  CatalogSet(std::string directory, std::unique_ptr<Store> store,
             const Options& options);

  // The catalog of this name or alias. NotFound; DataLoss if it is a damaged
  // alias, and not if it is a damaged catalog.
  static absl::StatusOr<Catalogs::const_iterator> Find(const Catalogs& catalogs,
                                                       absl::string_view name);
  // The entries that are aliases, or that are not.
  static std::int64_t Count(const Catalogs& catalogs, bool aliases);
  // True if the catalog names this version, or may use it (MayUse).
  static bool Uses(const Entry& entry, const ModelName& model);

  absl::StatusOr<std::shared_ptr<LiveCatalog>> OpenCatalog(
      const CatalogRecord& record);
  // What Delete does at once: for good, there is no such catalog from then on.
  // Errors as Delete.
  absl::StatusOr<Entry> Remove(absl::string_view name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The models that the fields name, and their versions where a name stood
  // alone. NotFound; InvalidArgument if one does not fit its field.
  absl::StatusOr<std::vector<NamedModel>> ResolveModels(
      CatalogSchema& schema) const;
  // OK if one more catalog may be made; else ResourceExhausted.
  absl::Status CheckCount(const Catalogs& catalogs) const;
  // AlreadyExists, or what CheckCount says.
  absl::Status CheckNewName(const Catalogs& catalogs,
                            absl::string_view name) const;
  // Has the fields name versions with the content of these models.
  absl::Status AdoptModels(const std::vector<ModelRecord>& models,
                           MissingModels missing_models, CatalogSchema& schema);
  // `put` becomes true if the record may be found at the next start, whatever
  // is returned.
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

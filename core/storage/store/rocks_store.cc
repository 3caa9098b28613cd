#include <rocksdb/cache.h>
#include <rocksdb/slice.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/storage/catalogs/catalog_store.h"
#include "core/storage/catalogs/model_files.h"
#include "core/storage/files/data_directory.h"
#include "core/storage/files/files.h"
#include "core/storage/files/unlinked_files.h"
#include "core/storage/records/alias_codec.h"
#include "core/storage/records/catalog_record_codec.h"
#include "core/storage/records/model_codec.h"
#include "core/storage/records/store.h"
#include "core/storage/rocks/database.h"
#include "core/storage/rocks/tagged_key.h"
#include "core/storage/snapshots/snapshot_files.h"

namespace attendant {
namespace {

// The first byte of a key tells its kind.
constexpr char kAliasTag = 'a';        // + name: an alias's catalog
constexpr char kCatalogTag = 'c';      // + name: a catalog's record
constexpr char kLastVersionTag = 'v';  // + name: a model's last version
constexpr char kModelTag = 'w';        // + ModelKey: a version, in a file
// + uid of a catalog that was begun or deleted: its files are removed at the
// next Open. Other files are kept, whatever the list has lost.
constexpr char kLeftOverTag = 'u';

std::string CatalogKey(absl::string_view name) {
  return TaggedKey(kCatalogTag, name);
}

absl::Status CheckUid(const CatalogRecord& record) {
  if (IsCatalogUid(record.uid)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("catalog \"", record.name,
                                          "\" has the malformed uid \"",
                                          record.uid, "\""));
}

void AddLastVersion(absl::string_view name, absl::string_view bytes,
                    ModelList& list) {
  const absl::StatusOr<std::int64_t> version = DecodeLastVersion(name, bytes);
  if (version.ok()) {
    list.last_versions[std::string(name)] = *version;
  } else {
    list.damages[{std::string(name), 0}] = version.status();
  }
}

void AddModel(absl::string_view key, absl::string_view bytes, ModelList& list) {
  ModelRecord record;
  record.name = DecodeModelKey(key);
  const absl::Status entry = CheckModelEntry(record.name, bytes);
  if (entry.ok()) {
    list.records.push_back(std::move(record));
  } else {
    list.damages[{record.name.name, record.name.version}] = entry;
  }
}

class RocksStore : public Store {
 public:
  RocksStore(DataDirectory directory, DatabaseResources resources,
             std::unique_ptr<Database> catalogs)
      : directory_(std::move(directory)),
        resources_(std::move(resources)),
        catalogs_(std::move(catalogs)),
        scratch_files_(directory_.keys_path(), resources_.files),
        snapshots_(directory_.snapshots_path(), &resources_),
        model_files_(directory_.models_path(), resources_.files) {
    scratch_files_.RemoveLeftOvers();
    snapshots_.RemoveLeftOvers();
  }

  absl::StatusOr<CatalogList> List() const override {
    CatalogList list;
    ATTENDANT_RETURN_IF_ERROR(catalogs_->Scan(
        TaggedKey(kCatalogTag), EndOfTag(kCatalogTag),
        [&](absl::string_view key, absl::string_view value) {
          auto record = DecodeCatalogRecord(key.substr(1), value);
          if (record.ok()) {
            list.records.push_back(*std::move(record));
          } else {
            list.damages[std::string(key.substr(1))] = record.status();
          }
          return true;
        }));
    ATTENDANT_RETURN_IF_ERROR(
        catalogs_->Scan(TaggedKey(kAliasTag), EndOfTag(kAliasTag),
                        [&](absl::string_view key, absl::string_view value) {
                          list.aliases.emplace(
                              key.substr(1), DecodeAlias(key.substr(1), value));
                          return true;
                        }));
    return list;
  }

  absl::Status Put(const CatalogRecord& record, bool* begun) override {
    if (begun != nullptr) *begun = false;
    ATTENDANT_RETURN_IF_ERROR(CheckUid(record));
    MutexLock lock(&mutex_);
    // Before the record: a listed catalog without a database is damage, not
    // new.
    const std::string path = directory_.items_path(record.uid);
    ATTENDANT_ASSIGN_OR_RETURN(const bool listed, IsListed(record));
    ATTENDANT_ASSIGN_OR_RETURN(const bool exists,
                               files().PathExists(path + "/CURRENT"));
    if (!listed && !exists) {
      // Checked before the directory is made, which would remain.
      ATTENDANT_RETURN_IF_ERROR(catalogs_->CheckSpace(0));
      ATTENDANT_RETURN_IF_ERROR(
          OpenItems(path, record, Database::Mode::kCreateIfMissing).status());
    }
    rocksdb::WriteBatch batch;
    batch.Put(CatalogKey(record.name), EncodeCatalogRecord(record));
    batch.Delete(TaggedKey(kLeftOverTag, record.uid));
    return catalogs_->Write(&batch, catalogs_->sequence() + 1,
                            DiskReserve::kKept, begun);
  }

  absl::Status RemoveRecord(absl::string_view name) override {
    MutexLock lock(&mutex_);
    rocksdb::WriteBatch batch;
    batch.Delete(CatalogKey(name));
    // Nobody can tell which files a damaged record had.
    const auto uid = ListedUid(name);
    if (uid.ok() && *uid) batch.Put(TaggedKey(kLeftOverTag, **uid), "");
    return catalogs_->Write(&batch, catalogs_->sequence() + 1,
                            DiskReserve::kUsed);
  }

  absl::Status PutAlias(absl::string_view alias,
                        absl::string_view catalog) override {
    MutexLock lock(&mutex_);
    rocksdb::WriteBatch batch;
    batch.Put(TaggedKey(kAliasTag, alias), EncodeAlias(alias, catalog));
    return catalogs_->Write(&batch, catalogs_->sequence() + 1,
                            DiskReserve::kUsed);
  }

  absl::Status RemoveAlias(absl::string_view alias) override {
    MutexLock lock(&mutex_);
    rocksdb::WriteBatch batch;
    batch.Delete(TaggedKey(kAliasTag, alias));
    return catalogs_->Write(&batch, catalogs_->sequence() + 1,
                            DiskReserve::kUsed);
  }

  absl::Status RemoveFiles(const CatalogRecord& record) override {
    ATTENDANT_RETURN_IF_ERROR(CheckUid(record));
    ATTENDANT_RETURN_IF_ERROR(RemoveTrees(record.uid));
    rocksdb::WriteBatch batch;
    batch.Delete(TaggedKey(kLeftOverTag, record.uid));
    MutexLock lock(&mutex_);
    // A stale note of files that are gone does no harm.
    catalogs_->Write(&batch, catalogs_->sequence() + 1, DiskReserve::kUsed)
        .IgnoreError();
    return absl::OkStatus();
  }

  absl::StatusOr<ModelList> ListModels() const override {
    MutexLock lock(&mutex_);  // no version is removed between record and file
    ATTENDANT_ASSIGN_OR_RETURN(ModelList list, ListModelRecords());
    std::vector<ModelRecord> records;
    for (const ModelRecord& listed : list.records) {
      const ModelName& name = listed.name;
      const absl::StatusOr<std::string> bytes = model_files_.Read(name);
      if (absl::IsResourceExhausted(bytes.status())) return bytes.status();
      absl::StatusOr<ModelRecord> record =
          bytes.ok() ? DecodeModel(name, *bytes) : bytes.status();
      if (record.ok()) {
        records.push_back(*std::move(record));
      } else {
        list.damages[{name.name, name.version}] = record.status();
      }
    }
    list.records = std::move(records);
    return list;
  }

  absl::Status PutModel(const ModelRecord& record) override {
    const std::string bytes = EncodeModel(record);
    MutexLock lock(&mutex_);
    ATTENDANT_RETURN_IF_ERROR(catalogs_->CheckSpace(bytes.size()));
    // Before the record: a listed version without a file is damage.
    ATTENDANT_RETURN_IF_ERROR(model_files_.Write(record.name, bytes));
    ATTENDANT_FAIL_POINT("model.before_record");
    rocksdb::WriteBatch batch;
    batch.Put(TaggedKey(kModelTag, EncodeModelKey(record.name)),
              EncodeModelEntry(record.name));
    batch.Put(TaggedKey(kLastVersionTag, record.name.name),
              EncodeLastVersion(record.name));
    bool begun = false;
    const absl::Status status = catalogs_->Write(
        &batch, catalogs_->sequence() + 1, DiskReserve::kKept, &begun);
    // If the write was begun, the record may exist after a restart.
    if (!status.ok() && !begun) model_files_.Remove(record.name).IgnoreError();
    return status;
  }

  absl::Status RemoveModel(const ModelName& name) override {
    MutexLock lock(&mutex_);
    rocksdb::WriteBatch batch;
    batch.Delete(TaggedKey(kModelTag, EncodeModelKey(name)));
    ATTENDANT_RETURN_IF_ERROR(catalogs_->Write(
        &batch, catalogs_->sequence() + 1, DiskReserve::kUsed));
    ATTENDANT_FAIL_POINT("model.before_file_removal");
    // Without its record the version is gone, even if there is no memory for
    // the rest.
    try {
      model_files_.Remove(name).IgnoreError();
    } catch (const std::bad_alloc&) {
      // The file is removed at the next Open.
    }
    return absl::OkStatus();
  }

  std::int64_t cache_bytes() const override {
    return static_cast<std::int64_t>(resources_.block_cache->GetUsage());
  }
  std::int64_t write_buffer_bytes() const override {
    return static_cast<std::int64_t>(resources_.write_buffers->memory_usage());
  }

  absl::StatusOr<std::unique_ptr<CatalogStore>> OpenCatalog(
      const CatalogRecord& record) override {
    ATTENDANT_RETURN_IF_ERROR(CheckUid(record));
    const std::string path = directory_.items_path(record.uid);
    ATTENDANT_ASSIGN_OR_RETURN(const bool exists, files().PathExists(path));
    ATTENDANT_ASSIGN_OR_RETURN(const bool listed, IsListed(record));
    if (!exists && listed) {
      return absl::DataLossError(absl::StrCat("the directory ", path,
                                              " of catalog \"", record.name,
                                              "\" is missing"));
    }
    if (!exists) ATTENDANT_RETURN_IF_ERROR(NoteBegun(record.uid));
    absl::StatusOr<std::unique_ptr<CatalogStore>> catalog = OpenItems(
        path, record,
        listed ? Database::Mode::kMustExist : Database::Mode::kCreateIfMissing);
    // Unfinished files would take space on a disk that may be full.
    if (!exists && !catalog.ok()) files().RemoveTree(path).IgnoreError();
    return catalog;
  }

  SnapshotFiles& snapshots() override { return snapshots_; }

  absl::Status CopyItems(const std::string& directory,
                         const CatalogRecord& record,
                         const Interrupt& interrupt) override {
    ATTENDANT_RETURN_IF_ERROR(CheckUid(record));
    ATTENDANT_RETURN_IF_ERROR(NoteBegun(record.uid));
    const std::string path = directory_.items_path(record.uid);
    const absl::Status status =
        CopyDatabase(directory, path, record, interrupt);
    if (!status.ok()) files().RemoveTree(path).IgnoreError();
    return status;
  }

  absl::Status left_overs() const override { return left_overs_; }

  // Deletes the files of catalogs that were begun or deleted, as far as
  // possible. Items that are neither listed nor noted as such are kept: their
  // list was lost. If the last writes to the list may be missing, noted items
  // and unlisted models may belong to a lost list too, and are kept.
  absl::Status RemoveLeftOvers() {
    const bool is_whole = catalogs_->was_marked();
    std::vector<std::string> left;
    ATTENDANT_RETURN_IF_ERROR(
        catalogs_->Scan(TaggedKey(kLeftOverTag), EndOfTag(kLeftOverTag),
                        [&](absl::string_view key, absl::string_view) {
                          left.emplace_back(key.substr(1));
                          return true;
                        }));
    rocksdb::WriteBatch batch;
    for (const std::string& uid : left) {
      const absl::Status status =
          is_whole ? RemoveTrees(uid) : absl::OkStatus();
      left_overs_.Update(status);
      if (status.ok()) batch.Delete(TaggedKey(kLeftOverTag, uid));
    }
    if (batch.Count() > 0) {
      MutexLock lock(&mutex_);
      // If this fails, it is repeated at the next Open.
      catalogs_->Write(&batch, catalogs_->sequence() + 1, DiskReserve::kUsed)
          .IgnoreError();
    }
    ATTENDANT_ASSIGN_OR_RETURN(const CatalogList list, List());
    std::set<std::string> known;
    if (is_whole) known.insert(left.begin(), left.end());
    for (const CatalogRecord& record : list.records) known.insert(record.uid);
    left_overs_.Update(NameUnlisted(known, list.damages.empty()));
    return absl::OkStatus();
  }

  // Deletes the files of models that are not listed, unless a record is
  // damaged, as it may have listed any of them.
  absl::Status RemoveUnlistedModels() {
    MutexLock lock(&mutex_);
    ATTENDANT_ASSIGN_OR_RETURN(const ModelList list, ListModelRecords());
    if (!list.damages.empty() || !catalogs_->was_marked()) {
      return absl::OkStatus();
    }
    std::set<ModelFiles::Id> listed;
    for (const ModelRecord& record : list.records) {
      listed.emplace(record.name.name, record.name.version);
    }
    model_files_.RemoveOthers(listed);
    return absl::OkStatus();
  }

 private:
  const Files& files() const { return resources_.files; }

  absl::Status CopyDatabase(const std::string& from, const std::string& to,
                            const CatalogRecord& record,
                            const Interrupt& interrupt) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                               files().ListDirectory(from));
    ATTENDANT_RETURN_IF_ERROR(catalogs_->CheckSpace(0));
    ATTENDANT_RETURN_IF_ERROR(files().MakeDirectory(to));
    for (const std::string& name : names) {
      ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
      const std::string source = absl::StrCat(from, "/", name);
      const std::string target = absl::StrCat(to, "/", name);
      // Only tables never change.
      if (absl::EndsWith(name, ".sst") && files().LinkFile(source, target).ok())
        continue;
      ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t size,
                                 files().FileSize(source));
      ATTENDANT_RETURN_IF_ERROR(
          CheckDiskSpace(to, static_cast<std::uint64_t>(size)));
      ATTENDANT_RETURN_IF_ERROR(files().CopyFile(source, target));
    }
    ATTENDANT_RETURN_IF_ERROR(files().SyncDirectory(to));
    ATTENDANT_ASSIGN_OR_RETURN(
        const std::unique_ptr<Database> database,
        Database::Open(to, Database::Mode::kMustExist, resources_));
    return AdoptDatabase(*database, record);
  }

  // Returns what the metadata database has about models; the records hold only
  // names.
  absl::StatusOr<ModelList> ListModelRecords() const {
    ModelList list;
    ATTENDANT_RETURN_IF_ERROR(
        catalogs_->Scan(TaggedKey(kLastVersionTag), EndOfTag(kModelTag),
                        [&](absl::string_view key, absl::string_view value) {
                          if (key[0] == kLastVersionTag) {
                            AddLastVersion(key.substr(1), value, list);
                          } else {
                            AddModel(key.substr(1), value, list);
                          }
                          return true;
                        }));
    return list;
  }

  // Called before any file of a catalog that is not listed yet is created.
  absl::Status NoteBegun(const std::string& uid) {
    MutexLock lock(&mutex_);
    rocksdb::WriteBatch batch;
    batch.Put(TaggedKey(kLeftOverTag, uid), "");
    return catalogs_->Write(&batch, catalogs_->sequence() + 1);
  }

  absl::Status RemoveTrees(const std::string& uid) const {
    ATTENDANT_RETURN_IF_ERROR(
        files().RemoveTree(directory_.segments_path(uid)));
    return files().RemoveTree(directory_.items_path(uid));
  }

  // Returns FailedPrecondition naming the items of unknown catalogs; OK if
  // there are none, or if they may belong to a damaged record.
  absl::Status NameUnlisted(const std::set<std::string>& known,
                            bool all_are_read) const {
    ATTENDANT_ASSIGN_OR_RETURN(std::vector<std::string> names,
                               files().ListDirectory(directory_.items_path()));
    std::erase_if(names, [&](const std::string& name) {
      return !IsCatalogUid(name) || known.count(name) > 0;
    });
    if (names.empty() || !all_are_read) return absl::OkStatus();
    std::ranges::sort(names);
    return absl::FailedPreconditionError(absl::StrCat(
        directory_.items_path(), ": ", names.size(),
        " of its directories are of catalogs that are not listed and were not "
        "deleted, ",
        names.front(),
        " among them: put back the catalogs/ that "
        "lists them, or remove them"));
  }

  absl::StatusOr<std::unique_ptr<CatalogStore>> OpenItems(
      const std::string& path, const CatalogRecord& record,
      Database::Mode mode) {
    ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<Database> database,
                               Database::Open(path, mode, resources_));
    return MakeCatalogStore(
        std::move(database), catalogs_.get(), record, kRememberedRequestCount,
        &scratch_files_,
        SegmentDirectory(directory_.segments_path(record.uid), files()));
  }

  // Returns the uid of the catalog of this name; nothing if it is not listed.
  absl::StatusOr<std::optional<std::string>> ListedUid(
      absl::string_view name) const {
    ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                               catalogs_->Get(CatalogKey(name)));
    if (!text.has_value()) return std::optional<std::string>();
    ATTENDANT_ASSIGN_OR_RETURN(CatalogRecord listed,
                               DecodeCatalogRecord(name, *text));
    return std::optional<std::string>(std::move(listed.uid));
  }

  // True if the list of catalogs has the name with this uid.
  absl::StatusOr<bool> IsListed(const CatalogRecord& record) const {
    ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> uid,
                               ListedUid(record.name));
    return uid == record.uid;
  }

  const DataDirectory directory_;  // first: destroyed last, with its lock
  const DatabaseResources resources_;
  const std::unique_ptr<Database> catalogs_;
  UnlinkedFiles scratch_files_;
  SnapshotFiles snapshots_;
  // Held from reading the list's sequence until writing the next.
  mutable Mutex mutex_;
  const ModelFiles model_files_ ABSL_GUARDED_BY(mutex_);
  absl::Status left_overs_;  // set before the store is shared
};

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(
    const std::string& directory, const StoreOptions& options) {
  const Files files(options.file_system);
  ATTENDANT_ASSIGN_OR_RETURN(DataDirectory data,
                             DataDirectory::Open(directory, files));
  DatabaseResources resources = DatabaseResources::Make(files);
  ATTENDANT_ASSIGN_OR_RETURN(
      std::unique_ptr<Database> catalogs,
      Database::Open(data.catalogs_path(),
                     data.fresh() ? Database::Mode::kCreateIfMissing
                                  : Database::Mode::kMustExist,
                     resources));
  ATTENDANT_RETURN_IF_ERROR(files.MakeDirectory(data.items_path()));
  if (data.fresh()) ATTENDANT_RETURN_IF_ERROR(data.MarkComplete());
  ATTENDANT_RETURN_IF_ERROR(data.Sync());
  auto store = std::make_unique<RocksStore>(
      std::move(data), std::move(resources), std::move(catalogs));
  ATTENDANT_RETURN_IF_ERROR(store->RemoveLeftOvers());
  ATTENDANT_RETURN_IF_ERROR(store->RemoveUnlistedModels());
  return store;
}

}  // namespace attendant

// Stored snapshots of the catalogs of a CatalogSet.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"
#include "core/base/status_details.h"
#include "core/catalog/live/catalog_set.h"
#include "core/catalog/segments/head_keys.h"
#include "core/storage/files/files.h"
#include "core/storage/snapshots/snapshot_files.h"

namespace attendant {
namespace {

absl::Status NameTaken(absl::string_view name, bool is_alias) {
  return WithDetails(
      StatusWithReason(
          absl::StatusCode::kAlreadyExists,
          absl::StrCat("'", name, "' is ", is_alias ? "an alias" : "a catalog",
                       "; restore to another name"),
          is_alias ? "ALIAS_EXISTS" : "CATALOG_EXISTS"),
      {{is_alias ? "alias" : "catalog", name}});
}

// Estimates the memory of the snapshot's items: about their size on disk,
// except keys that go to files (LiveCatalog::MoveLoadedKeys).
std::int64_t RestoredBytes(const SnapshotManifest& manifest,
                           const SnapshotFiles::Verified& verified) {
  std::int64_t bytes = manifest.byte_count();
  for (const KeyFieldSchema& field : verified.record.schema.key_fields) {
    if (!field.keys_on_disk) continue;
    const bool has_heads =
        std::ranges::any_of(verified.models, [&](const ModelRecord& model) {
          return model.name == field.model && StoredHeadCount(&model.model) > 0;
        });
    // With heads, it is the heads' keys that go to files, and those are not on
    // the disk of the snapshot.
    if (has_heads) continue;
    bytes -= manifest.item_count * field.dim * std::int64_t{sizeof(float)};
  }
  return std::max<std::int64_t>(0, bytes);
}

// Checks the models of the snapshot's key fields, as for a new catalog.
absl::Status CheckIndexable(const SnapshotFiles::Verified& verified) {
  const auto& fields = verified.record.schema.key_fields;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    for (const ModelRecord& model : verified.models) {
      if (model.name != fields[f].model) continue;
      ATTENDANT_RETURN_IF_ERROR(CheckIndexable(
          model.model, absl::StrCat("schema.key_fields[", f, "].model")));
    }
  }
  return absl::OkStatus();
}

}  // namespace

SnapshotFiles& CatalogSet::snapshots() { return store_->snapshots(); }

std::string CatalogSet::Resolve(absl::string_view name) const {
  const std::shared_ptr<const Catalogs> now = catalogs_.Load();
  const auto found = now->find(name);
  const bool is_alias = found != now->end() && found->second.is_alias;
  return is_alias ? found->second.target : std::string(name);
}

absl::StatusOr<SnapshotManifest> CatalogSet::CreateSnapshot(
    absl::string_view catalog_name, absl::string_view name, LongWork& work) {
  std::shared_ptr<LiveCatalog> catalog;
  CatalogRecord record;
  std::vector<ModelRecord> models;
  {
    // Under the lock, so that models named by the record are not deleted.
    MutexLock lock(&mutex_);
    ATTENDANT_ASSIGN_OR_RETURN(catalog, Get(catalog_name));
    record = catalog->record();
    for (const KeyFieldSchema& field : record.schema.key_fields) {
      if (field.model.empty()) continue;
      ATTENDANT_ASSIGN_OR_RETURN(
          const auto model,
          models_->Get(field.model.name, field.model.version));
      models.push_back(*model);
    }
  }
  return snapshots().Create(
      std::move(record), models, name, options_.clock->Now(),
      [&](const std::string& directory, CatalogRecord& copied) {
        absl::Status status = catalog->Checkpoint(directory);
        copied.schema.attributes = catalog->record().schema.attributes;
        return status;
      },
      work);
}

absl::Status CatalogSet::CheckNewName(const Catalogs& catalogs,
                                      absl::string_view name) const {
  if (const auto found = catalogs.find(name); found != catalogs.end()) {
    return NameTaken(name, found->second.is_alias);
  }
  return CheckCount(catalogs);
}

// A model of the snapshot may have been deleted, or its version may be another
// model on this server. Any version with the same content is used; if there is
// none, the model becomes the next version of its name.
absl::Status CatalogSet::AdoptModels(const std::vector<ModelRecord>& models,
                                     MissingModels missing_models,
                                     CatalogSchema& schema) {
  // Compared with the original fields: a version assigned here may equal that
  // of another model in the snapshot.
  const std::vector<KeyFieldSchema> before = schema.key_fields;
  for (const ModelRecord& model : models) {
    ModelName name;
    const auto same = models_->Get(model.name.name, model.name.version);
    if (same.ok() && (*same)->model == model.model) name = (*same)->name;
    ModelName after{model.name.name, 0};
    while (name.empty()) {
      const auto next = models_->List(after, 1);
      if (next.empty() || next[0]->name.name != model.name.name) break;
      after = next[0]->name;
      if (next[0]->model == model.model) name = after;
    }
    if (name.empty() && missing_models == MissingModels::kRefuse) {
      return WithDetails(
          StatusWithReason(
              absl::StatusCode::kPermissionDenied,
              absl::StrCat("model '", model.name.name,
                           "' of the snapshot is not on this server, and "
                           "models belong to no catalog: a caller for all "
                           "catalogs has to create it, or to restore the "
                           "snapshot"),
              "MODEL_MISSING"),
          {{"model", model.name.name}});
    }
    if (name.empty()) {
      ATTENDANT_ASSIGN_OR_RETURN(
          const auto created,
          models_->Create(model.name.name, model.model, /*probes=*/{}));
      name = created->name;
    }
    for (std::size_t f = 0; f < before.size(); ++f) {
      if (before[f].model == model.name) schema.key_fields[f].model = name;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<LiveCatalog>> CatalogSet::RestoreSnapshot(
    const SnapshotId& id, absl::string_view name, LongWork& work,
    MissingModels missing_models) {
  ATTENDANT_RETURN_IF_ERROR(ValidateCatalogName(name, "new_catalog"));
  // Checked before the work, and again after it.
  ATTENDANT_RETURN_IF_ERROR(CheckNewName(*catalogs_.Load(), name));
  ATTENDANT_ASSIGN_OR_RETURN(const auto lease, snapshots().Open(id));
  ATTENDANT_ASSIGN_OR_RETURN(SnapshotFiles::Verified verified,
                             snapshots().Verify(*lease, work));
  ATTENDANT_RETURN_IF_ERROR(CheckIndexable(verified));
  ATTENDANT_ASSIGN_OR_RETURN(
      MemoryBudget::Account room,
      memory_->Reserve("a restored catalog",
                       RestoredBytes(lease->manifest(), verified)));
  ATTENDANT_RETURN_IF_ERROR(
      CheckOpenFiles("a restored catalog", kCatalogFiles));
  // Nothing has been changed so far.
  CatalogRecord record = std::move(verified.record);
  record.name = std::string(name);
  {
    MutexLock lock(&mutex_);
    record.uid = NewUid();
  }
  record.create_time = options_.clock->Now();
  ATTENDANT_FAIL_POINT_OR_RETURN("restore.before_copy");
  ATTENDANT_RETURN_IF_ERROR(
      AdoptModels(verified.models, missing_models, record.schema));
  ATTENDANT_RETURN_IF_ERROR(
      store_->CopyItems(lease->database_path(), record, work.interrupt()));
  absl::StatusOr<std::shared_ptr<LiveCatalog>> catalog = OpenCatalog(record);
  room = {};  // now counted as the catalog's
  absl::Status status = catalog.status();
  // A catalog whose keys stay in memory needs more than was reserved.
  if (status.ok()) status = (*catalog)->recovery().keys_in_memory;
  if (status.ok()) status = work.interrupt().Check();
  bool put = false;
  if (status.ok()) status = AddRestored(record, *catalog, put);
  if (status.ok()) return catalog;
  if (catalog.ok()) (*catalog)->Discard();
  // If the next start may find the record, its files must stay.
  if (!put) store_->RemoveFiles(record).IgnoreError();
  return status;
}

absl::Status CatalogSet::AddRestored(
    const CatalogRecord& record, const std::shared_ptr<LiveCatalog>& catalog,
    bool& put) {
  MutexLock lock(&mutex_);
  const std::shared_ptr<const Catalogs> now = catalogs_.Load();
  ATTENDANT_RETURN_IF_ERROR(CheckNewName(*now, record.name));
  // A model may have been deleted before the catalog that uses it existed.
  CatalogSchema schema = record.schema;
  ATTENDANT_RETURN_IF_ERROR(ResolveModels(schema).status());
  auto next = std::make_shared<Catalogs>(*now);
  (*next)[record.name].catalog = catalog;
  ATTENDANT_FAIL_POINT_OR_RETURN("restore.before_record");
  ATTENDANT_RETURN_IF_ERROR(store_->Put(record, &put));
  ATTENDANT_FAIL_POINT("restore.after_record");
  catalogs_.Store(std::move(next));
  return absl::OkStatus();
}

}  // namespace attendant

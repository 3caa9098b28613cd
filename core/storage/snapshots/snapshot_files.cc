#include "core/storage/snapshots/snapshot_files.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"
#include "core/base/status_details.h"
#include "core/storage/catalogs/catalog_store.h"
#include "core/storage/files/disk_space.h"
#include "core/storage/records/catalog_record_codec.h"
#include "core/storage/records/model_codec.h"
#include "core/storage/rocks/database.h"
#include "core/storage/snapshots/snapshot_parts.h"

namespace attendant {
namespace {

// No catalog's name begins with a dot.
constexpr absl::string_view kPartial = ".partial";

absl::Status NoSuchSnapshot(const SnapshotId& id) {
  return WithDetails(
      StatusWithReason(absl::StatusCode::kNotFound,
                       absl::StrCat("no snapshot '", id.name, "' of catalog '",
                                    id.catalog, "'"),
                       "SNAPSHOT_NOT_FOUND"),
      {{"snapshot", id.name}, {"catalog", id.catalog}});
}

// Converts damage of a part to damage of the snapshot; leaves other errors
// unchanged.
absl::Status OfSnapshot(const absl::Status& status, const SnapshotId& id) {
  if (!absl::IsDataLoss(status)) return status;
  return WithDetails(
      StatusWithReason(
          absl::StatusCode::kDataLoss,
          absl::StrCat("snapshot '", id.name, "' of catalog '", id.catalog,
                       "' is damaged: ", status.message()),
          kSnapshotDamaged),
      {{"snapshot", id.name}, {"catalog", id.catalog}});
}

bool IsId(const SnapshotId& id) {
  return ValidateCatalogName(id.catalog).ok() &&
         ValidateCatalogName(id.name).ok();
}

std::string DefaultName(const SnapshotManifest& manifest) {
  return absl::StrCat(absl::FormatTime("%Y%m%d-%H%M%S", manifest.create_time,
                                       absl::UTCTimeZone()),
                      "-", manifest.sequence);
}

SnapshotId IdOf(const SnapshotManifest& manifest) {
  return {manifest.catalog, manifest.name};
}

absl::Status WriteMetadata(const Files& files, const std::string& directory,
                           const CatalogRecord& record,
                           const std::vector<ModelRecord>& models) {
  const auto write = [&](const std::string& path, const std::string& bytes) {
    ATTENDANT_RETURN_IF_ERROR(CheckDiskSpace(directory, bytes.size()));
    return files.ReplaceFile(path, bytes);
  };
  ATTENDANT_RETURN_IF_ERROR(write(absl::StrCat(directory, "/", kSnapshotRecord),
                                  EncodeCatalogRecord(record)));
  for (const ModelRecord& model : models) {
    const std::string path =
        absl::StrCat(directory, "/", SnapshotModelPath(model.name));
    ATTENDANT_RETURN_IF_ERROR(
        files.MakeDirectory(path.substr(0, path.rfind('/'))));
    ATTENDANT_RETURN_IF_ERROR(write(path, EncodeModel(model)));
  }
  return absl::OkStatus();
}

}  // namespace

SnapshotFiles::Draft::~Draft() {
  snapshots_->resources_->files.RemoveTree(path_).IgnoreError();
}

SnapshotFiles::Lease::~Lease() {
  MutexLock lock(&snapshots_->lease_mutex_);
  const auto found = snapshots_->lease_counts_.find(id_);
  if (--found->second == 0) snapshots_->lease_counts_.erase(found);
}

std::string SnapshotFiles::Lease::path() const {
  return snapshots_->path_of(id_);
}

std::string SnapshotFiles::Lease::database_path() const {
  return absl::StrCat(path(), "/", kSnapshotDatabase);
}

SnapshotFiles::SnapshotFiles(std::string directory,
                             const DatabaseResources* resources)
    : directory_(std::move(directory)), resources_(resources) {}

void SnapshotFiles::RemoveLeftOvers() {
  const std::string partial = catalog_path(kPartial);
  resources_->files.RemoveTree(partial).IgnoreError();
  // Drafts that can't be removed keep their numbers.
  const absl::StatusOr<std::vector<std::string>> names =
      resources_->files.ListDirectory(partial);
  if (!names.ok()) return;
  MutexLock lock(&mutex_);
  for (const std::string& name : *names) {
    std::int64_t number = 0;
    if (!absl::SimpleAtoi(name, &number)) continue;
    draft_count_ = std::max(draft_count_, number);
  }
}

std::string SnapshotFiles::catalog_path(absl::string_view catalog) const {
  return absl::StrCat(directory_, "/", catalog);
}

std::string SnapshotFiles::path_of(const SnapshotId& id) const {
  return absl::StrCat(catalog_path(id.catalog), "/", id.name);
}

absl::StatusOr<std::unique_ptr<SnapshotFiles::Draft>> SnapshotFiles::NewDraft(
    const SnapshotId& id) {
  std::int64_t number = 0;
  {
    MutexLock lock(&mutex_);
    if (!id.name.empty()) ATTENDANT_RETURN_IF_ERROR(CheckNew(id));
    number = ++draft_count_;
  }
  ATTENDANT_RETURN_IF_ERROR(CheckDiskSpace(directory_, 0));
  const std::string path = absl::StrCat(catalog_path(kPartial), "/", number);
  std::unique_ptr<Draft> draft(new Draft(this, path));
  ATTENDANT_RETURN_IF_ERROR(resources_->files.MakeDirectory(path));
  return draft;
}

absl::Status SnapshotFiles::CheckNew(const SnapshotId& id) const {
  ATTENDANT_ASSIGN_OR_RETURN(const bool exists,
                             resources_->files.PathExists(path_of(id)));
  if (exists) {
    return WithDetails(
        StatusWithReason(
            absl::StatusCode::kAlreadyExists,
            absl::StrCat("there is a snapshot '", id.name, "' of catalog '",
                         id.catalog,
                         "'; choose another name, or delete it first"),
            "SNAPSHOT_EXISTS"),
        {{"catalog", id.catalog}, {"snapshot", id.name}});
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::vector<std::string> names,
      resources_->files.ListDirectory(catalog_path(id.catalog)));
  if (names.size() < kMaxSnapshots) return absl::OkStatus();
  return MostThereMayBe(
      static_cast<std::int64_t>(names.size()),
      absl::StrCat("snapshots of catalog '", id.catalog, "'"));
}

absl::StatusOr<std::string> SnapshotFiles::FreeName(
    const SnapshotManifest& manifest) const {
  const std::string first = DefaultName(manifest);
  std::string name = first;
  for (int i = 2;; ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(
        const bool exists,
        resources_->files.PathExists(path_of({manifest.catalog, name})));
    if (!exists) return name;
    name = absl::StrCat(first, "-", i);
  }
}

absl::Status SnapshotFiles::Publish(const Draft& draft,
                                    SnapshotManifest& manifest) {
  const Files& files = resources_->files;
  ATTENDANT_FAIL_POINT_OR_RETURN("snapshot.before_manifest");
  MutexLock lock(&mutex_);
  if (manifest.name.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(manifest.name, FreeName(manifest));
  }
  const SnapshotId id = IdOf(manifest);
  ATTENDANT_RETURN_IF_ERROR(CheckNew(id));
  ATTENDANT_RETURN_IF_ERROR(
      files.ReplaceFile(absl::StrCat(draft.path(), "/", kSnapshotManifest),
                        EncodeSnapshotManifest(manifest)));
  ATTENDANT_RETURN_IF_ERROR(files.MakeDirectory(catalog_path(id.catalog)));
  ATTENDANT_FAIL_POINT_OR_RETURN("snapshot.before_name");
  const absl::Status status = files.RenameDirectory(draft.path(), path_of(id));
  // The new name may exist without being synced, so rename it back.
  if (!status.ok() && files.PathExists(path_of(id)).value_or(false)) {
    files.RenameDirectory(path_of(id), draft.path()).IgnoreError();
  }
  ATTENDANT_FAIL_POINT("snapshot.after_name");
  return status;
}

absl::StatusOr<SnapshotManifest> SnapshotFiles::Create(
    CatalogRecord record, const std::vector<ModelRecord>& models,
    absl::string_view name, absl::Time now, Checkpoint checkpoint,
    LongWork& work) {
  SnapshotManifest manifest;
  manifest.catalog = record.name;
  manifest.name = std::string(name);
  manifest.catalog_uid = record.uid;
  manifest.create_time = now;
  if (!name.empty()) ATTENDANT_RETURN_IF_ERROR(ValidateCatalogName(name));
  const Files& files = resources_->files;
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<Draft> draft,
                             NewDraft(IdOf(manifest)));
  const std::string database =
      absl::StrCat(draft->path(), "/", kSnapshotDatabase);
  ATTENDANT_FAIL_POINT_OR_RETURN("snapshot.before_files");
  ATTENDANT_RETURN_IF_ERROR(checkpoint(database, record));
  ATTENDANT_RETURN_IF_ERROR(
      WriteMetadata(files, draft->path(), record, models));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                             ListSnapshotParts(files, draft->path()));
  const auto part_count = static_cast<std::int64_t>(paths.size());
  if (part_count > kMaxSnapshotParts) {
    return OverLimit("parts", absl::StrCat(part_count),
                     absl::StrCat("at most ", kMaxSnapshotParts, " files"));
  }
  // Damage of the catalog must not get into a snapshot.
  ATTENDANT_ASSIGN_OR_RETURN(
      const CatalogContents contents,
      ReadCatalogContents(database, record.schema, *resources_, Blocks::kAll,
                          work.interrupt()));
  if (contents.uid != record.uid) {
    return absl::DataLossError(
        absl::StrCat("the files of catalog '", record.name,
                     "' are those of the one with ", "uid ", contents.uid));
  }
  manifest.sequence = contents.sequence;
  manifest.item_count = contents.item_count;
  ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t bytes,
                             SnapshotPartBytes(files, draft->path(), paths));
  work.Start(bytes);
  ATTENDANT_ASSIGN_OR_RETURN(
      manifest.parts, HashSnapshotParts(files, draft->path(), paths, work));
  ATTENDANT_RETURN_IF_ERROR(Publish(*draft, manifest));
  return manifest;
}

absl::StatusOr<SnapshotManifest> SnapshotFiles::ReadManifest(
    const SnapshotId& id) const {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                             resources_->files.ReadFile(absl::StrCat(
                                 path_of(id), "/", kSnapshotManifest)));
  if (!text.has_value()) {
    return OfSnapshot(
        absl::DataLossError(absl::StrCat(kSnapshotManifest, ": it is missing")),
        id);
  }
  absl::StatusOr<SnapshotManifest> manifest = DecodeSnapshotManifest(*text);
  ATTENDANT_RETURN_IF_ERROR(OfSnapshot(manifest.status(), id));
  if (IdOf(*manifest) == id) return manifest;
  return OfSnapshot(
      absl::DataLossError(absl::StrCat(
          kSnapshotManifest, ": it is that of snapshot '", manifest->name,
          "' of catalog '", manifest->catalog, "'")),
      id);
}

absl::StatusOr<std::vector<SnapshotId>> SnapshotFiles::ListIds(
    absl::string_view catalog, const SnapshotPage& page) const {
  const Files& files = resources_->files;
  std::vector<std::string> catalogs = {std::string(catalog)};
  if (catalog.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(catalogs, files.ListDirectory(directory_));
  }
  std::vector<SnapshotId> ids;
  for (const std::string& of : catalogs) {
    if (!ValidateCatalogName(of).ok()) continue;
    if (page.holds != nullptr && !page.holds(of)) continue;
    const auto names = files.ListDirectory(catalog_path(of));
    // A foreign file among the directories must not prevent listing.
    if (absl::IsDataLoss(names.status()) && catalog.empty()) continue;
    ATTENDANT_RETURN_IF_ERROR(names.status());
    for (const std::string& name : *names) {
      SnapshotId id{of, name};
      if (IsId(id) && (!page.after || id > *page.after)) {
        ids.push_back(std::move(id));
      }
    }
  }
  std::ranges::sort(ids);
  return ids;
}

absl::StatusOr<SnapshotList> SnapshotFiles::List(
    absl::string_view catalog, const SnapshotPage& page,
    const Interrupt& interrupt) const {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<SnapshotId> ids,
                             ListIds(catalog, page));
  SnapshotList list;
  for (const SnapshotId& id : ids) {
    const bool is_full = list.manifests.size() >= page.limit;
    if (is_full && page.after) break;
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    // Locks for one manifest at a time, so that nobody waits for all of them.
    absl::StatusOr<SnapshotManifest> manifest = Get(id);
    if (absl::IsNotFound(manifest.status())) continue;  // removed since
    if (!manifest.ok()) {
      list.damages[id] = manifest.status();
    } else if (!is_full) {
      list.manifests.push_back(*std::move(manifest));
    }
  }
  return list;
}

absl::StatusOr<SnapshotManifest> SnapshotFiles::Get(
    const SnapshotId& id) const {
  MutexLock lock(&mutex_);
  ATTENDANT_RETURN_IF_ERROR(CheckExists(id));
  return ReadManifest(id);
}

absl::Status SnapshotFiles::CheckExists(const SnapshotId& id) const {
  if (!IsId(id)) return NoSuchSnapshot(id);
  ATTENDANT_ASSIGN_OR_RETURN(const bool exists,
                             resources_->files.PathExists(path_of(id)));
  return exists ? absl::OkStatus() : NoSuchSnapshot(id);
}

absl::StatusOr<std::unique_ptr<SnapshotFiles::Lease>> SnapshotFiles::Open(
    const SnapshotId& id) {
  std::unique_ptr<Lease> lease;
  {
    MutexLock lock(&mutex_);
    ATTENDANT_RETURN_IF_ERROR(CheckExists(id));
    MutexLock lease_lock(&lease_mutex_);
    ++lease_counts_[id];
    lease.reset(new Lease(this, id));
  }
  ATTENDANT_ASSIGN_OR_RETURN(lease->manifest_, ReadManifest(id));
  return lease;
}

absl::StatusOr<SnapshotFiles::Verified> SnapshotFiles::Verify(
    const Lease& lease, LongWork& work) const {
  absl::StatusOr<SnapshotMetadata> metadata =
      CheckSnapshotParts(*resources_, lease.path(), lease.manifest(), work);
  ATTENDANT_RETURN_IF_ERROR(
      OfSnapshot(metadata.status(), IdOf(lease.manifest())));
  return Verified{std::move(metadata->record), std::move(metadata->models)};
}

absl::Status SnapshotFiles::Adopt(const Draft& draft,
                                  const SnapshotManifest& manifest,
                                  LongWork& work) {
  ATTENDANT_FAIL_POINT_OR_RETURN("import.before_verification");
  ATTENDANT_RETURN_IF_ERROR(OfSnapshot(
      CheckSnapshotParts(*resources_, draft.path(), manifest, work).status(),
      IdOf(manifest)));
  SnapshotManifest adopted = manifest;
  return Publish(draft, adopted);
}

absl::Status SnapshotFiles::Remove(const SnapshotId& id) {
  const Files& files = resources_->files;
  std::string aside;
  {
    MutexLock lock(&mutex_);
    ATTENDANT_RETURN_IF_ERROR(CheckExists(id));
    bool is_leased = false;
    {
      MutexLock lease_lock(&lease_mutex_);
      is_leased = lease_counts_.contains(id);
    }
    if (is_leased) {
      return WithDetails(
          StatusWithReason(
              absl::StatusCode::kFailedPrecondition,
              absl::StrCat("snapshot '", id.name, "' of catalog '", id.catalog,
                           "' is being verified, restored or exported; try "
                           "again when that is done"),
              "SNAPSHOT_IN_USE"),
          {{"catalog", id.catalog}, {"snapshot", id.name}});
    }
    aside = absl::StrCat(catalog_path(kPartial), "/", ++draft_count_);
    ATTENDANT_RETURN_IF_ERROR(files.MakeDirectory(catalog_path(kPartial)));
    const absl::Status status = files.RenameDirectory(path_of(id), aside);
    // The name may be gone without this being synced, so restore it.
    if (!status.ok() && files.PathExists(aside).value_or(false)) {
      files.RenameDirectory(aside, path_of(id)).IgnoreError();
    }
    ATTENDANT_RETURN_IF_ERROR(status);
    // Fails if the directory holds other snapshots.
    files.RemoveFile(catalog_path(id.catalog)).IgnoreError();
  }
  ATTENDANT_FAIL_POINT("snapshot.before_file_removal");
  // The snapshot is gone; remaining files are removed at the next start.
  files.RemoveTree(aside).IgnoreError();
  return absl::OkStatus();
}

}  // namespace attendant

#include "core/storage/snapshots/snapshot_parts.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "core/storage/catalogs/catalog_store.h"
#include "core/storage/files/stream_hash.h"
#include "core/storage/records/catalog_record_codec.h"
#include "core/storage/records/model_codec.h"
#include "core/storage/rocks/table_properties.h"

namespace attendant {
namespace {

absl::Status DamagedPart(absl::string_view part, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(part, ": ", what));
}

std::string Below(const std::string& directory, absl::string_view path) {
  return absl::StrCat(directory, "/", path);
}

// Adds the name of the part to DataLoss; leaves other errors unchanged.
absl::Status OfPart(const absl::Status& status, absl::string_view part) {
  if (status.ok() || !absl::IsDataLoss(status)) return status;
  return DamagedPart(part, status.message());
}

absl::StatusOr<SnapshotPart> HashPart(const Files& files,
                                      const std::string& directory,
                                      const std::string& path, LongWork& work) {
  SnapshotPart part;
  part.path = path;
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<FileReader> reader,
                             files.OpenToRead(Below(directory, path)));
  StreamHash hash;
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::string bytes,
                               reader->Read(kFileBlockBytes));
    hash.Update(bytes);
    part.size += static_cast<std::int64_t>(bytes.size());
    ATTENDANT_RETURN_IF_ERROR(
        work.Advance(static_cast<std::int64_t>(bytes.size())));
    if (bytes.size() < kFileBlockBytes) break;
  }
  part.hash = hash.Text();
  return part;
}

absl::Status CheckPart(const Files& files, const std::string& directory,
                       const SnapshotPart& want, LongWork& work) {
  if (!files.PathExists(Below(directory, want.path)).value_or(true)) {
    return DamagedPart(want.path, "it is missing");
  }
  const absl::StatusOr<SnapshotPart> got =
      HashPart(files, directory, want.path, work);
  // A part that the disk can't read is lost.
  if (absl::IsInternal(got.status())) {
    return DamagedPart(want.path, got.status().message());
  }
  ATTENDANT_RETURN_IF_ERROR(got.status());
  if (got->size != want.size) {
    return DamagedPart(want.path, absl::StrCat("it has ", got->size,
                                               " bytes, not ", want.size));
  }
  if (got->hash != want.hash) {
    return DamagedPart(want.path, "its checksum does not match");
  }
  return absl::OkStatus();
}

// Reads a small part that was already checked.
absl::StatusOr<std::string> ReadPart(const Files& files,
                                     const std::string& directory,
                                     absl::string_view path) {
  ATTENDANT_ASSIGN_OR_RETURN(std::optional<std::string> bytes,
                             files.ReadFile(Below(directory, path)));
  if (!bytes.has_value()) return DamagedPart(path, "it is missing");
  return *std::move(bytes);
}

absl::StatusOr<SnapshotMetadata> ReadMetadata(
    const Files& files, const std::string& directory,
    const SnapshotManifest& manifest) {
  SnapshotMetadata metadata;
  ATTENDANT_ASSIGN_OR_RETURN(const std::string text,
                             ReadPart(files, directory, kSnapshotRecord));
  absl::StatusOr<CatalogRecord> record =
      DecodeCatalogRecord(manifest.catalog, text);
  ATTENDANT_RETURN_IF_ERROR(OfPart(record.status(), kSnapshotRecord));
  if (record->uid != manifest.catalog_uid) {
    return DamagedPart(kSnapshotRecord, "it is that of another catalog");
  }
  metadata.record = *std::move(record);
  for (const KeyFieldSchema& field : metadata.record.schema.key_fields) {
    if (field.model.empty()) continue;
    const auto same = [&](const ModelRecord& model) {
      return model.name == field.model;
    };
    if (std::ranges::any_of(metadata.models, same)) {
      continue;
    }
    const std::string path = SnapshotModelPath(field.model);
    ATTENDANT_ASSIGN_OR_RETURN(const std::string bytes,
                               ReadPart(files, directory, path));
    absl::StatusOr<ModelRecord> model = DecodeModel(field.model, bytes);
    ATTENDANT_RETURN_IF_ERROR(OfPart(model.status(), path));
    metadata.models.push_back(*std::move(model));
  }
  return metadata;
}

absl::Status AddPaths(const Files& files, const std::string& directory,
                      const std::string& below,
                      std::vector<std::string>& paths) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             files.ListDirectory(Below(directory, below)));
  for (const std::string& name : names) {
    paths.push_back(absl::StrCat(below, "/", name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListSnapshotParts(
    const Files& files, const std::string& directory) {
  std::vector<std::string> paths = {std::string(kSnapshotRecord)};
  ATTENDANT_RETURN_IF_ERROR(
      AddPaths(files, directory, std::string(kSnapshotDatabase), paths));
  std::vector<std::string> models;
  ATTENDANT_RETURN_IF_ERROR(
      AddPaths(files, directory, std::string(kSnapshotModels), models));
  for (const std::string& model : models) {
    ATTENDANT_RETURN_IF_ERROR(AddPaths(files, directory, model, paths));
  }
  std::ranges::sort(paths);
  return paths;
}

absl::StatusOr<std::int64_t> SnapshotPartBytes(
    const Files& files, const std::string& directory,
    const std::vector<std::string>& paths) {
  std::int64_t bytes = 0;
  for (const std::string& path : paths) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t size,
                               files.FileSize(Below(directory, path)));
    bytes += size;
  }
  return bytes;
}

absl::StatusOr<std::vector<SnapshotPart>> HashSnapshotParts(
    const Files& files, const std::string& directory,
    const std::vector<std::string>& paths, LongWork& work) {
  std::vector<SnapshotPart> parts;
  for (const std::string& path : paths) {
    ATTENDANT_ASSIGN_OR_RETURN(SnapshotPart part,
                               HashPart(files, directory, path, work));
    parts.push_back(std::move(part));
  }
  return parts;
}

absl::StatusOr<SnapshotMetadata> CheckSnapshotParts(
    const DatabaseResources& resources, const std::string& directory,
    const SnapshotManifest& manifest, LongWork& work) {
  work.Start(manifest.byte_count());
  for (const SnapshotPart& part : manifest.parts) {
    ATTENDANT_RETURN_IF_ERROR(
        CheckPart(resources.files, directory, part, work));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                             ListSnapshotParts(resources.files, directory));
  std::set<absl::string_view> known;
  for (const SnapshotPart& part : manifest.parts) known.insert(part.path);
  for (const std::string& path : paths) {
    ATTENDANT_RETURN_IF_ERROR(work.interrupt().Check());
    if (!known.contains(path)) {
      return DamagedPart(path, "it is no part of the snapshot");
    }
    if (!absl::EndsWith(path, ".sst")) continue;
    ATTENDANT_RETURN_IF_ERROR(OfPart(
        CheckTableProperties(resources.files, Below(directory, path)), path));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      SnapshotMetadata metadata,
      ReadMetadata(resources.files, directory, manifest));
  // Every byte equals what Create verified with all blocks, so only the blocks
  // read are verified again.
  const absl::StatusOr<CatalogContents> contents = ReadCatalogContents(
      Below(directory, kSnapshotDatabase), metadata.record.schema, resources,
      Blocks::kRead, work.interrupt());
  ATTENDANT_RETURN_IF_ERROR(OfPart(contents.status(), kSnapshotDatabase));
  if (contents->uid != manifest.catalog_uid ||
      contents->sequence != manifest.sequence ||
      contents->item_count != manifest.item_count) {
    return DamagedPart(
        kSnapshotDatabase,
        absl::StrCat("it holds ", contents->item_count, " items up to write ",
                     contents->sequence, " of catalog ", contents->uid,
                     ", and should hold ", manifest.item_count, " up to ",
                     manifest.sequence, " of ", manifest.catalog_uid));
  }
  return metadata;
}

}  // namespace attendant

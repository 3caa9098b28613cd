// Exported snapshots. An import is refused with the name of the damaged part
// and leaves nothing behind, or it is stored, exports to the same bytes, and
// restores to a catalog that answers.
//
// The first byte selects the rest: 'r', a stream, passed on in parts of the
// size given by the second byte; 'c', a stream whose checksums are recomputed
// to reach the code behind them; 'n', the same after two lines with the names
// to store it by; 'd', as 'c', after which a stored file is damaged as the
// second byte says and an export must report it.
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/catalog/live/catalog_set.h"
#include "core/catalog/query/attend.h"
#include "core/storage/files/stream_hash.h"
#include "core/storage/snapshots/snapshot_stream.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/scratch.h"

namespace attendant {
namespace {

constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kChecksumLineBytes = kHashTextBytes + 1;

CatalogSet& Catalogs() {
  static const auto catalogs = CatalogSet::Open(Scratch() / "data", {});
  Require(catalogs.ok(), "a data directory");
  return **catalogs;
}

// Recomputes the checksums of the manifest's text, of each part that it names,
// and of the whole. Returns the stream unchanged if its sizes do not determine
// where these are.
std::string WithChecksums(absl::string_view stream) {
  std::string bytes(stream);
  if (bytes.size() < kHeaderBytes + kHashTextBytes) return bytes;
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data() + 8, sizeof(size));
  const std::size_t rest = bytes.size() - kHeaderBytes - kHashTextBytes;
  if (size > rest || size < kChecksumLineBytes) return bytes;
  const std::string body =
      bytes.substr(kHeaderBytes, size - kChecksumLineBytes);
  std::string text = absl::StrCat(body, HashText(body), "\n");
  std::string parts = bytes.substr(kHeaderBytes + size, rest - size);
  auto manifest = DecodeSnapshotManifest(text);
  if (manifest.ok()) {
    std::size_t at = 0;
    for (SnapshotPart& part : manifest->parts) {
      const auto part_bytes = static_cast<std::size_t>(part.size);
      if (part_bytes > parts.size() - at) break;
      part.hash = HashText(absl::string_view(parts).substr(at, part_bytes));
      at += part_bytes;
    }
    text = EncodeSnapshotManifest(*manifest);
  }
  size = text.size();
  bytes.resize(8);
  bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
  absl::StrAppend(&bytes, text, parts);
  return absl::StrCat(bytes, HashText(bytes));
}

absl::StatusOr<SnapshotManifest> Import(absl::string_view stream,
                                        std::size_t part_size,
                                        absl::string_view catalog = "",
                                        absl::string_view name = "") {
  SnapshotImport import(&Catalogs().snapshots());
  const absl::Status named = import.Name(catalog, name);
  if (!named.ok()) return named;
  while (!stream.empty()) {
    const absl::Status status = import.Append(stream.substr(0, part_size));
    if (!status.ok()) return status;
    stream.remove_prefix(std::min(part_size, stream.size()));
  }
  LongWork work;
  return import.Finish(work);
}

void RequireDamage(const absl::Status& status) {
  // ResourceExhausted: the stream announces more space than there is.
  RequireRefusal(
      status, {absl::StatusCode::kInvalidArgument, absl::StatusCode::kDataLoss,
               absl::StatusCode::kResourceExhausted});
}

// Queries each key field.
void CheckAnswers(const LiveCatalog& catalog) {
  const auto snapshot = catalog.snapshot();
  for (const KeyFieldSchema& field : snapshot->schema->key_fields) {
    AttendQuery query;
    query.key_field = field.name;
    query.query = std::vector<float>(static_cast<std::size_t>(field.dim), 1);
    const auto answer = Attend(*snapshot, query, Interrupt());
    if (!answer.ok()) {
      RequireRefusal(answer.status(), {absl::StatusCode::kInvalidArgument});
    }
  }
}

// Returns the whole export, or why it failed.
absl::StatusOr<std::string> Export(const SnapshotId& id,
                                   std::size_t part_size) {
  auto lease = Catalogs().snapshots().Open(id);
  Require(lease.ok(), lease.status().ToString());
  SnapshotExport stream(&Catalogs().snapshots(), *std::move(lease));
  std::string bytes;
  while (true) {
    const auto part = stream.Next(part_size);
    if (!part.ok()) return part.status();
    if (part->empty()) break;
    bytes += *part;
  }
  Require(static_cast<std::int64_t>(bytes.size()) == stream.byte_count(),
          "it has the size that it said");
  return bytes;
}

// Removes, extends or changes a stored part, as the byte `how` says.
void CheckDamaged(const SnapshotManifest& manifest, std::uint8_t how) {
  const SnapshotId id = {manifest.catalog, manifest.name};
  const SnapshotPart& part = manifest.parts[how % manifest.parts.size()];
  const std::size_t kind = how / manifest.parts.size() % 3;
  {
    const auto lease = Catalogs().snapshots().Open(id);
    Require(lease.ok(), lease.status().ToString());
    const std::string path = (*lease)->path() + "/" + part.path;
    if (kind == 0) {
      std::filesystem::remove(path);
    } else if (kind == 1 || part.size == 0) {
      std::ofstream(path, std::ios::binary | std::ios::app) << 'x';
    } else {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      const int first = file.get();
      file.seekp(0);
      file.put(static_cast<char>(first ^ 1));
    }
  }
  const auto bytes = Export(id, 1000);
  Require(absl::IsDataLoss(bytes.status()) &&
              absl::StrContains(bytes.status().message(), part.path),
          "an export names what is damaged");
  Require(Catalogs().snapshots().Remove(id).ok(), "snapshots can be removed");
}

void CheckStored(const SnapshotManifest& manifest, absl::string_view stream,
                 std::size_t part_size) {
  const SnapshotId id = {manifest.catalog, manifest.name};
  LongWork work;
  {
    const auto lease = Catalogs().snapshots().Open(id);
    Require(lease.ok() && (*lease)->manifest() == manifest,
            "it says of itself what the stream said");
  }
  const auto bytes = Export(id, part_size);
  Require(bytes.ok(), bytes.status().ToString());
  const auto twice = Import(*bytes, part_size);
  Require(absl::IsAlreadyExists(twice.status()), "nothing takes its place");
  Require(stream.empty() || *bytes == stream, "it is exported as it came");
  const auto catalog = Catalogs().RestoreSnapshot(id, "restored", work);
  Require(catalog.ok(), catalog.status().ToString());
  Require((*catalog)->snapshot()->item_count() == manifest.item_count,
          "all items are there");
  CheckAnswers(**catalog);
  Require(Catalogs().Delete("restored").ok(), "catalogs can be deleted");
  Require(Catalogs().snapshots().Remove(id).ok(), "snapshots can be removed");
}

}  // namespace

void CheckInput(absl::string_view input) {
  if (input.size() < 2) return;
  const std::size_t part_size =
      1 + 64 * std::size_t{static_cast<std::uint8_t>(input[1])};
  absl::StatusOr<SnapshotManifest> manifest;
  std::string stream(input.substr(2));
  if (input[0] == 'r') {
    manifest = Import(stream, part_size);
  } else if (input[0] == 'c' || input[0] == 'd') {
    stream = WithChecksums(stream);
    manifest = Import(stream, part_size);
  } else if (input[0] == 'n') {
    const std::vector<std::string> parts =
        absl::StrSplit(stream, absl::MaxSplits('\n', 2));
    if (parts.size() < 3) return;
    stream.clear();  // which other names are not in
    manifest = Import(WithChecksums(parts[2]), part_size, parts[0], parts[1]);
  } else {
    return;
  }
  if (manifest.ok()) {
    Accept();
    if (input[0] == 'd') {
      CheckDamaged(*manifest, static_cast<std::uint8_t>(input[1]));
    } else {
      CheckStored(*manifest, stream, part_size);
    }
  } else {
    RequireDamage(manifest.status());
  }
  const auto left = Catalogs().snapshots().List("");
  Require(left.ok() && left->manifests.empty() && left->damages.empty(),
          "nothing is left");
}

}  // namespace attendant

#include "core/storage/snapshots/snapshot_manifest.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/ids.h"
#include "core/base/status.h"
#include "core/storage/files/stream_hash.h"
#include "core/storage/records/catalog_record_codec.h"
#include "core/storage/records/item.h"
#include "core/storage/records/json_members.h"

namespace attendant {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kManifestVersion = 1;
constexpr std::size_t kChecksumLineBytes = kHashTextBytes + 1;

absl::Status DamagedManifest(absl::string_view what) {
  return absl::DataLossError(absl::StrCat(kSnapshotManifest, ": ", what));
}

// True for names such as RocksDB's: 000012.sst, CURRENT, OPTIONS-000007.
bool IsFileName(absl::string_view name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.' &&
         std::ranges::all_of(name, [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
         });
}

bool IsPartPath(absl::string_view path) {
  if (path == kSnapshotRecord) return true;
  const std::vector<absl::string_view> names = absl::StrSplit(path, '/');
  if (names.size() == 2 && names[0] == kSnapshotDatabase) {
    return IsFileName(names[1]);
  }
  std::int64_t version = 0;
  return names.size() == 3 && names[0] == kSnapshotModels &&
         ValidateCatalogName(names[1]).ok() &&
         absl::SimpleAtoi(names[2], &version) && version >= 1 &&
         absl::StrCat(version) == names[2];
}

bool IsHash(absl::string_view hash) {
  return hash.size() == kHashTextBytes && IsLowerHex(hash);
}

absl::Status CheckParts(const SnapshotManifest& manifest) {
  const auto part_count = static_cast<std::int64_t>(manifest.parts.size());
  if (part_count > kMaxSnapshotParts) {
    return DamagedManifest(absl::StrCat("parts: got ", part_count,
                                        ", want at most ", kMaxSnapshotParts));
  }
  std::set<absl::string_view> paths;
  std::int64_t left = std::numeric_limits<std::int64_t>::max();
  for (const SnapshotPart& part : manifest.parts) {
    if (!IsPartPath(part.path)) return DamagedManifest("the path of a part");
    if (!paths.insert(part.path).second) {
      return DamagedManifest(absl::StrCat(part.path, " stands there twice"));
    }
    if (part.size < 0 || part.size > left || !IsHash(part.hash)) {
      return DamagedManifest(absl::StrCat("size or checksum of ", part.path));
    }
    left -= part.size;
  }
  if (!paths.contains(kSnapshotRecord)) {
    return DamagedManifest("there is no record");
  }
  return absl::OkStatus();
}

absl::Status Validate(const SnapshotManifest& manifest) {
  if (!ValidateCatalogName(manifest.catalog).ok()) {
    return DamagedManifest("the name of the catalog");
  }
  if (!ValidateCatalogName(manifest.name).ok()) {
    return DamagedManifest("the name");
  }
  if (!IsCatalogUid(manifest.catalog_uid)) {
    return DamagedManifest("the uid of the catalog");
  }
  if (manifest.sequence < 0 || manifest.item_count < 0) {
    return DamagedManifest("a count below 0");
  }
  return CheckParts(manifest);
}

}  // namespace

std::string SnapshotModelPath(const ModelName& name) {
  return absl::StrCat(kSnapshotModels, "/", name.name, "/", name.version);
}

std::int64_t SnapshotManifest::byte_count() const {
  std::int64_t bytes = 0;
  for (const SnapshotPart& part : parts) bytes += part.size;
  return bytes;
}

std::string EncodeSnapshotManifest(const SnapshotManifest& manifest) {
  Json parts = Json::array();
  for (const SnapshotPart& part : manifest.parts) {
    parts.push_back(
        {{"path", part.path}, {"size", part.size}, {"xxh3_128", part.hash}});
  }
  const Json json = {
      {"version", kManifestVersion},
      {"catalog", manifest.catalog},
      {"name", manifest.name},
      {"catalog_uid", manifest.catalog_uid},
      {"create_time_ns", absl::ToUnixNanos(manifest.create_time)},
      {"sequence", manifest.sequence},
      {"item_count", manifest.item_count},
      {"parts", std::move(parts)},
  };
  const std::string text =
      json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return absl::StrCat(text, HashText(text), "\n");
}

absl::StatusOr<SnapshotManifest> DecodeSnapshotManifest(
    absl::string_view text) {
  if (text.size() < kChecksumLineBytes) {
    return DamagedManifest("it is too short");
  }
  const absl::string_view body =
      text.substr(0, text.size() - kChecksumLineBytes);
  if (text.substr(body.size()) != HashText(body) + "\n") {
    return DamagedManifest("its checksum does not match");
  }
  const Json json = Json::parse(body.begin(), body.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (json.is_discarded()) return DamagedManifest("not JSON");
  JsonMembers members(json);
  const std::int64_t version = members.Integer("version");
  if (members.ok() && version != kManifestVersion) {
    return DamagedManifest(
        absl::StrCat("version ", version, ", want ", kManifestVersion));
  }
  SnapshotManifest manifest;
  manifest.catalog = members.String("catalog");
  manifest.name = members.String("name");
  manifest.catalog_uid = members.String("catalog_uid");
  manifest.create_time = absl::FromUnixNanos(members.Integer("create_time_ns"));
  manifest.sequence = members.Integer("sequence");
  manifest.item_count = members.Integer("item_count");
  bool ok = true;
  for (const Json& element : members.Array("parts")) {
    JsonMembers part(element);
    manifest.parts.push_back(
        {part.String("path"), part.Integer("size"), part.String("xxh3_128")});
    ok = ok && part.ok();
  }
  if (!ok || !members.ok()) {
    return DamagedManifest("a member is missing or of another type");
  }
  ATTENDANT_RETURN_IF_ERROR(Validate(manifest));
  return manifest;
}

}  // namespace attendant

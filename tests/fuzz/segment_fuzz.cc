// A catalog's segment files, behind their checksums: they are refused as
// damaged, or give segments that can be scanned. The input is packed files; the
// manifest without its checksum has an empty name, and one with any checksum is
// named "MANIFEST".
#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "core/base/fail_point.h"
#include "core/catalog/segments/segment_files.h"
#include "core/storage/files/segment_directory.h"
#include "core/storage/files/unlinked_files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/packed_files.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/segment_files.h"

namespace attendant {
namespace {

Snapshot Empty() {
  const CatalogRecord record = SegmentRecord();
  const std::size_t count = record.schema.key_fields.size();
  Snapshot snapshot;
  snapshot.catalog_uid = record.uid;
  snapshot.schema = std::make_shared<const CatalogSchema>(record.schema);
  snapshot.encoders.resize(count);
  snapshot.models.resize(count);
  snapshot.wanted_indexes.assign(count, IndexKind::kIvf);
  return snapshot;
}

bool IsFileName(const std::string& name) {
  return !name.empty() && name.size() < 32 &&
         std::ranges::all_of(name, [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
         });
}

// Scans all keys, the keys in the nearest lists, and all codes.
void CheckScans(const Snapshot& snapshot, std::size_t segment,
                std::size_t field) {
  const SegmentView& view = snapshot.segments[segment];
  const KeyIndex& index = *view.segment->indexes[field];
  const std::vector<float> vector(static_cast<std::size_t>(index.dim()), 0.5F);
  for (const bool exhaustive : {true, false}) {
    for (const double mass_precision : {0.0, 0.1}) {
      ScanQuery query;
      query.query = vector;
      query.score_kind = snapshot.schema->key_fields[field].score_kind;
      query.segment = static_cast<std::int32_t>(segment);
      query.row_end = view.row_end;
      query.excluded = view.dead.get();
      query.exhaustive = exhaustive;
      query.goals.mass_precision = mass_precision;
      query.values = view.segment->rows.get();
      const std::int64_t value_dim = snapshot.schema->value_dim;
      AttentionState state(5, &snapshot,
                           index.dim() == value_dim ? value_dim : 0);
      const auto stats = index.Scan(query, state);
      if (stats.ok()) continue;
      RequireRefusal(stats.status(), {absl::StatusCode::kInvalidArgument});
    }
  }
}

// Reads every key of every row, and scans each index.
void CheckSegments(const Snapshot& snapshot) {
  for (std::size_t s = 0; s < snapshot.segments.size(); ++s) {
    const SegmentView& view = snapshot.segments[s];
    for (RowIndex row = 0; row < view.row_end; ++row) {
      view.segment->rows->Id(row);
      view.segment->rows->AttributesOf(row);
      view.segment->rows->ValueOf(row);
      for (const auto& index : view.segment->indexes) {
        const auto key = index->Key(row);
        Require(key.empty() ||
                    static_cast<std::int64_t>(key.size()) == index->dim(),
                "keys have their dimension");
      }
    }
    for (std::size_t f = 0; f < view.segment->indexes.size(); ++f) {
      CheckScans(snapshot, s, f);
    }
  }
}

}  // namespace

void CheckInput(absl::string_view input) {
  static const absl::Status armed = ArmFailPoint("skip_segment_checksum=bug");
  Require(armed.ok(), "fail points are compiled in");
  static const SegmentDirectory directory(Scratch() / "segments", Files());
  static UnlinkedFiles scratch_files(Scratch() / "nameless");
  Snapshot snapshot = Empty();
  const auto files = Unpack(input);
  if (!files.has_value()) return;
  std::filesystem::remove_all(Scratch() / "segments");
  std::filesystem::create_directories(Scratch() / "segments");
  for (const auto& [name, bytes] : *files) {
    if (name.empty()) {
      Require(directory.PutManifest(bytes).ok(), "the manifest is written");
    } else if (IsFileName(name) || name == "MANIFEST") {
      WriteScratch("segments/" + name, bytes);
    }
  }
  SegmentFiles segment_files(&directory, &scratch_files);
  auto loaded = segment_files.Load(snapshot);
  if (!loaded.ok()) {
    RequireRefusal(loaded.status(), {absl::StatusCode::kDataLoss});
    return;
  }
  // There is no value if the files are of another schema.
  if (!loaded->has_value()) return;
  Accept();
  snapshot.segments = std::move((*loaded)->segments);
  CheckSegments(snapshot);
  Require(segment_files.Clear().ok(), "the files can be removed");
  const auto none = segment_files.Load(snapshot);
  Require(none.ok() && !none->has_value(), "nothing is left of them");
}

}  // namespace attendant

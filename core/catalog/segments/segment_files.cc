#include "core/catalog/segments/segment_files.h"

#include <xxhash.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/byte_reader.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"
#include "core/catalog/segments/dead_rows.h"
#include "core/catalog/segments/head_keys.h"
#include "core/shortlist/kinds/index_file.h"
#include "core/storage/records/item_codec.h"

namespace attendant {
namespace {

// Incremented when the file layout or the content of learned data changes;
// files of other versions are rebuilt.
constexpr std::uint32_t kVersion = 7;
// The size of encoded rows per block.
constexpr std::size_t kRowBlockBytes = std::size_t{1} << 20;
// The maximum number, since a manifest is read as a whole.
constexpr std::uint64_t kMaxFiles = 10000;

// Collects the bytes of a manifest, which is built and read in memory.
class StringSink : public ByteSink {
 public:
  std::string Take() { return std::move(bytes_); }

 private:
  absl::Status Append(std::span<const std::byte> bytes) override {
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return absl::OkStatus();
  }

  std::string bytes_;
};

class StringSource : public ByteSource {
 public:
  explicit StringSource(absl::string_view bytes) : bytes_(bytes) {}
  std::uint64_t left() const override { return bytes_.size(); }

 private:
  absl::Status Read(std::span<std::byte> bytes) override {
    std::copy_n(bytes_.data(), bytes.size(),
                reinterpret_cast<char*>(bytes.data()));
    bytes_.remove_prefix(bytes.size());
    return absl::OkStatus();
  }

  absl::string_view bytes_;
};

// True if Save could have chosen the name, which rules out files outside of the
// directory.
bool IsFileName(absl::string_view name) {
  return (absl::StartsWith(name, "training-") ||
          absl::StartsWith(name, "segment-")) &&
         !absl::StrContains(name, '/');
}

// Returns a fingerprint of everything that determines the content of segments
// whose rows have only the first `attribute_count` attributes; files with
// another one are useless. Does not depend on where keys are kept, since the
// files always contain them.
std::uint64_t FingerprintOf(const Snapshot& snapshot,
                            std::size_t attribute_count) {
  StringSink sink;
  sink.Put(kVersion);
  sink.PutText(snapshot.catalog_uid);
  const CatalogSchema& schema = *snapshot.schema;
  for (std::size_t f = 0; f < schema.key_fields.size(); ++f) {
    const KeyFieldSchema& field = schema.key_fields[f];
    sink.PutText(field.name);
    sink.Put(field.dim);
    sink.Put(field.score_kind);
    // A model that projects only queries does not affect what is stored.
    const NamedModel& model = snapshot.models[f];
    const ModelName name =
        StoredHeadCount(model.model.get()) > 0 ? model.name : ModelName();
    sink.PutText(name.name);
    sink.Put(name.version);
  }
  sink.Put(schema.value_dim);
  for (std::size_t a = 0; a < attribute_count; ++a) {
    sink.PutText(schema.attributes[a].name);
    sink.Put(schema.attributes[a].type);
  }
  const std::string bytes = sink.Take();
  return XXH3_64bits(bytes.data(), bytes.size());
}

// True for the fingerprint of the snapshot, now or before its last attributes
// were added.
bool IsFingerprintOf(const Snapshot& snapshot, std::uint64_t fingerprint) {
  for (std::size_t count = snapshot.schema->attributes.size() + 1; count > 0;) {
    if (FingerprintOf(snapshot, --count) == fingerprint) return true;
  }
  return false;
}

// True for a segment that has a file or should have one, that is, has an index
// that took time to build.
bool IsTrained(const Segment& segment) {
  bool trained = false;
  ForEachIndex(segment, [&](const KeyIndex& index) {
    trained |= index.kind() != IndexKind::kFlat;
  });
  return trained;
}

// Writes rows. A row consists of its id's size (1 byte) and bytes; a byte, 1 if
// a value follows; the value; attributes; the opaque value's size (u32) and
// bytes.
void SaveRows(const RowTable& rows, RowIndex row_end, ByteSink& sink) {
  std::string block;
  for (RowIndex row = 0; row < row_end; ++row) {
    const absl::string_view id = rows.Id(row);
    block.push_back(static_cast<char>(id.size()));
    block.append(id.data(), id.size());
    const float* value = rows.ValueOf(row);
    block.push_back(value == nullptr ? 0 : 1);
    if (value != nullptr) {
      block.append(reinterpret_cast<const char*>(value),
                   static_cast<std::size_t>(rows.value_dim()) * sizeof(float));
    }
    AppendAttributes(rows.AttributesOf(row), block);
    const auto& opaque_value = rows.OpaqueValueOf(row);
    const auto size = static_cast<std::uint32_t>(
        opaque_value == nullptr ? 0 : opaque_value->size());
    AppendNumber(size, block);
    if (size > 0) block.append(*opaque_value);
    if (block.size() >= kRowBlockBytes || row + 1 == row_end) {
      sink.PutText(block);
      block.clear();
    }
  }
}

bool LoadRow(const CatalogSchema& schema, ByteReader& reader, RowTable& rows) {
  std::uint8_t id_size;
  std::string id;
  std::uint8_t has_value;
  std::vector<float> value;
  Attributes attributes;
  std::uint32_t opaque_size;
  std::string opaque_value;
  if (!reader.Read(id_size) || id_size < 1 || id_size > kMaxItemIdBytes ||
      !reader.ReadText(id_size, id) || !reader.Read(has_value) ||
      has_value > 1 ||
      !reader.ReadFloats(
          has_value * static_cast<std::uint64_t>(schema.value_dim), value) ||
      !ReadAttributes(schema, reader, attributes) ||
      !reader.Read(opaque_size) ||
      !reader.ReadText(opaque_size, opaque_value)) {
    return false;
  }
  rows.Append(id, value, attributes,
              opaque_value.empty() ? nullptr
                                   : std::make_shared<const std::string>(
                                         std::move(opaque_value)));
  return true;
}

absl::StatusOr<std::shared_ptr<const RowTable>> LoadRows(
    const CatalogSchema& schema, std::int64_t row_count, ByteSource& source) {
  auto rows = std::make_shared<RowTable>(schema.value_dim, row_count);
  while (rows->row_count() < row_count) {
    const std::string block = source.GetText();
    ATTENDANT_RETURN_IF_ERROR(source.status());
    ByteReader reader(block);
    while (reader.left() > 0 && rows->row_count() < row_count) {
      if (!LoadRow(schema, reader, *rows)) {
        return absl::DataLossError("its rows are damaged");
      }
    }
    if (block.empty() || reader.left() > 0) {
      return absl::DataLossError("it has another number of rows");
    }
  }
  return rows;
}

absl::StatusOr<std::shared_ptr<const Segment>> LoadSegment(
    const Snapshot& empty, std::int64_t row_count,
    std::span<const std::shared_ptr<const IvfTraining>> trainings,
    ScratchFiles* key_files, ByteSource& source) {
  auto segment = std::make_shared<Segment>();
  ATTENDANT_ASSIGN_OR_RETURN(segment->rows,
                             LoadRows(*empty.schema, row_count, source));
  for (std::size_t f = 0; f < empty.schema->key_fields.size(); ++f) {
    const KeyFieldSchema& field = empty.schema->key_fields[f];
    ScratchFiles* const files = field.keys_on_disk ? key_files : nullptr;
    const int head_count = StoredHeadCount(empty.models[f].model.get());
    auto& heads = segment->head_indexes.emplace_back();
    for (int h = -1; h < head_count; ++h) {
      ATTENDANT_ASSIGN_OR_RETURN(
          std::shared_ptr<const KeyIndex> index,
          LoadIndex(source, row_count, trainings, files));
      const std::int64_t dim =
          h < 0 ? field.dim
                : HeadProjection(*empty.models[f].model, h).weight.row_count;
      if (index->dim() != dim) {
        return absl::DataLossError("its keys have another dimension");
      }
      if (h < 0) {
        segment->indexes.push_back(std::move(index));
      } else {
        heads.push_back(std::move(index));
      }
    }
  }
  if (source.left() > 0) return absl::DataLossError("it goes on after its end");
  return segment;
}

// Returns a view of the segment in which the dead rows are `words`.
absl::StatusOr<SegmentView> ViewOf(std::shared_ptr<const Segment> segment,
                                   std::int64_t row_count,
                                   std::span<const std::uint64_t> words) {
  SegmentView view;
  view.segment = std::move(segment);
  view.row_end = static_cast<RowIndex>(row_count);
  if (!words.empty()) {
    auto dead = std::make_shared<Bitmap>(view.segment->rows->capacity());
    if (dead->words().size() != words.size()) {
      return absl::DataLossError("dead rows of another number of rows");
    }
    std::copy(words.begin(), words.end(), dead->words().begin());
    SetDead(view, std::move(dead));
  }
  const auto& indexes = view.segment->indexes;
  view.live_key_counts.resize(indexes.size());
  for (RowIndex row = 0; row < view.row_end; ++row) {
    if (!view.IsLive(row)) continue;
    ++view.live_count;
    for (std::size_t f = 0; f < indexes.size(); ++f) {
      view.live_key_counts[f] += indexes[f]->Key(row).empty() ? 0 : 1;
    }
  }
  return view;
}

void PutFile(const std::string& name, const FileStamp& stamp, ByteSink& sink) {
  sink.PutText(name);
  sink.Put(stamp.size);
  sink.PutText(stamp.hash);
}

}  // namespace

absl::StatusOr<std::optional<SegmentFiles::Loaded>> SegmentFiles::Load(
    const Snapshot& empty, KeyPlace key_place) {
  if (directory_ == nullptr) return std::nullopt;
  has_manifest_ = true;  // until it is known
  knows_files_ = false;
  segment_bytes_ = 0;
  named_.clear();
  training_files_.clear();
  segment_files_.clear();
  // Unreadable files stay until another manifest is written. New files get
  // other numbers, so they never replace them.
  last_number_ = directory_->LastNumber();
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> manifest,
                             directory_->GetManifest());
  has_manifest_ = manifest.has_value();
  std::optional<Loaded> loaded;
  if (has_manifest_) {
    ATTENDANT_ASSIGN_OR_RETURN(
        loaded,
        Read(*manifest, empty,
             key_place == KeyPlace::kMemory ? nullptr : scratch_files_));
  }
  knows_files_ = true;
  return loaded;
}

absl::StatusOr<std::optional<SegmentFiles::Loaded>> SegmentFiles::Read(
    absl::string_view manifest, const Snapshot& empty,
    ScratchFiles* key_files) {
  StringSource source(manifest);
  if (!IsFingerprintOf(empty, source.Get<std::uint64_t>())) return std::nullopt;
  Loaded loaded;
  loaded.sequence = source.Get<std::int64_t>();
  last_number_ = std::max(last_number_, source.Get<std::int64_t>());
  const auto get_file = [&source] {
    File file;
    file.name = source.GetText();
    if (!IsFileName(file.name)) {
      source.Fail(absl::DataLossError("the name of a file"));
    }
    file.stamp.size = source.Get<std::uint64_t>();
    file.stamp.hash = source.GetText();
    return file;
  };
  std::vector<std::shared_ptr<const IvfTraining>> trainings;
  const auto training_count = std::min(kMaxFiles, source.Get<std::uint64_t>());
  for (std::uint64_t i = 0; i < training_count; ++i) {
    File file = get_file();
    ATTENDANT_RETURN_IF_ERROR(source.status());
    ATTENDANT_ASSIGN_OR_RETURN(const auto bytes,
                               directory_->Open(file.name, file.stamp));
    auto training = LoadTraining(*bytes);
    ATTENDANT_RETURN_IF_ERROR(bytes->Verify());
    ATTENDANT_ASSIGN_OR_RETURN(trainings.emplace_back(), std::move(training));
    named_.insert(file.name);
    training_files_.push_back({std::move(file), IdOf(*trainings.back()),
                               LearnedCountOf(*trainings.back())});
  }
  struct NamedSegment {
    File file;
    std::int64_t row_count = 0;
    std::vector<std::uint64_t> dead;
  };
  std::vector<NamedSegment> named_segments;
  const auto segment_count = std::min(kMaxFiles, source.Get<std::uint64_t>());
  for (std::uint64_t i = 0; i < segment_count; ++i) {
    NamedSegment& named = named_segments.emplace_back();
    named.file = get_file();
    named.row_count = source.Get<std::int64_t>();
    named.dead = source.GetArray<std::vector<std::uint64_t>>();
    ATTENDANT_RETURN_IF_ERROR(source.status());
    segment_bytes_ += static_cast<std::int64_t>(named.file.stamp.size);
  }
  if (source.left() > 0) return absl::DataLossError("the manifest goes on");
  for (auto& [file, row_count, dead] : named_segments) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto bytes,
                               directory_->Open(file.name, file.stamp));
    // Memory is allocated for row_count rows, and each takes at least one byte
    // of the file.
    if (row_count < 1 ||
        static_cast<std::uint64_t>(row_count) > bytes->left()) {
      return absl::DataLossError(
          absl::StrCat(file.name, ": it can't have ", row_count, " rows"));
    }
    auto segment = LoadSegment(empty, row_count, trainings, key_files, *bytes);
    // Checked before the other errors, which a damaged file would explain.
    ATTENDANT_RETURN_IF_ERROR(bytes->Verify());
    if (!segment.ok()) {
      return PrefixField(segment.status(), absl::StrCat(file.name, ": "));
    }
    named_.insert(file.name);
    segment_files_.push_back({std::move(file), *segment});
    ATTENDANT_ASSIGN_OR_RETURN(loaded.segments.emplace_back(),
                               ViewOf(*std::move(segment), row_count, dead));
  }
  return loaded;
}

std::optional<std::int64_t> SegmentFiles::Covered(const Snapshot& snapshot) {
  std::int64_t covered = snapshot.sequence;
  bool any = false;
  for (const SegmentView& view : snapshot.segments) {
    if (IsTrained(*view.segment)) {
      any = true;
    } else if (view.segment->first_sequence == 0) {
      return std::nullopt;
    } else {
      covered = std::min(covered, view.segment->first_sequence - 1);
    }
  }
  if (!any) return std::nullopt;
  return covered;
}

bool SegmentFiles::AnyTrained(const Snapshot& snapshot) {
  return std::ranges::any_of(snapshot.segments, [](const SegmentView& view) {
    return IsTrained(*view.segment);
  });
}

const SegmentFiles::SegmentFile* SegmentFiles::FileOf(
    const std::shared_ptr<const Segment>& segment) const {
  const auto found = std::ranges::find_if(
      segment_files_,
      [&](const SegmentFile& file) { return file.segment.lock() == segment; });
  return found == segment_files_.end() ? nullptr : &*found;
}

absl::Status SegmentFiles::SaveTrainings(const Segment& segment,
                                         const std::atomic<bool>& cancelled) {
  absl::Status status;
  ForEachIndex(segment, [&](const KeyIndex& index) {
    const auto training = SavedTrainingOf(index);
    if (training == nullptr || !status.ok()) return;
    const std::uint64_t id = IdOf(*training);
    const std::int64_t learned_count = LearnedCountOf(*training);
    const auto before = std::ranges::find_if(
        training_files_,
        [id](const TrainingFile& file) { return file.id == id; });
    const bool has_file = before != training_files_.end();
    if (has_file && before->learned_count == learned_count) return;
    File file;
    file.name = absl::StrCat("training-", ++last_number_);
    auto sink = directory_->Create(file.name, 0, &cancelled);
    status = sink.status();
    if (!status.ok()) return;
    SaveTraining(*training, **sink);
    const auto stamp = (*sink)->Commit();
    status = stamp.status();
    if (!status.ok()) return;
    file.stamp = *stamp;
    if (has_file) training_files_.erase(before);
    training_files_.push_back({std::move(file), id, learned_count});
  });
  return status;
}

absl::StatusOr<SegmentFiles::File> SegmentFiles::SaveSegment(
    const SegmentView& view, const std::atomic<bool>& cancelled) {
  const Segment& segment = *view.segment;
  std::int64_t byte_count = segment.rows->memory_bytes();
  ForEachIndex(segment, [&](const KeyIndex& index) {
    byte_count += index.memory_bytes() + index.disk_bytes();
  });
  File file;
  file.name = absl::StrCat("segment-", ++last_number_);
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto sink,
      directory_->Create(file.name, static_cast<std::uint64_t>(byte_count),
                         &cancelled));
  SaveRows(*segment.rows, view.row_end, *sink);
  ForEachIndex(segment, [&](const KeyIndex& index) {
    SaveIndex(index, view.row_end, *sink);
  });
  ATTENDANT_ASSIGN_OR_RETURN(file.stamp, sink->Commit());
  return file;
}

void SegmentFiles::RemoveUnwanted() {
  if (!knows_files_) return;
  std::erase_if(segment_files_, [&](const SegmentFile& file) {
    return file.segment.expired() && named_.count(file.file.name) == 0;
  });
  std::set<std::string> kept = named_;
  for (const SegmentFile& file : segment_files_) kept.insert(file.file.name);
  for (const TrainingFile& file : training_files_) kept.insert(file.file.name);
  directory_->RemoveOthers(kept);
}

absl::Status SegmentFiles::Save(const Snapshot& snapshot, std::int64_t sequence,
                                const std::atomic<bool>& cancelled) {
  if (directory_ == nullptr) return absl::OkStatus();
  RemoveUnwanted();
  std::set<std::string> named;
  std::set<std::uint64_t> training_ids;
  StringSink segments;
  std::uint64_t segment_count = 0;
  for (const SegmentView& view : snapshot.segments) {
    if (!IsTrained(*view.segment)) continue;
    ATTENDANT_RETURN_IF_ERROR(SaveTrainings(*view.segment, cancelled));
    if (FileOf(view.segment) == nullptr) {
      ATTENDANT_ASSIGN_OR_RETURN(File file, SaveSegment(view, cancelled));
      segment_files_.push_back({std::move(file), view.segment});
      ATTENDANT_FAIL_POINT_OR_RETURN("segments.between_files");
    }
    const File& file = FileOf(view.segment)->file;
    named.insert(file.name);
    ForEachIndex(*view.segment, [&](const KeyIndex& index) {
      if (const auto training = SavedTrainingOf(index)) {
        training_ids.insert(IdOf(*training));
      }
    });
    PutFile(file.name, file.stamp, segments);
    segments.Put(std::int64_t{view.row_end});
    segments.PutArray(view.dead == nullptr
                          ? std::span<const std::uint64_t>()
                          : std::span<const std::uint64_t>(view.dead->words()));
    ++segment_count;
  }
  std::erase_if(training_files_, [&](const TrainingFile& file) {
    return training_ids.count(file.id) == 0;
  });
  StringSink manifest;
  manifest.Put(FingerprintOf(snapshot, snapshot.schema->attributes.size()));
  manifest.Put(sequence);
  manifest.Put(last_number_);
  manifest.Put(static_cast<std::uint64_t>(training_files_.size()));
  for (const TrainingFile& training : training_files_) {
    PutFile(training.file.name, training.file.stamp, manifest);
    named.insert(training.file.name);
  }
  manifest.Put(segment_count);
  ATTENDANT_FAIL_POINT_OR_RETURN("segments.before_manifest");
  const absl::Status status =
      directory_->PutManifest(manifest.Take() + segments.Take());
  has_manifest_ = true;
  if (!status.ok()) {
    // The manifest may have been written all the same, and the previous one may
    // be back after a power failure.
    named_.merge(named);
    return status;
  }
  knows_files_ = true;
  ATTENDANT_FAIL_POINT("segments.after_manifest");
  std::erase_if(segment_files_, [&](const SegmentFile& file) {
    return named.count(file.file.name) == 0;
  });
  directory_->RemoveOthers(named);
  named_ = std::move(named);
  return absl::OkStatus();
}

absl::Status SegmentFiles::Clear() {
  segment_files_.clear();
  training_files_.clear();
  named_.clear();
  if (directory_ == nullptr || !has_manifest_) return absl::OkStatus();
  knows_files_ = false;  // files may remain after an error
  ATTENDANT_RETURN_IF_ERROR(directory_->Clear());
  has_manifest_ = false;
  knows_files_ = true;
  return absl::OkStatus();
}

}  // namespace attendant

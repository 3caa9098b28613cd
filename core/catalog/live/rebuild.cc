#include "core/catalog/live/rebuild.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "core/attention/models/model.h"
#include "core/base/aligned_buffer.h"
#include "core/base/fail_point.h"
#include "core/base/spare_time.h"
#include "core/base/status.h"
#include "core/catalog/segments/dead_rows.h"
#include "core/catalog/segments/head_keys.h"
#include "core/shortlist/builds/guard_build.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/kinds/flat_index.h"
#include "core/shortlist/kinds/hnsw_index.h"
#include "core/shortlist/kinds/lsh_index.h"
#include "core/shortlist/kinds/pq_index.h"

namespace attendant {
namespace {

using Keys = std::vector<std::span<const float>>;

bool HasKeys(const Keys& keys) {
  return std::ranges::any_of(
      keys, [](const std::span<const float> key) { return !key.empty(); });
}

// The input of a merge.
struct Merge {
  const Snapshot& snapshot;
  const MergePlan& plan;
  const std::vector<NamedModel>& models;
  ScratchFiles& scratch_files;
  const std::atomic<bool>& cancelled;
  std::vector<RowAddress> addresses;  // of the merged rows, in order

  // Returns the index of a field and head (-1: of the field's own keys) in a
  // segment.
  const KeyIndex& IndexOf(std::size_t segment, int field, int head) const {
    return snapshot.segments[segment].segment->IndexOf(field, head);
  }
};

// The lists that the keys of a field and head are assigned to.
struct Lists {
  std::shared_ptr<const IvfTraining> training;  // null: to be trained
  std::vector<std::int32_t> known;              // by merged row; -1: unknown
  std::uint64_t seed = 0;                       // of the training
};

// Returns a seed of its own for each field and head (-1: the keys), whose keys
// may be the same.
std::uint64_t SeedOf(int field, int head) {
  return IvfOptions().seed +
         static_cast<std::uint64_t>(field * (kMaxHeadCount + 1) + head + 1);
}

Lists ListsOf(const Merge& merge, int field, int head) {
  Lists lists = {.training = nullptr, .known = {}, .seed = SeedOf(field, head)};
  if (merge.plan.retrains) return lists;
  lists.training = merge.snapshot.TrainingOf(field, head);
  if (lists.training == nullptr) return lists;
  lists.known.reserve(merge.addresses.size());
  for (const RowAddress& address : merge.addresses) {
    const KeyIndex& index =
        merge.IndexOf(static_cast<std::size_t>(address.segment), field, head);
    const bool known = index.training() == lists.training;
    lists.known.push_back(known ? index.ListOf(address.row) : -1);
  }
  return lists;
}

// If `files` is null, floats are in memory.
absl::StatusOr<std::shared_ptr<const KeyIndex>> BuildIndex(
    const Keys& keys, std::int64_t dim, ScoreKind score_kind, IndexKind kind,
    Lists lists, ScratchFiles* files, const std::atomic<bool>& cancelled,
    const RowTable* values = nullptr) {
  switch (HasKeys(keys) ? kind : IndexKind::kFlat) {
    case IndexKind::kIvf: {
      IvfOptions options;
      options.seed = lists.seed;
      options.training = std::move(lists.training);
      options.known_lists = lists.known;
      options.key_files = files;
      options.cancelled = &cancelled;
      if (values != nullptr && values->value_count() > 0) {
        options.values = values;
        options.value_dim = values->value_dim();
      }
      return IvfIndex::Build(keys, dim, score_kind, options);
    }
    case IndexKind::kHnsw: {
      HnswOptions options;
      options.cancelled = &cancelled;
      return HnswIndex::Build(keys, dim, score_kind, options);
    }
    case IndexKind::kLsh: {
      LshOptions options;
      options.cancelled = &cancelled;
      return LshIndex::Build(keys, dim, score_kind, options);
    }
    case IndexKind::kPq: {
      PqOptions options;
      options.key_files = files;
      options.cancelled = &cancelled;
      return PqIndex::Build(keys, dim, score_kind, options);
    }
    case IndexKind::kAuto:
    case IndexKind::kFlat:
      break;
  }
  auto flat = std::make_shared<FlatIndex>(
      dim, std::max<std::int64_t>(1, static_cast<std::int64_t>(keys.size())));
  for (const std::span<const float> key : keys) flat->Append(key);
  return flat;
}

// OK if the disk has room for all floats that go there. Checked before rows are
// copied and minutes are spent on training.
absl::Status CheckRoom(const Merge& merge) {
  std::int64_t float_count = 0;
  for (std::size_t f = 0; f < merge.models.size(); ++f) {
    const KeyFieldSchema& field = merge.snapshot.schema->key_fields[f];
    if (!field.keys_on_disk) continue;
    const AttentionModel* model = merge.models[f].model.get();
    const IndexKind wanted = merge.snapshot.wanted_indexes[f];
    std::int64_t dims = 0;
    if (MayKeepKeysOnDisk(KeyIndexKind(model, wanted))) dims += field.dim;
    if (MayKeepKeysOnDisk(HeadIndexKind(model, wanted))) {
      dims += StoredDim(model);
    }
    for (std::size_t i = merge.plan.first; i < merge.plan.end; ++i) {
      float_count += dims * merge.snapshot.segments[i].live_key_counts[f];
    }
  }
  if (float_count == 0) return absl::OkStatus();
  return merge.scratch_files.CheckRoom(float_count *
                                       std::int64_t{sizeof(float)});
}

// Returns the keys that a projection computes, stored in `projected`.
Keys ProjectKeys(const Keys& keys, const KeyProjection& projection,
                 AlignedBuffer<float>& projected) {
  const auto dim = static_cast<std::size_t>(projection.weight.row_count);
  projected = AlignedBuffer<float>(keys.size() * dim);
  Keys made(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].empty()) continue;
    MakeWay();
    float* key = projected.data() + i * dim;
    ProjectRows(projection.weight, projection.bias,
                {keys[i].data(), 1, projection.weight.dim}, key);
    made[i] = {key, dim};
  }
  return made;
}

// Builds the head indexes of one field of the merged segment.
absl::StatusOr<std::vector<std::shared_ptr<const KeyIndex>>> BuildHeadIndexes(
    const Merge& merge, int field, const Keys& keys, ScratchFiles* files) {
  const Snapshot& snapshot = merge.snapshot;
  const AttentionModel* model = merge.models[field].model.get();
  std::vector<std::shared_ptr<const KeyIndex>> indexes;
  const IndexKind kind = HeadIndexKind(model, snapshot.wanted_indexes[field]);
  for (int h = 0; h < StoredHeadCount(model); ++h) {
    if (merge.cancelled) return BuildCancelled();
    const KeyProjection projection = HeadProjection(*model, h);
    AlignedBuffer<float> projected;
    Keys head_keys;
    Lists lists = {.training = nullptr, .known = {}, .seed = SeedOf(field, h)};
    if (snapshot.models[field].model.get() == model) {
      lists = ListsOf(merge, field, h);
      head_keys.reserve(merge.addresses.size());
      for (const RowAddress& address : merge.addresses) {
        head_keys.push_back(
            merge.IndexOf(static_cast<std::size_t>(address.segment), field, h)
                .Key(address.row));
      }
    } else {
      head_keys = ProjectKeys(keys, projection, projected);
    }
    ATTENDANT_ASSIGN_OR_RETURN(
        std::shared_ptr<const KeyIndex> index,
        BuildIndex(head_keys, projection.weight.row_count,
                   snapshot.schema->key_fields[field].score_kind, kind,
                   std::move(lists), files, merge.cancelled));
    indexes.push_back(std::move(index));
  }
  return indexes;
}

std::int64_t FirstSequence(const Merge& merge) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = merge.plan.first; i < merge.plan.end; ++i) {
    first = std::min(first, merge.snapshot.segments[i].segment->first_sequence);
  }
  return first;
}

std::shared_ptr<const RowTable> MergeRows(const Merge& merge) {
  const std::int64_t value_dim = merge.snapshot.schema->value_dim;
  auto rows = std::make_shared<RowTable>(
      value_dim, static_cast<std::int64_t>(merge.addresses.size()));
  for (const RowAddress& address : merge.addresses) {
    MakeWayAt(rows->row_count());
    const RowTable& from =
        *merge.snapshot.segments[address.segment].segment->rows;
    const float* value = from.ValueOf(address.row);
    rows->Append(from.Id(address.row),
                 value == nullptr ? std::span<const float>()
                                  : std::span<const float>(value, value_dim),
                 from.AttributesOf(address.row),
                 from.OpaqueValueOf(address.row));
  }
  return rows;
}

absl::StatusOr<std::shared_ptr<const Segment>> Run(Merge merge) {
  const Snapshot& snapshot = merge.snapshot;
  for (std::size_t i = merge.plan.first; i < merge.plan.end; ++i) {
    const SegmentView& view = snapshot.segments[i];
    for (RowIndex row = 0; row < view.row_end; ++row) {
      if (view.IsLive(row) || ATTENDANT_PLANTED_BUG("merge_dead_rows")) {
        merge.addresses.push_back({static_cast<std::int32_t>(i), row});
      }
    }
  }
  if (merge.addresses.empty()) return nullptr;
  ATTENDANT_RETURN_IF_ERROR(CheckRoom(merge));
  auto merged = std::make_shared<Segment>();
  merged->first_sequence = FirstSequence(merge);
  merged->rows = MergeRows(merge);
  const auto field_count = static_cast<int>(snapshot.schema->key_fields.size());
  for (int f = 0; f < field_count; ++f) {
    const KeyFieldSchema& field = snapshot.schema->key_fields[f];
    ScratchFiles* const files =
        field.keys_on_disk ? &merge.scratch_files : nullptr;
    Keys keys;
    keys.reserve(merge.addresses.size());
    for (const RowAddress& address : merge.addresses) {
      MakeWayAt(static_cast<std::int64_t>(keys.size()));
      keys.push_back(snapshot.KeyOf(address, f));
    }
    const AttentionModel* model = merge.models[f].model.get();
    ATTENDANT_ASSIGN_OR_RETURN(
        std::shared_ptr<const KeyIndex> index,
        BuildIndex(keys, field.dim, field.score_kind,
                   KeyIndexKind(model, snapshot.wanted_indexes[f]),
                   ListsOf(merge, f, -1), files, merge.cancelled,
                   merged->rows.get()));
    merged->indexes.push_back(std::move(index));
    ATTENDANT_ASSIGN_OR_RETURN(auto head_indexes,
                               BuildHeadIndexes(merge, f, keys, files));
    merged->head_indexes.push_back(std::move(head_indexes));
  }
  return merged;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Segment>> MergeSegments(
    const Snapshot& snapshot, const MergePlan& plan,
    const std::vector<NamedModel>& models, ScratchFiles& files,
    const std::atomic<bool>& cancelled) {
  try {
    return Run({snapshot, plan, models, files, cancelled, {}});
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory for a new index");
  }
}

std::vector<std::shared_ptr<FlatIndex>> ProjectSegment(
    const Segment& segment, int field, RowIndex row_count,
    const AttentionModel& model) {
  std::vector<std::shared_ptr<FlatIndex>> indexes;
  for (int h = 0; h < StoredHeadCount(&model); ++h) {
    const KeyProjection projection = HeadProjection(model, h);
    auto index = std::make_shared<FlatIndex>(projection.weight.row_count,
                                             segment.rows->capacity());
    std::vector<float> projected(
        static_cast<std::size_t>(projection.weight.row_count));
    for (RowIndex row = 0; row < row_count; ++row) {
      const std::span<const float> key = segment.indexes[field]->Key(row);
      if (!key.empty()) {
        ProjectRows(projection.weight, projection.bias,
                    {key.data(), 1, projection.weight.dim}, projected.data());
      }
      index->Append(key.empty() ? std::span<const float>() : projected);
    }
    indexes.push_back(std::move(index));
  }
  return indexes;
}

SegmentView ViewOfMerged(const std::shared_ptr<const Segment>& merged,
                         const MergePlan& plan, const Snapshot& before,
                         std::span<const SegmentView> now) {
  SegmentView view;
  view.live_key_counts.resize(before.schema->key_fields.size());
  for (std::size_t i = plan.first; i < plan.end; ++i) {
    const SegmentView& old_view = before.segments[i];
    view.row_end += static_cast<RowIndex>(old_view.live_count);
    for (std::size_t f = 0; f < view.live_key_counts.size(); ++f) {
      view.live_key_counts[f] += old_view.live_key_counts[f];
    }
  }
  view.live_count = view.row_end;
  std::shared_ptr<Bitmap> dead;
  RowIndex merged_row = 0;
  for (std::size_t i = plan.first; i < plan.end; ++i) {
    const SegmentView& old_view = before.segments[i];
    const SegmentView& new_view = now[i - plan.first];
    for (RowIndex row = 0; row < old_view.row_end; ++row) {
      if (!old_view.IsLive(row)) continue;
      if (!new_view.IsLive(row)) {
        if (dead == nullptr) {
          dead = std::make_shared<Bitmap>(merged->rows->capacity());
        }
        dead->Set(merged_row);
        --view.live_count;
        for (std::size_t f = 0; f < merged->indexes.size(); ++f) {
          if (!merged->indexes[f]->Key(merged_row).empty()) {
            --view.live_key_counts[f];
          }
        }
      }
      ++merged_row;
    }
  }
  view.segment = merged;
  SetDead(view, std::move(dead));
  return view;
}

}  // namespace attendant

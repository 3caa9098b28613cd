#include "core/catalog/rebuild.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/base/aligned_buffer.h"
#include "core/base/status.h"
#include "core/catalog/head_keys.h"
#include "core/shortlist/flat_index.h"
#include "core/shortlist/hnsw_index.h"
#include "core/shortlist/ivf_index.h"
#include "core/shortlist/lsh_index.h"
#include "core/shortlist/pq_index.h"

namespace attendant {
namespace {

using Keys = std::vector<std::span<const float>>;

bool HasKeys(const Keys& keys) {
  return std::any_of(
      keys.begin(), keys.end(),
      [](const std::span<const float> key) { return !key.empty(); });
}

// files: null for floats in memory.
absl::StatusOr<std::shared_ptr<const KeyIndex>> BuildIndex(
    const Keys& keys, std::int64_t dim, ScoreKind score_kind, IndexKind kind,
    ScratchFiles* files, const std::atomic<bool>& cancelled,
    const RowTable* values = nullptr) {
  if (files != nullptr && MayKeepKeysOnDisk(kind)) {
    // Before minutes of training.
    const std::int64_t key_count = std::count_if(
        keys.begin(), keys.end(),
        [](const std::span<const float> key) { return !key.empty(); });
    ATTENDANT_RETURN_IF_ERROR(
        files->CheckRoom(key_count * dim * std::int64_t{sizeof(float)}));
  }
  if (kind == IndexKind::kIvf && HasKeys(keys)) {
    IvfOptions options;
    options.key_files = files;
    options.cancelled = &cancelled;
    if (values != nullptr && values->value_count() > 0) {
      options.values = values;
      options.value_dim = values->value_dim();
    }
    return IvfIndex::Build(keys, dim, score_kind, options);
  }
  if (kind == IndexKind::kHnsw && HasKeys(keys)) {
    HnswOptions options;
    options.cancelled = &cancelled;
    return HnswIndex::Build(keys, dim, score_kind, options);
  }
  if (kind == IndexKind::kLsh && HasKeys(keys)) {
    LshOptions options;
    options.cancelled = &cancelled;
    return LshIndex::Build(keys, dim, score_kind, options);
  }
  if (kind == IndexKind::kPq && HasKeys(keys)) {
    PqOptions options;
    options.key_files = files;
    options.cancelled = &cancelled;
    return PqIndex::Build(keys, dim, score_kind, options);
  }
  auto flat = std::make_shared<FlatIndex>(
      dim, std::max<std::int64_t>(1, static_cast<std::int64_t>(keys.size())));
  for (const std::span<const float> key : keys) flat->Append(key);
  return flat;
}

// The keys of one head, made by `model`, in memory of `projected`.
Keys ProjectKeys(const Keys& keys, const KeyProjection& projection,
                 AlignedBuffer<float>& projected) {
  const auto dim = static_cast<std::size_t>(projection.weight.row_count);
  projected = AlignedBuffer<float>(keys.size() * dim);
  Keys made(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].empty()) continue;
    float* key = projected.data() + i * dim;
    ProjectRows(projection.weight, projection.bias,
                {keys[i].data(), 1, projection.weight.dim}, key);
    made[i] = {key, dim};
  }
  return made;
}

// The head indexes of one field of the merged segment.
absl::StatusOr<std::vector<std::shared_ptr<const KeyIndex>>> BuildHeadIndexes(
    const Snapshot& snapshot, int field, const NamedModel& model,
    const std::vector<RowAddress>& addresses, const Keys& keys,
    ScratchFiles* files, const std::atomic<bool>& cancelled) {
  std::vector<std::shared_ptr<const KeyIndex>> indexes;
  // No index knows how an additive network ranks.
  const IndexKind kind =
      model.model != nullptr && model.model->additive() != nullptr
          ? IndexKind::kFlat
          : snapshot.wanted_indexes[field];
  for (int h = 0; h < StoredHeadCount(model.model.get()); ++h) {
    if (cancelled) return absl::CancelledError("the build was cancelled");
    const KeyProjection projection = HeadProjection(*model.model, h);
    AlignedBuffer<float> projected;
    Keys head_keys;
    if (snapshot.models[field].model == model.model) {
      head_keys.reserve(addresses.size());
      for (const RowAddress& address : addresses) {
        head_keys.push_back(snapshot.segments[address.segment]
                                .segment->head_indexes[field][h]
                                ->Key(address.row));
      }
    } else {
      head_keys = ProjectKeys(keys, projection, projected);
    }
    ATTENDANT_ASSIGN_OR_RETURN(
        std::shared_ptr<const KeyIndex> index,
        BuildIndex(head_keys, projection.weight.row_count,
                   snapshot.schema->key_fields[field].score_kind, kind, files,
                   cancelled));
    indexes.push_back(std::move(index));
  }
  return indexes;
}

absl::StatusOr<std::shared_ptr<const Segment>> Merge(
    const Snapshot& snapshot, const std::vector<NamedModel>& models,
    ScratchFiles& scratch_files, const std::atomic<bool>& cancelled) {
  std::vector<RowAddress> addresses;
  addresses.reserve(snapshot.item_count());
  for (std::size_t i = 0; i < snapshot.segments.size(); ++i) {
    const SegmentView& view = snapshot.segments[i];
    for (RowIndex row = 0; row < view.row_end; ++row) {
      if (view.IsLive(row)) {
        addresses.push_back({static_cast<std::int32_t>(i), row});
      }
    }
  }
  auto rows = std::make_shared<RowTable>(
      snapshot.schema->value_dim, std::max<std::int64_t>(1, addresses.size()));
  for (const RowAddress& address : addresses) {
    const RowTable& from = *snapshot.segments[address.segment].segment->rows;
    const float* value = from.ValueOf(address.row);
    rows->Append(
        from.Id(address.row),
        value == nullptr
            ? std::span<const float>()
            : std::span<const float>(value, snapshot.schema->value_dim),
        from.AttributesOf(address.row), from.OpaqueValueOf(address.row));
  }
  auto merged = std::make_shared<Segment>();
  merged->rows = std::move(rows);
  const auto field_count = static_cast<int>(snapshot.schema->key_fields.size());
  for (int f = 0; f < field_count; ++f) {
    const KeyFieldSchema& field = snapshot.schema->key_fields[f];
    ScratchFiles* const files = field.keys_on_disk ? &scratch_files : nullptr;
    Keys keys;
    keys.reserve(addresses.size());
    for (const RowAddress& address : addresses) {
      keys.push_back(snapshot.KeyOf(address, f));
    }
    // Queries go to the heads where there are any.
    const bool has_heads =
        models[f].model != nullptr && models[f].model->multi_head() != nullptr;
    ATTENDANT_ASSIGN_OR_RETURN(
        std::shared_ptr<const KeyIndex> index,
        BuildIndex(keys, field.dim, field.score_kind,
                   has_heads ? IndexKind::kFlat : snapshot.wanted_indexes[f],
                   files, cancelled, merged->rows.get()));
    merged->indexes.push_back(std::move(index));
    ATTENDANT_ASSIGN_OR_RETURN(
        auto head_indexes, BuildHeadIndexes(snapshot, f, models[f], addresses,
                                            keys, files, cancelled));
    merged->head_indexes.push_back(std::move(head_indexes));
  }
  return merged;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Segment>> MergeSegments(
    const Snapshot& snapshot, const std::vector<NamedModel>& models,
    ScratchFiles& files, const std::atomic<bool>& cancelled) {
  try {
    return Merge(snapshot, models, files, cancelled);
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

SegmentView ViewOfMerged(std::shared_ptr<const Segment> merged,
                         const Snapshot& before, const Snapshot& now) {
  SegmentView view;
  const auto row_count = static_cast<RowIndex>(before.item_count());
  view.row_end = row_count;
  view.live_count = row_count;
  for (std::size_t f = 0; f < before.schema->key_fields.size(); ++f) {
    view.live_key_counts.push_back(before.key_count(static_cast<int>(f)));
  }
  std::unique_ptr<Bitmap> dead;
  RowIndex merged_row = 0;
  for (std::size_t i = 0; i < before.segments.size(); ++i) {
    const SegmentView& old_view = before.segments[i];
    const SegmentView& new_view = now.segments[i];
    for (RowIndex row = 0; row < old_view.row_end; ++row) {
      if (!old_view.IsLive(row)) continue;
      if (!new_view.IsLive(row)) {
        if (dead == nullptr) {
          dead = std::make_unique<Bitmap>(merged->rows->capacity());
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
  view.dead = std::move(dead);
  view.segment = std::move(merged);
  return view;
}

}  // namespace attendant

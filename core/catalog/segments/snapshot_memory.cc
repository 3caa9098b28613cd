#include "core/catalog/segments/snapshot_memory.h"

#include <algorithm>
#include <cmath>

#include "core/catalog/segments/head_keys.h"
#include "core/shortlist/mass/unscored_mass.h"

namespace attendant {
namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);
// Bytes of a row, in addition to its key, value, id and attributes.
constexpr std::int64_t kRowBytes = 16;
// Bytes of an indexed key, in addition to its floats and codes: norm, scale,
// row, position.
constexpr std::int64_t kPlaceBytes = 16;
// Bytes of a key in HNSW's graphs, if norms differ and there are two.
constexpr std::int64_t kGraphBytes = 576;
// Bytes of an attribute, in addition to its texts.
constexpr std::int64_t kAttributeBytes = 16;

std::int64_t TextBytes(const AttributeValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return static_cast<std::int64_t>(text->size()) + 32;
  }
  std::int64_t bytes = 0;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    for (const std::string& text : *texts) {
      bytes += static_cast<std::int64_t>(text.size()) + 48;
    }
  }
  return bytes;
}

// Memory of keys in an index of a trained kind.
std::int64_t IndexedBytes(std::int64_t key_count, std::int64_t dim,
                          IndexKind kind, bool on_disk) {
  std::int64_t bytes = on_disk ? 0 : dim * kFloatBytes;
  if (kind != IndexKind::kFlat) bytes += dim + kPlaceBytes;
  if (kind == IndexKind::kHnsw) bytes += kGraphBytes;
  return key_count * bytes;
}

// Memory of the keys that a model computes from key_count keys.
std::int64_t HeadBytes(std::int64_t key_count, const AttentionModel* model,
                       IndexKind kind, bool on_disk) {
  std::int64_t bytes = 0;
  for (int h = 0; h < StoredHeadCount(model); ++h) {
    bytes += IndexedBytes(key_count, HeadProjection(*model, h).weight.row_count,
                          kind, on_disk);
  }
  return bytes;
}

// Memory of the floats of one head, before they are in its index.
std::int64_t ProjectedBytes(std::int64_t key_count,
                            const AttentionModel* model) {
  std::int64_t most = 0;
  for (int h = 0; h < StoredHeadCount(model); ++h) {
    most = std::max(most, HeadProjection(*model, h).weight.row_count);
  }
  return key_count * most * kFloatBytes;
}

// The maximum number of lists for key_count keys.
std::int64_t ListCount(std::int64_t key_count) {
  return static_cast<std::int64_t>(4 *
                                   std::sqrt(static_cast<double>(key_count)));
}

// Memory of the sample from which lists are learned: 64 keys per list.
std::int64_t SampleBytes(std::int64_t key_count, std::int64_t dim) {
  return std::min(key_count, 64 * ListCount(key_count)) * dim * kFloatBytes;
}

// Memory of the trials from which the mass of lists is learned.
std::int64_t TrialBytes(std::int64_t key_count, IndexKind kind) {
  return kind == IndexKind::kIvf
             ? UnscoredMass::LearningBytes(ListCount(key_count),
                                           /*asked_count=*/0)
             : 0;
}

}  // namespace

MemoryParts FieldMemory(const Snapshot& snapshot, int field) {
  MemoryParts parts;
  for (const SegmentView& view : snapshot.segments) {
    parts += view.segment->indexes[field]->memory();
    for (const auto& head : view.segment->head_indexes[field]) {
      parts += head->memory();
    }
  }
  return parts;
}

MemoryParts SegmentMemory(const Segment& segment) {
  MemoryParts parts = segment.rows->memory();
  ForEachIndex(segment,
               [&](const KeyIndex& index) { parts += index.memory(); });
  return parts;
}

MemoryParts SnapshotMemory(const Snapshot& snapshot) {
  MemoryParts parts;
  for (int f = 0; f < static_cast<int>(snapshot.encoders.size()); ++f) {
    parts += FieldMemory(snapshot, f);
    if (snapshot.encoders[f] != nullptr) {
      parts.encoders += snapshot.encoders[f]->memory_bytes();
    }
  }
  for (const SegmentView& view : snapshot.segments) {
    parts += view.segment->rows->memory();
    if (view.dead != nullptr) parts.tombstones += view.dead->memory_bytes();
    for (const auto& keys : view.dead_keys) {
      if (keys != nullptr) parts.tombstones += keys->memory_bytes();
    }
  }
  return parts;
}

std::int64_t WriteBytes(std::span<const Item* const> items,
                        const std::vector<NamedModel>& models) {
  std::int64_t head_dims = 0;  // of all heads' keys of one item
  for (const NamedModel& model : models) {
    head_dims += StoredDim(model.model.get());
  }
  std::int64_t bytes = 0;
  for (const Item* item : items) {
    std::size_t floats = item->value.size();
    for (const auto& key : item->keys) floats += key.size() + 1;
    std::int64_t item_bytes = static_cast<std::int64_t>(
        floats * sizeof(float) + item->id.size() + item->opaque_value.size());
    for (const auto& [attribute, value] : item->attributes) {
      item_bytes += kAttributeBytes + TextBytes(value);
    }
    // Counted twice: in memory and in a write buffer.
    bytes += 2 * item_bytes + kRowBytes + head_dims * kFloatBytes;
  }
  return bytes;
}

std::int64_t MergeBytes(const Snapshot& snapshot, const MergePlan& plan,
                        const std::vector<NamedModel>& wanted_models) {
  const std::vector<NamedModel>& models =
      plan.retrains ? wanted_models : snapshot.models;
  std::int64_t bytes = 0;
  for (std::size_t f = 0; f < snapshot.wanted_indexes.size(); ++f) {
    const KeyFieldSchema& field = snapshot.schema->key_fields[f];
    const AttentionModel* model = models[f].model.get();
    const IndexKind kind = KeyIndexKind(model, snapshot.wanted_indexes[f]);
    const IndexKind head_kind =
        HeadIndexKind(model, snapshot.wanted_indexes[f]);
    const auto on_disk = [&field](IndexKind of_keys) {
      return field.keys_on_disk && MayKeepKeysOnDisk(of_keys);
    };
    std::int64_t key_count = 0;
    for (std::size_t i = plan.first; i < plan.end; ++i) {
      key_count += snapshot.segments[i].live_key_counts[f];
    }
    bytes += HeadBytes(key_count, model, head_kind, on_disk(head_kind));
    if (model != snapshot.models[f].model.get()) {
      bytes += ProjectedBytes(key_count, model);
    }
    bytes += IndexedBytes(key_count, field.dim, kind, on_disk(kind));
    if (plan.retrains && snapshot.wanted_indexes[f] != IndexKind::kFlat) {
      bytes += SampleBytes(key_count, field.dim);
      bytes += std::max(TrialBytes(key_count, kind),
                        TrialBytes(key_count, head_kind));
    }
  }
  // Only live rows are copied.
  for (std::size_t i = plan.first; i < plan.end; ++i) {
    const SegmentView& view = snapshot.segments[i];
    const double share = static_cast<double>(view.live_count) /
                         std::max<double>(1, view.row_end);
    bytes += static_cast<std::int64_t>(
        share * static_cast<double>(view.segment->rows->memory().sum()));
  }
  return bytes;
}

}  // namespace attendant

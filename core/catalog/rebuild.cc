#include "core/catalog/rebuild.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/base/status.h"
#include "core/shortlist/flat_index.h"
#include "core/shortlist/ivf_index.h"

namespace attendant {
namespace {

absl::StatusOr<std::shared_ptr<const KeyIndex>> BuildIndex(
    const Snapshot& snapshot, int field,
    const std::vector<RowAddress>& addresses,
    const std::atomic<bool>& cancelled) {
  const KeyFieldSchema& schema = snapshot.schema->key_fields[field];
  std::vector<std::span<const float>> keys;
  keys.reserve(addresses.size());
  for (const RowAddress& address : addresses) {
    keys.push_back(snapshot.KeyOf(address, field));
  }
  if (snapshot.wanted_indexes[field] == IndexKind::kIvf &&
      snapshot.key_count(field) > 0) {
    IvfOptions options;
    options.cancelled = &cancelled;
    return IvfIndex::Build(keys, schema.dim, schema.score_kind, options);
  }
  auto flat = std::make_shared<FlatIndex>(
      schema.dim, std::max<std::int64_t>(1, keys.size()));
  for (const std::span<const float> key : keys) flat->Append(key);
  return flat;
}

absl::StatusOr<std::shared_ptr<const Segment>> Merge(
    const Snapshot& snapshot, const std::atomic<bool>& cancelled) {
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
  for (std::size_t f = 0; f < snapshot.schema->key_fields.size(); ++f) {
    ATTENDANT_ASSIGN_OR_RETURN(
        std::shared_ptr<const KeyIndex> index,
        BuildIndex(snapshot, static_cast<int>(f), addresses, cancelled));
    merged->indexes.push_back(std::move(index));
  }
  return merged;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Segment>> MergeSegments(
    const Snapshot& snapshot, const std::atomic<bool>& cancelled) {
  try {
    return Merge(snapshot, cancelled);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory for a new index");
  }
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

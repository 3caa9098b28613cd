#include "core/catalog/segments/dead_rows.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "core/shortlist/scan/key_index.h"

namespace attendant {

DeadRows::Copies DeadRows::CopyOf(const SegmentView& view) {
  const Segment& segment = *view.segment;
  Copies copies;
  copies.rows = view.dead != nullptr
                    ? std::make_shared<Bitmap>(*view.dead)
                    : std::make_shared<Bitmap>(segment.rows->capacity());
  for (std::size_t f = 0; f < segment.indexes.size(); ++f) {
    const bool has_dead = !view.dead_keys.empty() && view.dead_keys[f];
    copies.keys.push_back(has_dead
                              ? std::make_shared<DeadKeys>(*view.dead_keys[f])
                              : segment.indexes[f]->NoneDead());
  }
  return copies;
}

void DeadRows::Kill(Snapshot& next, absl::string_view id) {
  const std::optional<RowAddress> address = next.Find(id);
  if (!address) return;
  SegmentView& view = next.segments[address->segment];
  copies_.resize(next.segments.size());
  Copies& copies = copies_[address->segment];
  if (copies.rows == nullptr) {
    copies = CopyOf(view);
    view.dead = copies.rows;
    view.dead_keys.assign(copies.keys.begin(), copies.keys.end());
  }
  copies.rows->Set(address->row);
  --view.live_count;
  for (std::size_t f = 0; f < view.live_key_counts.size(); ++f) {
    const KeyIndex& index = *view.segment->indexes[f];
    if (index.Key(address->row).empty()) continue;
    --view.live_key_counts[f];
    if (copies.keys[f] != nullptr) index.Kill(address->row, *copies.keys[f]);
  }
}

void SetDead(SegmentView& view, std::shared_ptr<const Bitmap> dead) {
  view.dead = std::move(dead);
  view.dead_keys.clear();
  if (view.dead == nullptr) return;
  for (const auto& index : view.segment->indexes) {
    std::unique_ptr<DeadKeys> keys = index->NoneDead();
    if (keys != nullptr) {
      view.dead->ForEachSet(0, view.row_end, [&](std::int64_t row) {
        index->Kill(static_cast<RowIndex>(row), *keys);
      });
    }
    view.dead_keys.push_back(std::move(keys));
  }
}

}  // namespace attendant

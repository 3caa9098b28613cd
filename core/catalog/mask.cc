#include "core/catalog/mask.h"

#include <bit>
#include <optional>

namespace attendant {
namespace {

// The rows of `rows` that are not in `but` (null: none) and, if `index` is not
// null, have a key in it.
std::int64_t CountRows(const Bitmap& rows, const Bitmap* but,
                       const KeyIndex* index) {
  std::int64_t count = 0;
  for (std::size_t w = 0; w < rows.words().size(); ++w) {
    std::uint64_t word = rows.words()[w];
    if (but != nullptr) word &= ~but->words()[w];
    if (index == nullptr) {
      count += std::popcount(word);
      continue;
    }
    for (; word != 0; word &= word - 1) {
      const auto row = static_cast<RowIndex>(64 * w) +
                       static_cast<RowIndex>(std::countr_zero(word));
      if (!index->Key(row).empty()) ++count;
    }
  }
  return count;
}

}  // namespace

Masks::Masks(const Snapshot& snapshot)
    : snapshot_(&snapshot), masks_(snapshot.segments.size()) {
  for (std::size_t i = 0; i < masks_.size(); ++i) {
    masks_[i].excluded = snapshot.segments[i].dead.get();
  }
}

void Masks::AllowOnly(const std::vector<ItemId>& ids) {
  for (std::size_t i = 0; i < masks_.size(); ++i) {
    masks_[i].allowed = std::make_unique<Bitmap>(
        snapshot_->segments[i].segment->rows->capacity());
  }
  for (const ItemId& id : ids) {
    const std::optional<RowAddress> address = snapshot_->Find(id);
    if (!address) continue;
    masks_[static_cast<std::size_t>(address->segment)].allowed->Set(
        address->row);
  }
}

void Masks::Exclude(RowAddress address) {
  const auto segment = static_cast<std::size_t>(address.segment);
  SegmentMask& mask = masks_[segment];
  if (mask.own == nullptr) {
    mask.own =
        mask.excluded != nullptr
            ? std::make_unique<Bitmap>(*mask.excluded)
            : std::make_unique<Bitmap>(
                  snapshot_->segments[segment].segment->rows->capacity());
    mask.excluded = mask.own.get();
  }
  mask.own->Set(address.row);
}

std::int64_t Masks::EligibleCount(int field) const {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < masks_.size(); ++i) {
    count += EligibleCount(i, field);
  }
  return count;
}

std::int64_t Masks::EligibleCount(std::size_t segment, int field) const {
  const SegmentView& view = snapshot_->segments[segment];
  const SegmentMask& mask = masks_[segment];
  const auto f = static_cast<std::size_t>(field);
  const std::int64_t live_key_count = view.live_key_counts[f];
  // Where every live row has a key, the keys need not be looked at.
  const KeyIndex* index = live_key_count == view.live_count
                              ? nullptr
                              : view.segment->indexes[f].get();
  if (mask.allowed != nullptr) {
    return CountRows(*mask.allowed, mask.excluded, index);
  }
  if (mask.own == nullptr) return live_key_count;
  return live_key_count - CountRows(*mask.own, view.dead.get(), index);
}

}  // namespace attendant

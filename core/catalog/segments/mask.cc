#include "core/catalog/segments/mask.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/catalog/filter/evaluate_filter.h"
#include "core/kernels/compare.h"
#include "core/shortlist/scan/eligible_rows.h"

namespace attendant {
namespace {

// Counts the rows below row_end, given as words by word_at(w), that have a key
// in at least one of the indexes.
template <typename WordAt>
std::int64_t CountKeyed(RowIndex row_end, WordAt word_at,
                        std::span<const KeyIndex* const> indexes) {
  constexpr std::int64_t kWords = 256;
  std::uint64_t keyed[kWords];
  const std::int64_t word_count = (std::int64_t{row_end} + 63) / 64;
  std::int64_t count = 0;
  for (std::int64_t begin = 0; begin < word_count; begin += kWords) {
    const std::int64_t end = std::min(word_count, begin + kWords);
    for (std::int64_t w = begin; w < end; ++w) {
      std::uint64_t left = word_at(w);
      keyed[w - begin] = left;
      for (const KeyIndex* index : indexes) left &= ~index->Keyed(w, left);
      keyed[w - begin] &= ~left;
    }
    count += ActiveCompareKernels().CountBits(keyed, nullptr, end - begin);
  }
  return count;
}

// Counts the rows in `rows` that are not in `but` (may be null) and, if `index`
// is not null, have a key in it. All rows are below row_end.
std::int64_t CountRows(const Bitmap& rows, const Bitmap* but, RowIndex row_end,
                       const KeyIndex* index) {
  const std::uint64_t* words = rows.words().data();
  const std::uint64_t* but_words =
      but == nullptr ? nullptr : but->words().data();
  if (index == nullptr) {
    return ActiveCompareKernels().CountBits(
        words, but_words, static_cast<std::int64_t>(rows.words().size()));
  }
  return CountKeyed(row_end,
                    [=](std::int64_t w) {
                      return words[w] &
                             ~(but_words == nullptr ? 0 : but_words[w]);
                    },
                    {&index, 1});
}

// Calls visit with the address of each id that the snapshot contains. Ids that
// are not found are validated; an id that was found is valid.
template <typename Visit>
absl::Status ForEachFound(const Snapshot& snapshot, std::span<const ItemId> ids,
                          absl::string_view field, const Interrupt& interrupt,
                          Visit visit) {
  constexpr std::size_t kBatch = 256;
  constexpr std::size_t kBetweenChecks = 16 * kBatch;
  RowIndex rows[kBatch];
  for (std::size_t begin = 0; begin < ids.size(); begin += kBatch) {
    if (begin % kBetweenChecks == 0) {
      ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    }
    const auto batch = ids.subspan(begin, std::min(kBatch, ids.size() - begin));
    bool found[kBatch] = {};
    // An item is live in at most one segment.
    for (std::size_t i = 0; i < snapshot.segments.size(); ++i) {
      const SegmentView& view = snapshot.segments[i];
      view.segment->rows->FindAll(batch, view.row_end, view.dead.get(), rows);
      for (std::size_t b = 0; b < batch.size(); ++b) {
        if (rows[b] < 0) continue;
        found[b] = true;
        visit({static_cast<std::int32_t>(i), rows[b]});
      }
    }
    for (std::size_t b = 0; b < batch.size(); ++b) {
      if (found[b]) continue;
      const absl::Status status = ValidateItemId(batch[b], "");
      if (!status.ok()) {
        return PrefixField(status, absl::StrCat(field, "[", begin + b, "]"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

Masks::Masks(const Snapshot& snapshot)
    : snapshot_(&snapshot), masks_(snapshot.segments.size()) {
  for (std::size_t i = 0; i < masks_.size(); ++i) {
    masks_[i].excluded = snapshot.segments[i].dead.get();
  }
}

absl::Status Masks::AllowOnly(std::span<const ItemId> ids,
                              absl::string_view field,
                              const Interrupt& interrupt) {
  for (std::size_t i = 0; i < masks_.size(); ++i) {
    masks_[i].allowed = std::make_unique<Bitmap>(
        snapshot_->segments[i].segment->rows->capacity());
    masks_[i].excluded = nullptr;
  }
  return ForEachFound(*snapshot_, ids, field, interrupt,
                      [&](RowAddress address) {
                        masks_[address.segment].allowed->Set(address.row);
                      });
}

absl::Status Masks::Keep(const Filter& filter, const Interrupt& interrupt) {
  ATTENDANT_RETURN_IF_ERROR(
      ValidateFilter(filter, *snapshot_->schema, "filter_expression"));
  for (std::size_t i = 0; i < masks_.size(); ++i) {
    const SegmentView& view = snapshot_->segments[i];
    SegmentMask& mask = masks_[i];
    ATTENDANT_ASSIGN_OR_RETURN(
        Bitmap passing,
        EvaluateFilter(filter, *snapshot_->schema, *view.segment->rows,
                       view.row_end,
                       {.only = mask.allowed.get(), .excluded = mask.excluded},
                       interrupt));
    mask.allowed = std::make_unique<Bitmap>(std::move(passing));
    mask.excluded = nullptr;
  }
  return absl::OkStatus();
}

absl::Status Masks::Exclude(std::span<const ItemId> ids,
                            absl::string_view field,
                            const Interrupt& interrupt) {
  return ForEachFound(*snapshot_, ids, field, interrupt,
                      [this](RowAddress address) { Exclude(address); });
}

void Masks::Exclude(RowAddress address) {
  const auto segment = static_cast<std::size_t>(address.segment);
  SegmentMask& mask = masks_[segment];
  if (mask.allowed != nullptr) {
    mask.allowed->Clear(address.row);
    return;
  }
  if (mask.own == nullptr) {
    mask.own =
        mask.excluded != nullptr
            ? std::make_unique<Bitmap>(*mask.excluded)
            : std::make_unique<Bitmap>(
                  snapshot_->segments[segment].segment->rows->capacity());
    mask.excluded = mask.own.get();
  }
  // An item may be excluded twice.
  if (mask.own->Test(address.row)) return;
  mask.own->Set(address.row);
  ++mask.own_count;
}

std::optional<std::int64_t> Masks::KnownEligibleCount(std::size_t segment,
                                                      int field) const {
  const SegmentView& view = snapshot_->segments[segment];
  const SegmentMask& mask = masks_[segment];
  const std::int64_t live_key_count = view.live_key_counts[field];
  if (mask.allowed != nullptr) return std::nullopt;
  if (mask.own == nullptr) return live_key_count;
  // It is not known which rows excluded by the query have a key.
  if (live_key_count != view.live_count) return std::nullopt;
  return live_key_count - mask.own_count;
}

std::int64_t Masks::EligibleCount(int field) const {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < masks_.size(); ++i) {
    count += EligibleCount(i, field);
  }
  return count;
}

std::int64_t Masks::EligibleCount(std::span<const int> fields) const {
  std::vector<const KeyIndex*> indexes(fields.size());
  std::int64_t count = 0;
  for (std::size_t i = 0; i < masks_.size(); ++i) {
    const SegmentView& view = snapshot_->segments[i];
    for (std::size_t f = 0; f < fields.size(); ++f) {
      indexes[f] = view.segment->indexes[fields[f]].get();
    }
    ScanQuery query;
    query.row_end = view.row_end;
    query.excluded = masks_[i].excluded;
    query.allowed = masks_[i].allowed.get();
    const EligibleRows eligible(query);
    count += CountKeyed(
        view.row_end, [&eligible](std::int64_t w) { return eligible.Word(w); },
        indexes);
  }
  return count;
}

std::int64_t Masks::EligibleCount(std::size_t segment, int field) const {
  if (const auto known = KnownEligibleCount(segment, field)) return *known;
  const SegmentView& view = snapshot_->segments[segment];
  const SegmentMask& mask = masks_[segment];
  const auto f = static_cast<std::size_t>(field);
  const std::int64_t live_key_count = view.live_key_counts[f];
  // If every live row has a key, the keys need not be checked.
  const KeyIndex* index = live_key_count == view.live_count
                              ? nullptr
                              : view.segment->indexes[f].get();
  if (mask.allowed != nullptr) {
    return CountRows(*mask.allowed, nullptr, view.row_end, index);
  }
  return live_key_count -
         CountRows(*mask.own, view.dead.get(), view.row_end, index);
}

absl::StatusOr<std::int64_t> CountMatching(const Snapshot& snapshot,
                                           const Filter& filter,
                                           const Interrupt& interrupt) {
  Masks masks(snapshot);
  ATTENDANT_RETURN_IF_ERROR(masks.Keep(filter, interrupt));
  std::int64_t count = 0;
  for (std::size_t i = 0; i < snapshot.segments.size(); ++i) {
    count += CountRows(*masks[i].allowed, nullptr, snapshot.segments[i].row_end,
                       nullptr);
  }
  return count;
}

}  // namespace attendant

#include "core/catalog/segments/snapshot.h"

#include <utility>

#include "core/shortlist/ivf/ivf_training.h"
#include "core/shortlist/mass/learned_mass.h"

namespace attendant {

std::int64_t Snapshot::item_count() const {
  std::int64_t count = 0;
  for (const SegmentView& view : segments) count += view.live_count;
  return count;
}

std::int64_t Snapshot::key_count(int field) const {
  std::int64_t count = 0;
  for (const SegmentView& view : segments) count += view.live_key_counts[field];
  return count;
}

std::optional<RowAddress> Snapshot::Find(absl::string_view id) const {
  // Newest segment first, because changed items are there.
  for (auto i = static_cast<std::int32_t>(segments.size()) - 1; i >= 0; --i) {
    const SegmentView& view = segments[i];
    const RowIndex row =
        view.segment->rows->Find(id, view.row_end, view.dead.get());
    if (row >= 0) return RowAddress{i, row};
  }
  return std::nullopt;
}

absl::string_view Snapshot::IdOf(std::int32_t segment, RowIndex row) const {
  return segments[segment].segment->rows->Id(row);
}

const KeyIndex& Snapshot::QueriedIndex(std::size_t segment, int field) const {
  const auto f = static_cast<std::size_t>(field);
  const AttentionModel* model = models[f].model.get();
  const bool has_heads = model != nullptr && model->multi_head() != nullptr;
  return segments[segment].segment->IndexOf(field, has_heads ? 0 : -1);
}

std::shared_ptr<const IvfTraining> Snapshot::TrainingOf(int field,
                                                        int head) const {
  for (const SegmentView& view : segments) {
    const KeyIndex& index = view.segment->IndexOf(field, head);
    if (index.kind() == IndexKind::kIvf) return index.training();
  }
  return nullptr;
}

void Snapshot::TakeKnownMasses() {
  auto masses = std::make_shared<KnownMasses>();
  for (const SegmentView& view : segments) {
    ForEachIndex(*view.segment, [&](const KeyIndex& index) {
      if (index.training() != nullptr) masses->Add(*index.training()->mass);
    });
  }
  known_masses = std::move(masses);
}

}  // namespace attendant

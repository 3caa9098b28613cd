#include "core/catalog/segments/growing_segment.h"

#include <utility>

#include "core/catalog/segments/head_keys.h"

namespace attendant {

GrowingSegment::GrowingSegment(std::int64_t capacity, Snapshot& next)
    : rows_(std::make_shared<RowTable>(next.schema->value_dim, capacity)) {
  auto segment = std::make_shared<Segment>();
  // Until the catalog is open, rows may belong to any write.
  segment->first_sequence = next.sequence;
  segment->rows = rows_;
  for (std::size_t f = 0; f < next.schema->key_fields.size(); ++f) {
    const auto field = static_cast<int>(f);
    indexes_.push_back(std::make_shared<FlatIndex>(
        next.schema->key_fields[f].dim, capacity, next.TrainingOf(field, -1)));
    segment->indexes.push_back(indexes_.back());
    const AttentionModel* model = next.models[f].model.get();
    auto& head_indexes = head_indexes_.emplace_back();
    for (int h = 0; h < StoredHeadCount(model); ++h) {
      head_indexes.push_back(std::make_shared<FlatIndex>(
          HeadProjection(*model, h).weight.row_count, capacity,
          next.TrainingOf(field, h)));
    }
    segment->head_indexes.emplace_back(head_indexes.begin(),
                                       head_indexes.end());
  }
  SegmentView view;
  view.segment = std::move(segment);
  view.live_key_counts.resize(next.schema->key_fields.size());
  next.segments.push_back(std::move(view));
}

void GrowingSegment::Append(const Item& item, Snapshot& next) {
  SegmentView& view = next.segments.back();
  rows_->Append(item.id, item.value, item.attributes,
                item.opaque_value.empty()
                    ? nullptr
                    : std::make_shared<const std::string>(item.opaque_value));
  for (std::size_t f = 0; f < indexes_.size(); ++f) {
    indexes_[f]->Append(item.keys[f]);
    AppendHeadKeys(f, item.keys[f], next);
    if (!item.keys[f].empty()) ++view.live_key_counts[f];
  }
  ++view.row_end;
  ++view.live_count;
}

void GrowingSegment::AppendHeadKeys(std::size_t field,
                                    std::span<const float> key,
                                    const Snapshot& next) {
  const auto& indexes = head_indexes_[field];
  if (indexes.empty()) return;
  if (key.empty()) {
    for (const auto& index : indexes) index->Append({});
    return;
  }
  const KeyProjection projection = StoredProjection(*next.models[field].model);
  projected_.resize(static_cast<std::size_t>(projection.weight.row_count));
  ProjectRows(projection.weight, projection.bias,
              {key.data(), 1, projection.weight.dim}, projected_.data());
  std::span<const float> left = projected_;
  for (const auto& index : indexes) {
    index->Append(left.first(static_cast<std::size_t>(index->dim())));
    left = left.subspan(static_cast<std::size_t>(index->dim()));
  }
}

void GrowingSegment::AssignLists() {
  for (const auto& index : indexes_) index->AssignLists();
  for (const auto& indexes : head_indexes_) {
    for (const auto& index : indexes) index->AssignLists();
  }
}

}  // namespace attendant

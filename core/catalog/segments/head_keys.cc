#include "core/catalog/segments/head_keys.h"

namespace attendant {

int StoredHeadCount(const AttentionModel* model) {
  if (model == nullptr || model->bilinear() != nullptr) return 0;
  return static_cast<int>(model->head_count());
}

bool ChangesStoredKeys(const AttentionModel* a, const AttentionModel* b) {
  return StoredHeadCount(a) > 0 || StoredHeadCount(b) > 0;
}

KeyProjection StoredProjection(const AttentionModel& model) {
  if (const AdditiveNetwork* network = model.additive()) {
    return {network->key_weight.view(), {}};
  }
  const Projection& key = model.multi_head()->key;
  return {key.weight.view(), key.bias};
}

std::int64_t StoredDim(const AttentionModel* model) {
  if (StoredHeadCount(model) == 0) return 0;
  return StoredProjection(*model).weight.row_count;
}

KeyProjection HeadProjection(const AttentionModel& model, int head) {
  KeyProjection projection = StoredProjection(model);
  MatrixView& weight = projection.weight;
  const std::int64_t row_count = weight.row_count / model.head_count();
  weight.data += head * row_count * weight.dim;
  weight.row_count = row_count;
  if (!projection.bias.empty()) {
    projection.bias =
        projection.bias.subspan(static_cast<std::size_t>(head * row_count),
                                static_cast<std::size_t>(row_count));
  }
  return projection;
}

IndexKind KeyIndexKind(const AttentionModel* model, IndexKind wanted) {
  const bool has_heads = model != nullptr && model->multi_head() != nullptr;
  return has_heads ? IndexKind::kFlat : wanted;
}

IndexKind HeadIndexKind(const AttentionModel* model, IndexKind wanted) {
  const bool is_additive = model != nullptr && model->additive() != nullptr;
  return is_additive ? IndexKind::kFlat : wanted;
}

}  // namespace attendant

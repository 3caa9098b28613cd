#include "core/attention/key_tile.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/attention/head_projection.h"
#include "core/base/status.h"

namespace attendant {
namespace {

std::size_t Floats(std::int64_t rows, std::int64_t dim) {
  return static_cast<std::size_t>(rows * dim);
}

}  // namespace

KeyTile::KeyTile(const MultiHeadInput& input)
    : input_(input),
      order_size_(input.mask.attended
                      ? static_cast<std::int64_t>(input.mask.attended->size())
                      : input.keys.row_count),
      positions_(kTileKeys),
      gathered_keys_(Floats(kTileKeys, input.keys.dim)),
      gathered_values_(Floats(kTileKeys, input.values.dim)),
      max_norms_(Index(input.head_count())) {
  const bool normalises = input.score_kind == ScoreKind::kCosine;
  if (input.heads != nullptr || normalises) {
    projected_keys_ = AlignedBuffer<float>(
        Floats(input.head_count() * kTileKeys, input.head_key_dim()));
  }
  if (input.heads != nullptr && input.heads->value) {
    projected_values_ = AlignedBuffer<float>(
        Floats(input.head_count() * kTileKeys, input.head_value_dim()));
  }
}

absl::Status KeyTile::Load(std::int64_t first, std::int64_t last_query) {
  Choose(first, last_query);
  if (size_ == 0) return absl::OkStatus();
  const MatrixView keys = Gather(input_.keys, gathered_keys_);
  const MatrixView values = Gather(input_.values, gathered_values_);
  ATTENDANT_RETURN_IF_ERROR(LoadKeys(keys));
  return LoadValues(values);
}

void KeyTile::Choose(std::int64_t first, std::int64_t last_query) {
  const AttentionMask& mask = input_.mask;
  const std::int64_t end = std::min(first + kTileKeys, order_size_);
  size_ = 0;
  max_position_ = -1;
  for (std::int64_t i = first; i < end; ++i) {
    const auto position = mask.attended ? (*mask.attended)[Index(i)]
                                        : static_cast<std::int32_t>(i);
    if (mask.causal && position > last_query) continue;
    if (!mask.key_times.empty() &&
        mask.key_times[Index(position)] > mask.query_time) {
      continue;
    }
    positions_[Index(size_++)] = position;
    max_position_ = std::max(max_position_, position);
  }
}

MatrixView KeyTile::Gather(MatrixView from, AlignedBuffer<float>& copy) const {
  const std::int32_t* positions = positions_.data();
  bool together = true;
  for (std::int64_t i = 1; i < size_ && together; ++i) {
    together = positions[i] == positions[i - 1] + 1;
  }
  if (together) return {from.data + positions[0] * from.dim, size_, from.dim};
  for (std::int64_t i = 0; i < size_; ++i) {
    std::copy_n(from.data + positions[i] * from.dim, from.dim,
                copy.data() + i * from.dim);
  }
  return {copy.data(), size_, from.dim};
}

absl::Status KeyTile::LoadKeys(MatrixView keys) {
  const bool normalises = input_.score_kind == ScoreKind::kCosine;
  const std::int64_t dim = input_.head_key_dim();
  keys_ = projected_keys_.size() > 0 ? projected_keys_.data() : keys.data;
  for (std::int64_t head = 0; head < input_.head_count(); ++head) {
    ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
    float* projected = projected_keys_.data() + head * kTileKeys * dim;
    if (input_.heads != nullptr) {
      ProjectHead(input_.heads->key, head, dim, keys, projected);
    } else if (normalises) {
      std::copy_n(keys.data, size_ * dim, projected);
    }
    double max_norm = 0;
    for (std::int64_t i = 0; i < size_; ++i) {
      const double norm = RowNorm(this->keys(head) + i * dim, dim);
      if (std::isnan(norm)) {
        return NotFinite(keys.Row(i), absl::StrCat(input_.names.keys, "[",
                                                   positions_[Index(i)], "]"));
      }
      if (normalises) {
        // Of norm 0 it stays as it is: similarity 0 with all.
        if (norm > 0) ScaleRow(1 / norm, dim, projected + i * dim);
      }
      max_norm = std::max(max_norm, norm);
    }
    max_norms_[Index(head)] = normalises ? 1 : max_norm;
  }
  return absl::OkStatus();
}

absl::Status KeyTile::LoadValues(MatrixView values) {
  const bool projects = projected_values_.size() > 0;
  const std::int64_t dim = input_.head_value_dim();
  values_ = projects ? projected_values_.data() : values.data;
  for (std::int64_t head = 0; head < (projects ? input_.head_count() : 1);
       ++head) {
    ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
    if (projects) {
      ProjectHead(*input_.heads->value, head, dim, values,
                  projected_values_.data() + head * kTileKeys * dim);
    }
    for (std::int64_t i = 0; i < size_; ++i) {
      if (!std::isnan(RowNorm(this->values(head) + i * dim, dim))) continue;
      return NotFinite(values.Row(i), absl::StrCat(input_.names.values, "[",
                                                   positions_[Index(i)], "]"));
    }
  }
  return absl::OkStatus();
}

const float* KeyTile::keys(std::int64_t head) const {
  return keys_ + (input_.heads == nullptr
                      ? 0
                      : head * kTileKeys * input_.head_key_dim());
}

const float* KeyTile::values(std::int64_t head) const {
  return values_ + (projected_values_.size() == 0
                        ? 0
                        : head * kTileKeys * input_.head_value_dim());
}

}  // namespace attendant

#include "core/attention/heads/key_tile.h"

#include <algorithm>

#include "core/attention/heads/head_rows.h"
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
      max_norms_(Size(input.head_count())) {
  const bool normalises = input.score_kind == ScoreKind::kCosine;
  if (input.heads != nullptr || normalises) {
    projected_keys_ = AlignedBuffer<float>(
        Floats(input.head_count() * kTileKeys, input.head_key_dim()));
  }
  if (input.projects_values()) {
    projected_values_ = AlignedBuffer<float>(
        Floats(input.head_count() * kTileKeys, input.head_value_dim()));
  }
}

absl::Status KeyTile::Load(std::int64_t first, std::int64_t last_query) {
  Choose(first, last_query);
  if (size_ == 0) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(LoadKeys());
  return LoadValues();
}

void KeyTile::Choose(std::int64_t first, std::int64_t last_query) {
  const AttentionMask& mask = input_.mask;
  const std::int64_t end = std::min(first + kTileKeys, order_size_);
  size_ = 0;
  max_position_ = -1;
  for (std::int64_t i = first; i < end; ++i) {
    const auto position = mask.attended ? (*mask.attended)[Size(i)]
                                        : static_cast<std::int32_t>(i);
    if (mask.causal && position > last_query) continue;
    if (!mask.key_times.empty() &&
        mask.key_times[Size(position)] > mask.query_time) {
      continue;
    }
    positions_[Size(size_++)] = position;
    max_position_ = std::max(max_position_, position);
  }
}

absl::Status KeyTile::LoadKeys() {
  const MatrixView rows =
      GatherRows(input_.keys, chosen(), gathered_keys_.data());
  const bool is_copied = projected_keys_.size() > 0;
  keys_ = is_copied ? projected_keys_.data() : rows.data;
  for (std::int64_t head = 0; head < input_.head_count(); ++head) {
    ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
    float* keys = is_copied ? projected_keys_.data() +
                                  head * kTileKeys * input_.head_key_dim()
                            : nullptr;
    ATTENDANT_ASSIGN_OR_RETURN(
        max_norms_[Size(head)],
        LoadHeadKeys(input_, head, rows, chosen(), keys));
  }
  return absl::OkStatus();
}

absl::Status KeyTile::LoadValues() {
  const MatrixView rows =
      GatherRows(input_.values, chosen(), gathered_values_.data());
  const bool projects = projected_values_.size() > 0;
  values_ = projects ? projected_values_.data() : rows.data;
  for (std::int64_t head = 0; head < (projects ? input_.head_count() : 1);
       ++head) {
    ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
    float* values = projects ? projected_values_.data() +
                                   head * kTileKeys * input_.head_value_dim()
                             : nullptr;
    ATTENDANT_RETURN_IF_ERROR(
        LoadHeadValues(input_, head, rows, chosen(), values));
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

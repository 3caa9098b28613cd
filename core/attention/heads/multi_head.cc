#include "core/attention/heads/multi_head.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/attention/heads/key_tile.h"
#include "core/attention/heads/query_block.h"
#include "core/base/status.h"

namespace attendant {
namespace {

absl::Status CheckDim(std::int64_t got, std::int64_t want,
                      absl::string_view field, absl::string_view of) {
  if (got == want) return absl::OkStatus();
  return InvalidField(field, absl::StrCat("vectors of ", got, " components"),
                      absl::StrCat(want, ", as ", of));
}

absl::Status ValidateMask(const MultiHeadInput& input) {
  const AttentionMask& mask = input.mask;
  const std::int64_t m = input.queries.row_count;
  const std::int64_t n = input.keys.row_count;
  if (!mask.forbidden.empty() &&
      static_cast<std::int64_t>(mask.forbidden.size()) != m * n) {
    return InvalidField("mask.forbidden",
                        absl::StrCat(mask.forbidden.size(), " entries"),
                        absl::StrCat(m * n, ", one a pair of query and key"));
  }
  if (!mask.key_times.empty() &&
      static_cast<std::int64_t>(mask.key_times.size()) != n) {
    return InvalidField("mask.key_times",
                        absl::StrCat(mask.key_times.size(), " times"),
                        absl::StrCat(n, ", one a key"));
  }
  if (!mask.attended) return absl::OkStatus();
  for (const std::int32_t position : *mask.attended) {
    if (position < 0 || position >= n) {
      return InvalidField("mask.attended", absl::StrCat(position),
                          absl::StrCat("positions of the ", n, " keys"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateMultiHead(const MultiHeadInput& input) {
  const AttentionInputNames& names = input.names;
  if (input.score_kind == ScoreKind::kBilinear ||
      input.score_kind == ScoreKind::kAdditive) {
    return InvalidField("score_kind", Name(input.score_kind),
                        "DOT, SCALED_DOT or COSINE");
  }
  ATTENDANT_RETURN_IF_ERROR(
      ValidateTemperature(input.temperature, "temperature"));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(input.queries.dim, 1, kMaxModelDimension,
                                       names.queries, " components a vector"));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(input.keys.dim, 1, kMaxModelDimension,
                                       names.keys, " components a vector"));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(input.values.dim, 1, kMaxModelDimension,
                                       names.values, " components a vector"));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(input.keys.row_count, 0,
                                       std::numeric_limits<std::int32_t>::max(),
                                       names.keys));
  if (input.values.row_count != input.keys.row_count) {
    return InvalidField(names.values, absl::StrCat(input.values.row_count),
                        absl::StrCat(input.keys.row_count, ", one a key"));
  }
  if (input.heads == nullptr) {
    ATTENDANT_RETURN_IF_ERROR(CheckDim(input.keys.dim, input.queries.dim,
                                       names.keys, "the queries have"));
    return ValidateMask(input);
  }
  const MultiHeadProjections& heads = *input.heads;
  ATTENDANT_RETURN_IF_ERROR(CheckDim(input.queries.dim, heads.query.input_dim(),
                                     names.queries, "the model's W_Q takes"));
  ATTENDANT_RETURN_IF_ERROR(CheckDim(input.keys.dim, heads.key.input_dim(),
                                     names.keys, "the model's W_K takes"));
  if (heads.value) {
    ATTENDANT_RETURN_IF_ERROR(CheckDim(input.values.dim,
                                       heads.value->input_dim(), names.values,
                                       "the model's W_V takes"));
  } else if (heads.output) {
    ATTENDANT_RETURN_IF_ERROR(CheckDim(input.values.dim * heads.head_count,
                                       heads.output->input_dim(), names.values,
                                       "the model's W_O takes from all heads"));
  }
  return ValidateMask(input);
}

absl::StatusOr<std::int64_t> AttendMultiHead(const MultiHeadInput& input,
                                             float* outputs, float* weights) {
  ATTENDANT_RETURN_IF_ERROR(ValidateMultiHead(input));
  if (weights != nullptr && input.activation_kind != ActivationKind::kSoftmax) {
    return InvalidField("activation_kind", "another",
                        "SOFTMAX, to be given weights");
  }
  KeyTile tile(input);
  QueryBlock block(input);
  const std::int64_t m = input.queries.row_count;
  for (std::int64_t first = 0; first < m; first += block.capacity()) {
    ATTENDANT_RETURN_IF_ERROR(
        block.Start(first, std::min(block.capacity(), m - first), weights));
    for (std::int64_t key = 0; key < tile.order_size(); key += kTileKeys) {
      ATTENDANT_RETURN_IF_ERROR(tile.Load(key, block.last()));
      ATTENDANT_RETURN_IF_ERROR(block.Add(tile));
    }
    ATTENDANT_RETURN_IF_ERROR(block.Finish(outputs));
  }
  return block.scored_count();
}

}  // namespace attendant

#include "core/attention/approximations/approximation.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/approximations/lsh_attention.h"
#include "core/attention/approximations/lsh_buckets.h"
#include "core/attention/approximations/row_reduction.h"
#include "core/attention/heads/head_join.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Bounds the keys and values of one head, which LshAttention holds.
absl::Status ValidateLshBytes(const MultiHeadInput& input) {
  std::int64_t floats = input.head_key_dim();
  if (input.projects_values()) floats += input.head_value_dim();
  const std::int64_t bytes =
      input.keys.row_count * floats * std::int64_t{sizeof(float)};
  if (bytes <= kMaxLshBytes) return absl::OkStatus();
  return OverLimit(
      "approximation.lsh",
      absl::StrCat("keys and projected values of ", bytes, " bytes in a head"),
      absl::StrCat("at most ", kMaxLshBytes));
}

absl::Status Validate(const LshAttentionOptions& options, std::int64_t dim) {
  constexpr absl::string_view kBuckets = "approximation.lsh.bucket_count";
  ATTENDANT_RETURN_IF_ERROR(CheckCount(options.round_count, 1, kMaxLshRounds,
                                       "approximation.lsh.round_count"));
  const std::int64_t buckets = options.bucket_count;
  if (buckets == 0) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(CheckCount(buckets, 2, kMaxLshBuckets, kBuckets));
  if (buckets % 2 != 0) {
    return InvalidField(kBuckets, absl::StrCat(buckets), "an even number");
  }
  const std::int64_t most =
      std::min(kMaxLshBuckets, MostLshBuckets(options.round_count, dim));
  if (buckets <= most) return absl::OkStatus();
  return OverLimit(
      kBuckets, absl::StrCat(buckets),
      absl::StrCat("at most ", most, " with round_count ", options.round_count,
                   " and keys of dimension ", dim));
}

absl::StatusOr<std::int64_t> AttendReduced(const MultiHeadInput& input,
                                           const LinformerOptions& options,
                                           float* outputs) {
  ATTENDANT_ASSIGN_OR_RETURN(const ReducedKeys reduced,
                             ReduceKeys(input, options));
  MultiHeadInput problem = input;
  problem.keys = reduced.keys.view();
  problem.values = reduced.values.view();
  problem.mask = {};
  problem.names.keys = problem.names.values = kReducedRows;
  return AttendMultiHead(problem, outputs);
}

absl::StatusOr<std::int64_t> AttendLsh(const MultiHeadInput& input,
                                       const LshAttentionOptions& options,
                                       LastLshBuckets& buckets, float* outputs,
                                       float* weights) {
  ATTENDANT_ASSIGN_OR_RETURN(
      auto hash, buckets.Get(LshShapeOf(input, options), input.interrupt));
  const std::int64_t m = input.queries.row_count;
  const std::int64_t n = input.keys.row_count;
  if (weights != nullptr) {
    std::fill_n(weights, input.head_count() * m * n, 0.0f);
  }
  LshAttention attention(input, std::move(hash));
  HeadJoin join(input, m);
  join.Start(m, outputs);
  std::vector<float> pooled(static_cast<std::size_t>(input.head_value_dim()));
  LshFound found;
  for (std::int64_t head = 0; head < input.head_count(); ++head) {
    ATTENDANT_RETURN_IF_ERROR(attention.LoadHead(head));
    join.StartHead(head);
    for (std::int64_t i = 0; i < m; ++i) {
      ATTENDANT_RETURN_IF_ERROR(attention.Attend(i, pooled.data(), found));
      join.Add(i, pooled.data(), found.positions.empty());
      if (weights == nullptr) continue;
      float* row = weights + (head * m + i) * n;
      for (std::size_t k = 0; k < found.positions.size(); ++k) {
        row[found.positions[k]] = found.weights[k];
      }
    }
  }
  ATTENDANT_RETURN_IF_ERROR(join.Finish());
  return attention.scored_count();
}

}  // namespace

absl::Status ValidateApproximation(const Approximation& approximation,
                                   const MultiHeadInput& input) {
  if (IsExact(approximation)) return absl::OkStatus();
  if (input.activation_kind != ActivationKind::kSoftmax) {
    return InvalidField(
        "activation_kind",
        input.activation_kind == ActivationKind::kSigmoid ? "SIGMOID" : "NONE",
        "SOFTMAX, with an approximation");
  }
  if (const auto* lsh = std::get_if<LshAttentionOptions>(&approximation)) {
    ATTENDANT_RETURN_IF_ERROR(ValidateLshBytes(input));
    return Validate(*lsh, input.head_key_dim());
  }
  const auto& linformer = std::get<LinformerOptions>(approximation);
  if (input.mask.causal) {
    return InvalidField("causal", "true", "false: reduced rows have no order");
  }
  if (!input.mask.forbidden.empty()) {
    return InvalidField("mask.forbidden", "pairs",
                        "none: reduced rows are no tokens");
  }
  return CheckCount(linformer.row_count, 1, kMaxReducedRows,
                    "approximation.linformer.row_count");
}

absl::StatusOr<std::int64_t> AttendApproximately(
    const MultiHeadInput& input, const Approximation& approximation,
    LastLshBuckets& buckets, float* outputs, float* weights) {
  if (IsExact(approximation)) return AttendMultiHead(input, outputs, weights);
  ATTENDANT_RETURN_IF_ERROR(ValidateMultiHead(input));
  ATTENDANT_RETURN_IF_ERROR(ValidateApproximation(approximation, input));
  if (const auto* lsh = std::get_if<LshAttentionOptions>(&approximation)) {
    return AttendLsh(input, *lsh, buckets, outputs, weights);
  }
  if (weights != nullptr) {
    return InvalidField("include_weights", "true",
                        "false: reduced rows are no tokens");
  }
  return AttendReduced(input, std::get<LinformerOptions>(approximation),
                       outputs);
}

}  // namespace attendant

#include "core/shortlist/key_scorer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/attention/model.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"
#include "core/shortlist/inverse_norm.h"

namespace attendant {
namespace {

absl::Status LogitOverflows() {
  return StatusWithReason(absl::StatusCode::kInvalidArgument,
                          "query: a logit overflows; lower the query's norm or "
                          "raise the temperature",
                          "LOGIT_OVERFLOW");
}

// Infinities and NaN have all exponent bits set. Without a branch, so that the
// compiler vectorises it.
bool AllFinite(const float* numbers, std::int64_t n) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t found = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    found |= (std::bit_cast<std::uint32_t>(numbers[i]) & kExponent) == kExponent
                 ? 1
                 : 0;
  }
  return found == 0;
}

}  // namespace

KeyScorer::KeyScorer(const ScanQuery& query)
    : query_(query),
      dim_(static_cast<std::int64_t>(query.query.size())),
      key_dim_(query.projection != nullptr ? query.projection->weight.dim
                                           : dim_),
      factor_(static_cast<float>(query.logit_factor)),
      projected_(query.projection != nullptr
                     ? static_cast<std::size_t>(kProjectedRows * dim_)
                     : 0) {}

absl::Status KeyScorer::Validate() const {
  return std::isfinite(factor_) ? absl::OkStatus() : LogitOverflows();
}

void KeyScorer::Similarities(const float* keys, const float* inverse_norms,
                             std::int64_t n, float* similarities) {
  if (query_.projection == nullptr) {
    Score(keys, inverse_norms, n, similarities);
    return;
  }
  float projected_norms[kProjectedRows];
  for (std::int64_t begin = 0; begin < n; begin += kProjectedRows) {
    const std::int64_t count = std::min(kProjectedRows, n - begin);
    ProjectRows(query_.projection->weight, query_.projection->bias,
                {keys + begin * key_dim_, count, key_dim_}, projected_.data());
    const bool cosine = query_.score_kind == ScoreKind::kCosine;
    for (std::int64_t i = 0; cosine && i < count; ++i) {
      projected_norms[i] = InverseNorm(
          {projected_.data() + i * dim_, static_cast<std::size_t>(dim_)});
    }
    Score(projected_.data(), projected_norms, count, similarities + begin);
  }
}

void KeyScorer::Score(const float* keys, const float* inverse_norms,
                      std::int64_t n, float* similarities) const {
  const Kernels& kernels = ActiveKernels();
  if (query_.score_kind == ScoreKind::kAdditive) {
    kernels.TanhDotRows(query_.query.data(), query_.output_weight.data(), keys,
                        n, dim_, similarities);
    return;
  }
  kernels.DotRows(query_.query.data(), keys, n, dim_, similarities);
  FromDots(inverse_norms, n, similarities);
}

void KeyScorer::SimilaritiesAt(const float* keys, const float* inverse_norms,
                               std::span<const std::int32_t> positions,
                               float* similarities) {
  const std::size_t count = positions.size();
  if (!TakesDots(query_)) {
    for (std::size_t i = 0; i < count; ++i) {
      Similarities(keys + positions[i] * key_dim_, inverse_norms + positions[i],
                   1, similarities + i);
    }
    return;
  }
  ActiveKernels().DotRowsAt(query_.query.data(), keys, positions.data(),
                            static_cast<std::int64_t>(count), dim_,
                            similarities);
  if (query_.score_kind != ScoreKind::kCosine) return;
  for (std::size_t i = 0; i < count; ++i) {
    similarities[i] *= inverse_norms[positions[i]];
  }
}

void KeyScorer::FromDots(const float* inverse_norms, std::int64_t n,
                         float* dots) const {
  if (query_.score_kind != ScoreKind::kCosine) return;
  for (std::int64_t i = 0; i < n; ++i) dots[i] *= inverse_norms[i];
}

absl::Status KeyScorer::Logits(const float* similarities, const RowIndex* rows,
                               std::int64_t n, float* logits) const {
  bool all_finite = ActiveKernels().Scale(similarities, n, factor_, logits);
  if (query_.bias != nullptr) {
    query_.bias->AddTo(rows, n, logits);
    all_finite = AllFinite(logits, n);
  }
  return all_finite ? absl::OkStatus() : LogitOverflows();
}

absl::Status ScoreRows(const KeyIndex& index, const ScanQuery& query,
                       std::span<const RowIndex> rows,
                       std::span<float> similarities, std::span<float> logits) {
  KeyScorer scorer(query);
  ATTENDANT_RETURN_IF_ERROR(scorer.Validate());
  constexpr std::size_t kInterruptRows = 1024;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % kInterruptRows == 0 && query.interrupt != nullptr) {
      ATTENDANT_RETURN_IF_ERROR(query.interrupt->Check());
    }
    const std::span<const float> key = index.Key(rows[i]);
    if (key.empty()) {
      similarities[i] = logits[i] = -std::numeric_limits<float>::infinity();
      continue;
    }
    const float inverse_norm =
        query.score_kind == ScoreKind::kCosine ? InverseNorm(key) : 0;
    scorer.Similarities(key.data(), &inverse_norm, 1, &similarities[i]);
    ATTENDANT_RETURN_IF_ERROR(
        scorer.Logits(&similarities[i], &rows[i], 1, &logits[i]));
  }
  return absl::OkStatus();
}

}  // namespace attendant

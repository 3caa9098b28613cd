#include "core/shortlist/scan/key_scorer.h"

#include <algorithm>
#include <cmath>

#include "core/attention/models/model.h"
#include "core/attention/softmax/score.h"
#include "core/base/minus_infinity.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"
#include "core/kernels/prefetch.h"
#include "core/shortlist/keys/inverse_norm.h"

namespace attendant {
namespace {

// Returns the floats of a row's key, which it prefetches; null if it has none.
const float* Fetch(const KeyIndex& index, RowIndex row) {
  const std::span<const float> key = index.Key(row);
  PrefetchRow(key.data(), static_cast<std::int64_t>(key.size()));
  return key.empty() ? nullptr : key.data();
}

// Finds the keys of rows at arbitrary places, and their similarities.
void ScoreBlock(const KeyIndex& index, const ScanQuery& query,
                std::span<const RowIndex> rows, KeyScorer& scorer,
                const float** keys, float* similarities) {
  // Keys are prefetched ahead, as in RowScan.
  constexpr std::size_t kAhead = 16;
  const bool cosine = query.score_kind == ScoreKind::kCosine;
  for (std::size_t i = 0; i < rows.size() + kAhead; ++i) {
    if (i < rows.size()) keys[i] = Fetch(index, rows[i]);
    if (i < kAhead) continue;
    const std::size_t now = i - kAhead;
    if (keys[now] == nullptr) {
      similarities[now] = kMinusInfinityF;
      continue;
    }
    const float inverse_norm = cosine ? index.inverse_norm(rows[now]) : 0;
    scorer.Similarities(keys[now], &inverse_norm, 1, similarities + now);
  }
}

}  // namespace

absl::Status BiasOverflows() {
  return FieldError(absl::StatusCode::kInvalidArgument, "LOGIT_OVERFLOW",
                    "biases", "a logit that overflows",
                    "smaller factors, or items of smaller attributes");
}

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
  return std::isfinite(factor_) ? absl::OkStatus() : LogitOverflows("query");
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
  if (!ActiveKernels().Scale(similarities, n, factor_, logits)) {
    return LogitOverflows("query");
  }
  if (query_.bias == nullptr) return absl::OkStatus();
  query_.bias->AddTo(rows, n, logits);
  return AllFinite({logits, static_cast<std::size_t>(n)}) ? absl::OkStatus()
                                                          : BiasOverflows();
}

absl::Status ScoreRows(const KeyIndex& index, const ScanQuery& query,
                       std::span<const RowIndex> rows,
                       std::span<float> similarities, std::span<float> logits) {
  KeyScorer scorer(query);
  ATTENDANT_RETURN_IF_ERROR(scorer.Validate());
  constexpr std::size_t kBlockRows = 1024;
  const float* keys[kBlockRows];
  for (std::size_t begin = 0; begin < rows.size(); begin += kBlockRows) {
    if (query.interrupt != nullptr) {
      ATTENDANT_RETURN_IF_ERROR(query.interrupt->Check());
    }
    const std::size_t count = std::min(rows.size() - begin, kBlockRows);
    ScoreBlock(index, query, rows.subspan(begin, count), scorer, keys,
               &similarities[begin]);
    // Computes the logits of runs of rows that have keys.
    for (std::size_t i = 0; i < count;) {
      std::size_t end = i;
      while (end < count && keys[end] != nullptr) ++end;
      ATTENDANT_RETURN_IF_ERROR(scorer.Logits(
          &similarities[begin + i], &rows[begin + i],
          static_cast<std::int64_t>(end - i), &logits[begin + i]));
      for (i = end; i < count && keys[i] == nullptr; ++i) {
        logits[begin + i] = kMinusInfinityF;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace attendant

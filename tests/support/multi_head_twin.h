// Slow twin of blocked attention: the whole n x n matrix of one head, by plain
// loops in doubles.
#ifndef ATTENDANT_TESTS_SUPPORT_MULTI_HEAD_TWIN_H_
#define ATTENDANT_TESTS_SUPPORT_MULTI_HEAD_TWIN_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/attention/softmax/score.h"
#include "core/base/views.h"

namespace attendant {

struct TwinAnswer {
  std::vector<double> weights;  // [m, n]
  std::vector<double> outputs;  // [m, value_dim]
  // At most how far a float answer's outputs may be from these, for each query.
  std::vector<double> tolerances;      // [m]
  std::vector<double> log_tolerances;  // of the logarithms of weights [m]
  std::int64_t scored_count = 0;
};

// Attends under SOFTMAX; masked(i, j) is true if query i may not attend to key
// j.
//
// Tolerances, with u = 2^-24 and d components: scaling the query costs u a
// component and a dot product makes d + 1 roundings, so a logit is off by (d +
// 2) u times the sum of |q_i k_i| x scale / temperature. Under COSINE both
// norms are off by d u and the scaled rows by u, which 3 d u covers. An exp is
// off by 2^-21 + gap x u, and its gap by one more rounding. Numerator and
// denominator double all that in a weight. An output adds the roundings of a
// tile's 128 terms, and its own.
inline TwinAnswer AttendTwin(
    MatrixView queries, MatrixView keys, MatrixView values, ScoreKind kind,
    double temperature,
    const std::function<bool(std::int64_t, std::int64_t)>& masked) {
  const double u = std::ldexp(1.0, -24);
  const std::int64_t m = queries.row_count;
  const std::int64_t n = keys.row_count;
  const double factor = LogitFactor(kind, queries.dim, temperature);
  const auto dim = static_cast<double>(queries.dim);
  TwinAnswer twin;
  twin.weights.assign(static_cast<std::size_t>(m * n), 0);
  twin.outputs.assign(static_cast<std::size_t>(m * values.dim), 0);
  for (std::int64_t i = 0; i < m; ++i) {
    std::vector<double> logits;
    std::vector<std::int64_t> attended;
    double magnitude = 0;
    double max = -std::numeric_limits<double>::infinity();
    double min = std::numeric_limits<double>::infinity();
    double max_value = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      if (masked(i, j)) continue;
      double dot = 0;
      double terms = 0;
      for (std::int64_t d = 0; d < queries.dim; ++d) {
        const double term = double{queries.data[i * queries.dim + d]} *
                            keys.data[j * keys.dim + d];
        dot += term;
        terms += std::abs(term);
      }
      if (kind == ScoreKind::kCosine) {
        const double norms = Norm(queries.Row(i)) * Norm(keys.Row(j));
        dot /= norms;
        terms = 1;
      }
      attended.push_back(j);
      logits.push_back(dot * factor);
      magnitude = std::max(magnitude, terms * factor);
      max = std::max(max, logits.back());
      min = std::min(min, logits.back());
      for (const float component : values.Row(j)) {
        max_value = std::max(max_value, double{std::abs(component)});
      }
    }
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit - max);
    for (std::size_t a = 0; a < attended.size(); ++a) {
      const double weight = std::exp(logits[a] - max) / sum;
      twin.weights[i * n + attended[a]] = weight;
      for (std::int64_t d = 0; d < values.dim; ++d) {
        twin.outputs[i * values.dim + d] +=
            weight * values.data[attended[a] * values.dim + d];
      }
    }
    twin.scored_count += static_cast<std::int64_t>(attended.size());
    const double gap = attended.empty() ? 0 : max - min;
    const double logit_error =
        ((kind == ScoreKind::kCosine ? 4 * dim : dim) + 2) * u * magnitude;
    const double weight_error =
        2.01 * (logit_error + std::ldexp(1.0, -21) + 2 * gap * u);
    twin.log_tolerances.push_back(weight_error);
    twin.tolerances.push_back(max_value * (weight_error + 131 * u));
  }
  return twin;
}

inline bool NothingMasked(std::int64_t, std::int64_t) { return false; }

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_MULTI_HEAD_TWIN_H_

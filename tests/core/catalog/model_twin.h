// Slow twin of attention through a model: plain loops in doubles.
#ifndef ATTENDANT_TESTS_CORE_CATALOG_MODEL_TWIN_H_
#define ATTENDANT_TESTS_CORE_CATALOG_MODEL_TWIN_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "core/attention/models/model.h"

namespace attendant {

using Doubles = std::vector<double>;

inline Doubles ToDoubles(std::span<const float> floats) {
  return {floats.begin(), floats.end()};
}

inline double TwinDot(const Doubles& a, const Doubles& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Returns W x + b, or W x if b is empty.
inline Doubles TwinProject(const Matrix& weight, std::span<const float> bias,
                           const Doubles& input) {
  Doubles output;
  for (std::int64_t r = 0; r < weight.row_count; ++r) {
    double sum = bias.empty() ? 0 : bias[r];
    for (std::int64_t c = 0; c < weight.column_count; ++c) {
      sum += double{weight.data[r * weight.column_count + c]} * input[c];
    }
    output.push_back(sum);
  }
  return output;
}

inline Doubles TwinProject(const Projection& projection, const Doubles& input) {
  return TwinProject(projection.weight, projection.bias, input);
}

// Returns part `i` of `count` equal parts.
inline Doubles TwinPart(const Doubles& all, std::int64_t count,
                        std::int64_t i) {
  const auto size = static_cast<std::ptrdiff_t>(all.size()) / count;
  return {all.begin() + i * size, all.begin() + (i + 1) * size};
}

// Returns the similarity of a query and a key in one head.
inline double TwinSimilarity(const AttentionModel& model, ScoreKind kind,
                             std::int64_t head, const Doubles& query,
                             const Doubles& key) {
  if (const BilinearForm* form = model.bilinear()) {
    return TwinDot(query, TwinProject(form->weight, {}, key));
  }
  if (const AdditiveNetwork* network = model.additive()) {
    const Doubles q = TwinProject(network->query_weight, {}, query);
    const Doubles k = TwinProject(network->key_weight, {}, key);
    double sum = 0;
    for (std::size_t i = 0; i < q.size(); ++i) {
      sum += network->output_weight[i] * std::tanh(q[i] + k[i]);
    }
    return sum;
  }
  const MultiHeadProjections& heads = *model.multi_head();
  const Doubles q =
      TwinPart(TwinProject(heads.query, query), heads.head_count, head);
  const Doubles k =
      TwinPart(TwinProject(heads.key, key), heads.head_count, head);
  const double dot = TwinDot(q, k);
  return kind == ScoreKind::kCosine
             ? dot / std::sqrt(TwinDot(q, q) * TwinDot(k, k))
             : dot;
}

inline double TwinLogSumExp(const Doubles& logits) {
  const double max = *std::ranges::max_element(logits);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - max);
  return max + std::log(sum);
}

inline Doubles TwinSoftmax(const Doubles& logits) {
  const double log_partition = TwinLogSumExp(logits);
  Doubles weights;
  for (const double logit : logits) {
    weights.push_back(std::exp(logit - log_partition));
  }
  return weights;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CORE_CATALOG_MODEL_TWIN_H_

// Slow twin that tests compare fast answers with: exact attention of one query
// in double precision, by plain loops.
#ifndef ATTENDANT_TESTS_SUPPORT_REFERENCE_H_
#define ATTENDANT_TESTS_SUPPORT_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/attention/softmax/score.h"

namespace attendant {

// A row-major matrix of doubles.
struct ReferenceMatrix {
  std::int64_t row_count = 0;
  std::int64_t dim = 0;
  std::vector<double> data;  // [row_count, dim]
};

struct ReferenceAnswer {
  std::vector<double> similarities;  // [n]
  std::vector<double> logits;        // [n]
  std::vector<double> weights;       // [n], sum 1
  double log_partition = 0;
  double entropy = 0;          // nats
  double effective_count = 0;  // 1 / sum of squared weights
  std::vector<double> pooled;  // [values.dim]
};

// Attends with query [keys.dim] over keys [n, dim] and values [n, value_dim],
// n >= 1. Shapes must agree; norms must not be 0 under COSINE.
inline ReferenceAnswer AttendReference(std::span<const double> query,
                                       const ReferenceMatrix& keys,
                                       const ReferenceMatrix& values,
                                       ScoreKind kind, double temperature) {
  const auto n = static_cast<std::size_t>(keys.row_count);
  const auto dim = static_cast<std::size_t>(keys.dim);
  const auto value_dim = static_cast<std::size_t>(values.dim);
  const double factor = LogitFactor(kind, keys.dim, temperature);
  ReferenceAnswer answer;

  double query_square = 0;
  for (const double component : query) query_square += component * component;
  for (std::size_t r = 0; r < n; ++r) {
    double dot = 0;
    double key_square = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      const double component = keys.data[r * dim + d];
      dot += query[d] * component;
      key_square += component * component;
    }
    const double similarity =
        kind == ScoreKind::kCosine
            ? dot / (std::sqrt(query_square) * std::sqrt(key_square))
            : dot;
    answer.similarities.push_back(similarity);
    answer.logits.push_back(similarity * factor);
  }

  const double max = *std::ranges::max_element(answer.logits);
  double sum = 0;
  for (const double logit : answer.logits) sum += std::exp(logit - max);
  answer.log_partition = max + std::log(sum);

  double square_sum = 0;
  answer.pooled.assign(value_dim, 0);
  for (std::size_t r = 0; r < n; ++r) {
    const double weight = std::exp(answer.logits[r] - max) / sum;
    answer.weights.push_back(weight);
    answer.entropy += weight * (answer.log_partition - answer.logits[r]);
    square_sum += weight * weight;
    for (std::size_t d = 0; d < value_dim; ++d) {
      answer.pooled[d] += weight * values.data[r * value_dim + d];
    }
  }
  answer.effective_count = 1 / square_sum;
  return answer;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_REFERENCE_H_

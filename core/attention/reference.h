// The slow twin: exact attention of one query in double precision with plain
// loops, which the tests hold fast answers to.
#ifndef ATTENDANT_CORE_ATTENTION_REFERENCE_H_
#define ATTENDANT_CORE_ATTENTION_REFERENCE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/attention/score.h"

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
ReferenceAnswer AttendReference(std::span<const double> query,
                                const ReferenceMatrix& keys,
                                const ReferenceMatrix& values, ScoreKind kind,
                                double temperature);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_REFERENCE_H_

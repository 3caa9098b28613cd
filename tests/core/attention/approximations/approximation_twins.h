// Shared by the tests of approximate attention: inputs, and the approximations
// as plain loops in doubles.
#ifndef ATTENDANT_TESTS_CORE_ATTENTION_APPROXIMATIONS_APPROXIMATION_TWINS_H_
#define ATTENDANT_TESTS_CORE_ATTENTION_APPROXIMATIONS_APPROXIMATION_TWINS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/approximations/approximation.h"
#include "core/attention/approximations/lsh_buckets.h"
#include "core/attention/approximations/row_reduction.h"
#include "core/base/status.h"

namespace attendant {

inline Matrix Normals(std::int64_t rows, std::int64_t dim, std::uint64_t seed) {
  // A generator other than the one that the approximations draw from.
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Matrix matrix = {rows, dim, {}};
  for (std::int64_t i = 0; i < rows * dim; ++i) {
    matrix.data.push_back(normal(random));
  }
  return matrix;
}

inline std::shared_ptr<const LshBuckets> DrawBuckets(const LshShape& shape) {
  return LshBuckets::Draw(shape, {}).value();
}

inline absl::StatusOr<Matrix> Reduced(MatrixView rows,
                                      std::span<const std::int32_t> positions,
                                      const LinformerOptions& options) {
  const MatrixView inputs[] = {rows};
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<Matrix> reduced,
                             ReduceRows(inputs, positions, options, {}));
  return std::move(reduced[0]);
}

// argmax([x R; -x R]) by plain loops.
inline std::int32_t BucketTwin(const LshBuckets& hash,
                               std::span<const float> row, std::int64_t round) {
  std::int64_t best = 0;
  double greatest = -1;
  const std::int64_t half = hash.bucket_count() / 2;
  for (std::int64_t bucket = 0; bucket < hash.bucket_count(); ++bucket) {
    const float* direction = hash.direction(round, bucket % half);
    double dot = 0;
    for (std::size_t d = 0; d < row.size(); ++d) {
      dot += double{row[d]} * direction[d];
    }
    if (bucket >= half) dot = -dot;
    if (dot > greatest) {
      greatest = dot;
      best = bucket;
    }
  }
  return static_cast<std::int32_t>(best);
}

// Marks each query-key pair that shares no bucket, by the definition. A query
// that shares a bucket with no key has no pair marked.
inline std::vector<bool> Unmet(const Matrix& queries, const Matrix& keys,
                               const LshAttentionOptions& options,
                               bool causal) {
  const auto shared = DrawBuckets({queries.column_count, options.bucket_count,
                                   options.round_count, options.seed});
  const LshBuckets& hash = *shared;
  std::vector<bool> unmet;
  for (std::int64_t i = 0; i < queries.row_count; ++i) {
    std::vector<bool> row;
    for (std::int64_t j = 0; j < keys.row_count; ++j) {
      bool meets = false;
      for (std::int64_t round = 0; round < options.round_count; ++round) {
        meets |= BucketTwin(hash, queries.view().Row(i), round) ==
                 BucketTwin(hash, keys.view().Row(j), round);
      }
      row.push_back(!meets || (causal && j > i));
    }
    const bool none =
        std::ranges::all_of(row, [](bool unmet_key) { return unmet_key; });
    for (std::int64_t j = 0; j < keys.row_count; ++j) {
      unmet.push_back(none ? causal && j > i : row[j]);
    }
  }
  return unmet;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CORE_ATTENTION_APPROXIMATIONS_APPROXIMATION_TWINS_H_

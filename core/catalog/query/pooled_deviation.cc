#include "core/catalog/query/pooled_deviation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/attention/softmax/score.h"

namespace attendant {

double PooledDeviation(std::span<const PooledPart> parts,
                       const SoftmaxPartition& partition,
                       std::span<const float> pooled_value) {
  if (partition.count == 0) return 0;
  const double log_square = 2 * (partition.max + std::log(partition.sum));
  double variance = 0;
  for (const PooledPart& part : parts) {
    const PooledError& error = part.error;
    // Only rounding errors remain.
    if (error.mean.empty()) continue;
    double square_norm = 0;
    double product = 0;
    double distance = 0;
    for (std::size_t d = 0; d < pooled_value.size(); ++d) {
      const double component = pooled_value[d];
      const double gap = error.mean[d] - component;
      square_norm += component * component;
      product += component * error.mean[d];
      distance += gap * gap;
    }
    // With the arguments in this order, std::max keeps a NaN.
    const double spread =
        std::max(error.mean_square - 2 * product + square_norm, distance);
    variance += std::exp(error.log_weight_variance - log_square) * spread +
                std::exp(error.log_rounding_variance - log_square) +
                std::exp(part.log_sum_variance - log_square) * distance;
  }
  return std::sqrt(variance);
}

double RelativeError(double deviation, std::span<const float> pooled_value) {
  // 1.96 for a normal number, increased because errors of codes are common to
  // all queries of an index: if they exceed the expectation, they do so for
  // all.
  constexpr double kNormDeviations = 2.25;
  if (deviation == 0) return kMinRelativeError;
  const double error = kNormDeviations * deviation / Norm(pooled_value);
  if (!std::isfinite(error)) return std::numeric_limits<double>::infinity();
  return std::max(kMinRelativeError, error);
}

}  // namespace attendant

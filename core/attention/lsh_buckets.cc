#include "core/attention/lsh_buckets.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/attention/normal.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

// Directions that are projected on at a time.
constexpr std::int64_t kDirections = 256;

}  // namespace

LshBuckets::LshBuckets(std::int64_t dim, std::int64_t bucket_count,
                       std::int64_t round_count, std::uint64_t seed)
    : dim_(dim),
      bucket_count_(bucket_count),
      round_count_(round_count),
      directions_(
          static_cast<std::size_t>(round_count * bucket_count / 2 * dim)) {
  for (std::size_t i = 0; i < directions_.size(); ++i) {
    directions_.data()[i] = NormalAt(seed, i);
  }
}

void LshBuckets::Of(const float* row, std::int32_t* buckets) const {
  const std::int64_t half = bucket_count_ / 2;
  float dots[kDirections];
  for (std::int64_t round = 0; round < round_count_; ++round) {
    float greatest = 0;
    std::int64_t bucket = 0;
    for (std::int64_t first = 0; first < half; first += kDirections) {
      const std::int64_t count = std::min(kDirections, half - first);
      ActiveKernels().DotRows(row, direction(round, first), count, dim_, dots);
      for (std::int64_t i = 0; i < count; ++i) {
        if (!(std::abs(dots[i]) > greatest)) continue;
        greatest = std::abs(dots[i]);
        bucket = first + i + (dots[i] < 0 ? half : 0);
      }
    }
    buckets[round] = static_cast<std::int32_t>(bucket);
  }
}

}  // namespace attendant

// The scalar twins: loops that define what the kernels compute.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/levels.h"

namespace attendant {
namespace {

// Sums in doubles, where a product is exact: one sum of floats would lose
// digits that the many sums of the other levels keep.
float Dot(const float* a, const float* b, std::int64_t dim) {
  double sum = 0;
  for (std::int64_t d = 0; d < dim; ++d) sum += double{a[d]} * b[d];
  return static_cast<float>(sum);
}

void DotRows(const float* query, const float* rows, std::int64_t row_count,
             std::int64_t dim, float* dots) {
  for (std::int64_t r = 0; r < row_count; ++r) {
    dots[r] = Dot(query, rows + r * dim, dim);
  }
}

void DotRowsMulti(const float* queries, std::int64_t query_count,
                  const float* rows, std::int64_t row_count, std::int64_t dim,
                  float* dots) {
  for (std::int64_t q = 0; q < query_count; ++q) {
    DotRows(queries + q * dim, rows, row_count, dim, dots + q * row_count);
  }
}

void TanhDotRows(const float* query, const float* output_weight,
                 const float* rows, std::int64_t row_count, std::int64_t dim,
                 float* dots) {
  for (std::int64_t r = 0; r < row_count; ++r) {
    const float* row = rows + r * dim;
    double sum = 0;
    for (std::int64_t d = 0; d < dim; ++d) {
      sum += double{output_weight[d]} * std::tanh(query[d] + row[d]);
    }
    dots[r] = static_cast<float>(sum);
  }
}

void DotRowsAt(const float* query, const float* rows,
               const std::int32_t* positions, std::int64_t count,
               std::int64_t dim, float* dots) {
  for (std::int64_t i = 0; i < count; ++i) {
    DotRows(query, rows + positions[i] * dim, 1, dim, dots + i);
  }
}

bool Scale(const float* numbers, std::int64_t n, float factor, float* scaled) {
  bool all_finite = true;
  for (std::int64_t i = 0; i < n; ++i) {
    scaled[i] = numbers[i] * factor;
    all_finite &= std::isfinite(scaled[i]);
  }
  return all_finite;
}

float Max(const float* numbers, std::int64_t n) {
  return *std::max_element(numbers, numbers + n);
}

float AddMax(const float* terms, std::int64_t n, float* numbers) {
  for (std::int64_t i = 0; i < n; ++i) numbers[i] += terms[i];
  return Max(numbers, n);
}

float CorrectMax(const float* scales, float factor, float shift, std::int64_t n,
                 float* logits) {
  for (std::int64_t i = 0; i < n; ++i) {
    logits[i] += shift - factor * (scales[i] * scales[i]);
  }
  return Max(logits, n);
}

ExpSums SumExps(const float* logits, std::int64_t n, float max, float* exps) {
  ExpSums sums;
  for (std::int64_t i = 0; i < n; ++i) {
    const float gap = logits[i] - max;
    const float e = gap < kMinGap ? 0.0f : std::exp(gap);
    if (exps != nullptr) exps[i] = e;
    // A gap may be -infinity, which times 0 is NaN.
    if (e == 0) continue;
    sums.sum += e;
    sums.sum_gap += double{e} * gap;
    sums.sum_square += double{e} * e;
  }
  return sums;
}

void SumPowers(const float* numbers, std::int64_t n, double* sums) {
  std::fill_n(sums, kPowers, 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    float power = numbers[i];
    for (int k = 0; k < kPowers && power >= kMinSquared; ++k) {
      power *= power;
      sums[k] += power;
    }
  }
}

std::int64_t SelectAtLeast(const float* numbers, std::int64_t n,
                           float threshold, std::int32_t* positions) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (numbers[i] >= threshold) {
      positions[count++] = static_cast<std::int32_t>(i);
    }
  }
  return count;
}

void NormalLogSums(const NormalLists& lists, const float* scores, float unit,
                   float spread, std::int64_t list_count, float* log_sums) {
  for (std::int64_t l = 0; l < list_count; ++l) {
    const float log_count = lists.log_counts[l];
    if (log_count < 0) {
      log_sums[l] = -std::numeric_limits<float>::infinity();
      continue;
    }
    const float mean = unit * (scores[l] - lists.reaches[l]);
    const float variance =
        mean * mean * lists.mean_shares[l] + spread * lists.variances[l];
    const float limit = 2 * log_count;
    log_sums[l] = mean + (variance <= limit ? log_count + variance / 2
                                            : std::sqrt(variance * limit));
  }
}

double NormalSquares(const NormalLists& lists, const float* scores, float unit,
                     const float* log_sums, const float* weights, float max,
                     std::int64_t list_count, float* log_squares) {
  double sum = 0;
  for (std::int64_t l = 0; l < list_count; ++l) {
    const float mean = unit * (scores[l] - lists.reaches[l]);
    const float log_count = lists.log_counts[l];
    log_squares[l] =
        std::min(2 * log_sums[l], 2 * (2 * log_sums[l] - mean) - 3 * log_count);
    if (weights[l] == 0) continue;
    const float tilted =
        std::min(log_sums[l], 2 * (log_sums[l] - log_count) - mean);
    sum += weights[l] * (tilted - max);
  }
  return sum;
}

void ExpsPerKey(const float* log_sums, const float* log_counts,
                std::int64_t list_count, float power, float max,
                float* of_key) {
  for (std::int64_t l = 0; l < list_count; ++l) {
    const float taken_off = std::max(0.0f, log_counts[l]) + max;
    const float x = std::min(0.0f, power * log_sums[l] - taken_off);
    of_key[l] = x < kMinGap ? 0.0f : std::exp(x);
  }
}

void DotChunks(const float* a, const float* b, std::int64_t n, float* sums) {
  for (std::int64_t i = 0; i < n; i += kChunk) {
    sums[i / kChunk] = Dot(a + i, b + i, std::min(kChunk, n - i));
  }
}

void Rank(const std::uint32_t* numbers, std::int64_t n, std::uint32_t* ranks) {
  for (std::int64_t i = 0; i < n; ++i) {
    ranks[i] = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      ranks[i] +=
          numbers[j] < numbers[i] || (numbers[j] == numbers[i] && j < i);
    }
  }
}

std::int64_t CountAtLeast(const float* numbers, std::int64_t n,
                          float threshold) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += numbers[i] >= threshold ? 1 : 0;
  return count;
}

void Transform(float* vector, std::int64_t size, std::int64_t row_count) {
  for (std::int64_t half = row_count; half < size; half *= 2) {
    for (std::int64_t begin = 0; begin < size; begin += 2 * half) {
      for (std::int64_t i = begin; i < begin + half; ++i) {
        const float sum = vector[i] + vector[half + i];
        vector[half + i] = vector[i] - vector[half + i];
        vector[i] = sum;
      }
    }
  }
}

void AddScaled(double factor, const float* row, std::int64_t dim, double* sum) {
  for (std::int64_t d = 0; d < dim; ++d) sum[d] += factor * row[d];
}

void AddScaledRows(const double* factors, const float* const* rows,
                   std::int64_t n, std::int64_t dim, double* sum) {
  for (std::int64_t r = 0; r < n; ++r) {
    AddScaled(factors[r], rows[r], dim, sum);
  }
}

void PoolRows(const float* weights, std::int64_t query_count, const float* rows,
              std::int64_t row_count, std::int64_t dim, float* sums) {
  std::fill(sums, sums + query_count * dim, 0.0f);
  for (std::int64_t q = 0; q < query_count; ++q) {
    for (std::int64_t r = 0; r < row_count; ++r) {
      const float weight = weights[q * row_count + r];
      for (std::int64_t d = 0; d < dim; ++d) {
        sums[q * dim + d] += weight * rows[r * dim + d];
      }
    }
  }
}

}  // namespace

double ExpsByLibrary(const float* logits, std::int64_t n, double max,
                     double* exps) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    exps[i] = std::exp(logits[i] - max);
    sum += exps[i];
  }
  return sum;
}

const Kernels kScalarKernels = {
    DotRows,       DotRowsAt,     DotRowsMulti, TanhDotRows,  Scale,
    Max,           AddMax,        CorrectMax,   SumExps,      SumPowers,
    ExpsByLibrary, SelectAtLeast, Rank,         CountAtLeast, NormalLogSums,
    NormalSquares, ExpsPerKey,    DotChunks,    Transform,    AddScaled,
    AddScaledRows, PoolRows};

}  // namespace attendant

// Sums of vectors.
#include <immintrin.h>

#include <algorithm>

#include "core/kernels/avx512.h"

namespace attendant::avx512 {
namespace {

constexpr int kPoolQueries = 4;
constexpr int kPoolRegisters = 4;  // 4 x 4 sums, 4 of a row, a weight

// Returns other - v where `second` has a bit, v + other elsewhere.
ATTENDANT_AVX512 inline __m512 SumOrDifference(__m512 v, __m512 other,
                                               __mmask16 second) {
  return _mm512_mask_sub_ps(_mm512_add_ps(v, other), second, other, v);
}

}  // namespace

ATTENDANT_AVX512 void Transform(float* vector, std::int64_t size,
                                std::int64_t row_count) {
  // Stages within a register. A vector of fewer components takes the first of
  // them.
  const __mmask16 mask = FirstLanes(std::min<std::int64_t>(size, kWidth));
  const auto has = [&](std::int64_t half) {
    return row_count <= half && half < size;
  };
  for (std::int64_t i = 0; row_count < kWidth && i < size; i += kWidth) {
    __m512 v = _mm512_maskz_loadu_ps(mask, vector + i);
    if (has(1)) v = SumOrDifference(v, _mm512_permute_ps(v, 0xb1), 0xaaaa);
    if (has(2)) v = SumOrDifference(v, _mm512_permute_ps(v, 0x4e), 0xcccc);
    if (has(4)) {
      v = SumOrDifference(v, _mm512_shuffle_f32x4(v, v, 0xb1), 0xf0f0);
    }
    if (has(8)) {
      v = SumOrDifference(v, _mm512_shuffle_f32x4(v, v, 0x4e), 0xff00);
    }
    _mm512_mask_storeu_ps(vector + i, mask, v);
  }
  for (std::int64_t half = std::max<std::int64_t>(kWidth, row_count);
       half < size; half *= 2) {
    for (std::int64_t begin = 0; begin < size; begin += 2 * half) {
      for (std::int64_t i = begin; i < begin + half; i += kWidth) {
        const __m512 first = _mm512_loadu_ps(vector + i);
        const __m512 second = _mm512_loadu_ps(vector + half + i);
        _mm512_storeu_ps(vector + i, _mm512_add_ps(first, second));
        _mm512_storeu_ps(vector + half + i, _mm512_sub_ps(first, second));
      }
    }
  }
}

ATTENDANT_AVX512 void AddScaled(double factor, const float* row,
                                std::int64_t dim, double* sum) {
  const __m512d factor_lanes = _mm512_set1_pd(factor);
  constexpr std::int64_t kDoubles = 8;
  for (std::int64_t d = 0; d < dim; d += kDoubles) {
    const auto mask = static_cast<__mmask8>(
        FirstLanes(std::min<std::int64_t>(dim - d, kDoubles)));
    const __m512d added = _mm512_fmadd_pd(
        factor_lanes, _mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, row + d)),
        _mm512_maskz_loadu_pd(mask, sum + d));
    _mm512_mask_storeu_pd(sum + d, mask, added);
  }
}

namespace {

// Computes components [begin, begin + 8 kRegisters) of AddScaledRows, whose
// sums stay in registers. The last register holds the lanes of `last`.
template <int kRegisters>
ATTENDANT_AVX512 inline void AddScaledTile(const double* factors,
                                           const float* const* rows,
                                           std::int64_t n, std::int64_t begin,
                                           __mmask8 last, double* sum) {
  constexpr std::int64_t kDoubles = 8;
  constexpr int kLast = kRegisters - 1;
  double* const to = sum + begin;
  __m512d sums[kRegisters];
  ATTENDANT_UNROLL
  for (int i = 0; i < kLast; ++i) sums[i] = _mm512_loadu_pd(to + i * kDoubles);
  sums[kLast] = _mm512_maskz_loadu_pd(last, to + kLast * kDoubles);
  for (std::int64_t r = 0; r < n; ++r) {
    const __m512d factor = _mm512_set1_pd(factors[r]);
    const float* const row = rows[r] + begin;
    ATTENDANT_UNROLL
    for (int i = 0; i < kLast; ++i) {
      sums[i] = _mm512_fmadd_pd(
          factor, _mm512_cvtps_pd(_mm256_loadu_ps(row + i * kDoubles)),
          sums[i]);
    }
    sums[kLast] = _mm512_fmadd_pd(
        factor,
        _mm512_cvtps_pd(_mm256_maskz_loadu_ps(last, row + kLast * kDoubles)),
        sums[kLast]);
  }
  ATTENDANT_UNROLL
  for (int i = 0; i < kLast; ++i) _mm512_storeu_pd(to + i * kDoubles, sums[i]);
  _mm512_mask_storeu_pd(to + kLast * kDoubles, last, sums[kLast]);
}

}  // namespace

ATTENDANT_AVX512 void AddScaledRows(const double* factors,
                                    const float* const* rows, std::int64_t n,
                                    std::int64_t dim, double* sum) {
  constexpr std::int64_t kDoubles = 8;
  constexpr int kTogether = 8;
  std::int64_t d = 0;
  for (; d + kTogether * kDoubles <= dim; d += kTogether * kDoubles) {
    AddScaledTile<kTogether>(factors, rows, n, d, 0xff, sum);
  }
  for (; d < dim; d += kDoubles) {
    const auto last = static_cast<__mmask8>(
        FirstLanes(std::min<std::int64_t>(dim - d, kDoubles)));
    AddScaledTile<1>(factors, rows, n, d, last, sum);
  }
}

namespace {

// Computes sums[q * dim + d] for kQueries queries and kRegisters registers of
// components, the last of which holds `last_count`. Loads a row's components
// once for all the queries.
template <int kQueries, int kRegisters>
ATTENDANT_AVX512 inline void PoolTile(const float* weights, const float* rows,
                                      std::int64_t row_count, std::int64_t dim,
                                      std::int64_t last_count, float* sums) {
  __m512 pooled[kQueries][kRegisters];
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    ATTENDANT_UNROLL
    for (int i = 0; i < kRegisters; ++i) pooled[q][i] = _mm512_setzero_ps();
  }
  const __mmask16 last = FirstLanes(last_count);
  constexpr int kLast = kRegisters - 1;
  for (std::int64_t r = 0; r < row_count; ++r) {
    const float* from = rows + r * dim;
    __m512 row[kRegisters];
    ATTENDANT_UNROLL
    for (int i = 0; i < kLast; ++i) row[i] = _mm512_loadu_ps(from + i * kWidth);
    row[kLast] = _mm512_maskz_loadu_ps(last, from + kLast * kWidth);
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      const __m512 weight = _mm512_set1_ps(weights[q * row_count + r]);
      ATTENDANT_UNROLL
      for (int i = 0; i < kRegisters; ++i) {
        pooled[q][i] = _mm512_fmadd_ps(weight, row[i], pooled[q][i]);
      }
    }
  }
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    float* to = sums + q * dim;
    ATTENDANT_UNROLL
    for (int i = 0; i < kLast; ++i) {
      _mm512_storeu_ps(to + i * kWidth, pooled[q][i]);
    }
    _mm512_mask_storeu_ps(to + kLast * kWidth, last, pooled[q][kLast]);
  }
}

template <int kRegisters>
ATTENDANT_AVX512 inline void PoolQueries(const float* weights,
                                         std::int64_t query_count,
                                         const float* rows,
                                         std::int64_t row_count,
                                         std::int64_t dim,
                                         std::int64_t last_count, float* sums) {
  std::int64_t q = 0;
  for (; q + kPoolQueries <= query_count; q += kPoolQueries) {
    PoolTile<kPoolQueries, kRegisters>(weights + q * row_count, rows, row_count,
                                       dim, last_count, sums + q * dim);
  }
  for (; q < query_count; ++q) {
    PoolTile<1, kRegisters>(weights + q * row_count, rows, row_count, dim,
                            last_count, sums + q * dim);
  }
}

}  // namespace

ATTENDANT_AVX512 void PoolRows(const float* weights, std::int64_t query_count,
                               const float* rows, std::int64_t row_count,
                               std::int64_t dim, float* sums) {
  constexpr std::int64_t kStep = kPoolRegisters * kWidth;
  std::int64_t d = 0;
  for (; d + kStep <= dim; d += kStep) {
    PoolQueries<kPoolRegisters>(weights, query_count, rows + d, row_count, dim,
                                kWidth, sums + d);
  }
  for (; d < dim; d += kWidth) {
    PoolQueries<1>(weights, query_count, rows + d, row_count, dim,
                   std::min<std::int64_t>(dim - d, kWidth), sums + d);
  }
}

}  // namespace attendant::avx512

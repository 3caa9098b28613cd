// Kernels for AVX2 with FMA. The target attribute is on functions, not on the
// file, so that no inline function from a header is compiled for instructions
// that the processor may lack.
#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "core/kernels/levels.h"

#define ATTENDANT_AVX2 __attribute__((target("avx2,fma")))
#define ATTENDANT_AVX2_INLINE ATTENDANT_AVX2 __attribute__((always_inline))
// For loops over a tile's sums: unrolled before any other optimisation, the
// sums stay in registers.
#define ATTENDANT_UNROLL _Pragma("GCC unroll 8")

namespace attendant {
namespace {

constexpr int kWidth = 8;  // floats in a register
// Number of components after which sums are added up and restarted: one long
// sum would lose digits of late components.
constexpr std::int64_t kBlockDim = 64 * kWidth;
constexpr int kTileRows = 4;
constexpr int kTileQueries = 3;  // 3 x 4 sums, 3 queries, a row: 16 registers
constexpr int kPoolQueries = 4;
constexpr int kPoolRegisters = 2;  // 4 x 2 sums, 2 of a row, a weight

// Returns a mask with all bits set in the first `count` of 8 lanes.
ATTENDANT_AVX2 inline __m256i FirstLanes(std::int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Returns the sums of 4 registers. Each is added up by the same tree, whatever
// its position: ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)).
ATTENDANT_AVX2 inline __m128 SumOfEach(const __m256 (&v)[kTileRows]) {
  const __m256 lanes =
      _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
  return _mm_add_ps(_mm256_castps256_ps128(lanes),
                    _mm256_extractf128_ps(lanes, 1));
}

// Adds the products of `count` components to each pair's sum, in steps of the
// width, with the tail masked.
template <int kQueries, int kRows>
ATTENDANT_AVX2_INLINE inline void AddProducts(
    const float* queries, const float* rows, std::int64_t dim,
    std::int64_t count, __m256 (&sums)[kQueries][kTileRows]) {
  const std::int64_t whole = count / kWidth * kWidth;
  const __m256i mask = FirstLanes(count - whole);
  if constexpr (kQueries == 1) {
    // A single query is bound by memory, which is read fastest in order.
    ATTENDANT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const float* row = rows + r * dim;
      __m256 sum = sums[0][r];
      for (std::int64_t d = 0; d < whole; d += kWidth) {
        sum = _mm256_fmadd_ps(_mm256_loadu_ps(queries + d),
                              _mm256_loadu_ps(row + d), sum);
      }
      if (whole < count) {
        sum = _mm256_fmadd_ps(_mm256_maskload_ps(queries + whole, mask),
                              _mm256_maskload_ps(row + whole, mask), sum);
      }
      sums[0][r] = sum;
    }
    return;
  }
  for (std::int64_t d = 0; d < whole; d += kWidth) {
    __m256 query[kQueries];
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      query[q] = _mm256_loadu_ps(queries + q * dim + d);
    }
    ATTENDANT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const __m256 row = _mm256_loadu_ps(rows + r * dim + d);
      ATTENDANT_UNROLL
      for (int q = 0; q < kQueries; ++q) {
        sums[q][r] = _mm256_fmadd_ps(query[q], row, sums[q][r]);
      }
    }
  }
  if (whole < count) {
    __m256 query[kQueries];
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      query[q] = _mm256_maskload_ps(queries + q * dim + whole, mask);
    }
    ATTENDANT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const __m256 row = _mm256_maskload_ps(rows + r * dim + whole, mask);
      ATTENDANT_UNROLL
      for (int q = 0; q < kQueries; ++q) {
        sums[q][r] = _mm256_fmadd_ps(query[q], row, sums[q][r]);
      }
    }
  }
}

// Computes dots[q * stride + r] for kQueries queries and kRows rows. Each pair
// has one sum per block; blocks, of which there is one unless kLong, are added
// in order.
template <int kQueries, int kRows, bool kLong>
ATTENDANT_AVX2 inline void DotTile(const float* queries, const float* rows,
                                   std::int64_t dim, std::int64_t stride,
                                   float* dots) {
  const __m128i stored = _mm256_castsi256_si128(FirstLanes(kRows));
  for (std::int64_t begin = 0; begin == 0 || begin < dim; begin += kBlockDim) {
    __m256 sums[kQueries][kTileRows];
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      ATTENDANT_UNROLL
      for (int r = 0; r < kTileRows; ++r) sums[q][r] = _mm256_setzero_ps();
    }
    AddProducts<kQueries, kRows>(queries, rows, dim,
                                 kLong ? std::min(dim - begin, kBlockDim) : dim,
                                 sums);
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      float* to = dots + q * stride;
      __m128 added = SumOfEach(sums[q]);
      if (begin > 0) added = _mm_add_ps(_mm_maskload_ps(to, stored), added);
      _mm_maskstore_ps(to, stored, added);
    }
    queries += kBlockDim;
    rows += kBlockDim;
  }
}

template <int kRows, bool kLong>
ATTENDANT_AVX2 inline void DotQueries(const float* queries,
                                      std::int64_t query_count,
                                      const float* rows, std::int64_t dim,
                                      std::int64_t stride, float* dots) {
  std::int64_t q = 0;
  for (; q + kTileQueries <= query_count; q += kTileQueries) {
    DotTile<kTileQueries, kRows, kLong>(queries + q * dim, rows, dim, stride,
                                        dots + q * stride);
  }
  for (; q < query_count; ++q) {
    DotTile<1, kRows, kLong>(queries + q * dim, rows, dim, stride,
                             dots + q * stride);
  }
}

template <bool kLong>
ATTENDANT_AVX2 void DotAll(const float* queries, std::int64_t query_count,
                           const float* rows, std::int64_t row_count,
                           std::int64_t dim, float* dots) {
  std::int64_t r = 0;
  for (; r + kTileRows <= row_count; r += kTileRows) {
    DotQueries<kTileRows, kLong>(queries, query_count, rows + r * dim, dim,
                                 row_count, dots + r);
  }
  if (row_count & 2) {
    DotQueries<2, kLong>(queries, query_count, rows + r * dim, dim, row_count,
                         dots + r);
    r += 2;
  }
  if (row_count & 1) {
    DotQueries<1, kLong>(queries, query_count, rows + r * dim, dim, row_count,
                         dots + r);
  }
}

ATTENDANT_AVX2 void DotRowsMulti(const float* queries, std::int64_t query_count,
                                 const float* rows, std::int64_t row_count,
                                 std::int64_t dim, float* dots) {
  if (dim <= kBlockDim) {
    DotAll<false>(queries, query_count, rows, row_count, dim, dots);
  } else {
    DotAll<true>(queries, query_count, rows, row_count, dim, dots);
  }
}

ATTENDANT_AVX2 void DotRows(const float* query, const float* rows,
                            std::int64_t row_count, std::int64_t dim,
                            float* dots) {
  DotRowsMulti(query, 1, rows, row_count, dim, dots);
}

ATTENDANT_AVX2 void DotRowsAt(const float* query, const float* rows,
                              const std::int32_t* positions, std::int64_t count,
                              std::int64_t dim, float* dots) {
  for (std::int64_t i = 0; i < count; ++i) {
    DotRows(query, rows + positions[i] * dim, 1, dim, dots + i);
  }
}

ATTENDANT_AVX2 bool Scale(const float* numbers, std::int64_t n, float factor,
                          float* scaled) {
  const __m256 factor_lanes = _mm256_set1_ps(factor);
  // Infinities and NaN have all exponent bits set.
  const __m256i exponent = _mm256_set1_epi32(0x7f800000);
  __m256i found = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < n; i += kWidth) {
    const __m256i mask = FirstLanes(std::min<std::int64_t>(n - i, kWidth));
    const __m256 product =
        _mm256_mul_ps(_mm256_maskload_ps(numbers + i, mask), factor_lanes);
    const __m256i is_none = _mm256_cmpeq_epi32(
        _mm256_and_si256(_mm256_castps_si256(product), exponent), exponent);
    found = _mm256_or_si256(found, _mm256_and_si256(is_none, mask));
    _mm256_maskstore_ps(scaled + i, mask, product);
  }
  return _mm256_testz_si256(found, found) != 0;
}

// Returns the greatest of n numbers. At(i, mask) supplies the 8 numbers from i
// on, limited to `mask`.
template <typename Numbers>
ATTENDANT_AVX2 inline float MaxOf(const Numbers& numbers, std::int64_t n) {
  const __m256 lowest = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
  const __m256i all = _mm256_set1_epi32(-1);
  __m256 max = lowest;
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    max = _mm256_max_ps(max, numbers.At(i, all));
  }
  if (i < n) {
    const __m256i mask = FirstLanes(n - i);
    max = _mm256_max_ps(max, _mm256_blendv_ps(lowest, numbers.At(i, mask),
                                              _mm256_castsi256_ps(mask)));
  }
  alignas(32) float lanes[kWidth];
  _mm256_store_ps(lanes, max);
  return *std::max_element(lanes, lanes + kWidth);
}

struct AsTheyAre {
  const float* numbers;

  ATTENDANT_AVX2 __m256 At(std::int64_t i, __m256i mask) const {
    return _mm256_maskload_ps(numbers + i, mask);
  }
};

struct Added {
  const float* terms;
  float* numbers;

  ATTENDANT_AVX2 __m256 At(std::int64_t i, __m256i mask) const {
    const __m256 sum = _mm256_add_ps(_mm256_maskload_ps(numbers + i, mask),
                                     _mm256_maskload_ps(terms + i, mask));
    _mm256_maskstore_ps(numbers + i, mask, sum);
    return sum;
  }
};

struct Corrected {
  const float* scales;
  __m256 factor;
  __m256 shift;
  float* logits;

  ATTENDANT_AVX2 __m256 At(std::int64_t i, __m256i mask) const {
    const __m256 scale = _mm256_maskload_ps(scales + i, mask);
    const __m256 term =
        _mm256_fnmadd_ps(factor, _mm256_mul_ps(scale, scale), shift);
    const __m256 logit =
        _mm256_add_ps(_mm256_maskload_ps(logits + i, mask), term);
    _mm256_maskstore_ps(logits + i, mask, logit);
    return logit;
  }
};

ATTENDANT_AVX2 float Max(const float* numbers, std::int64_t n) {
  return MaxOf(AsTheyAre{numbers}, n);
}

ATTENDANT_AVX2 float AddMax(const float* terms, std::int64_t n,
                            float* numbers) {
  return MaxOf(Added{terms, numbers}, n);
}

ATTENDANT_AVX2 float CorrectMax(const float* scales, float factor, float shift,
                                std::int64_t n, float* logits) {
  return MaxOf(
      Corrected{scales, _mm256_set1_ps(factor), _mm256_set1_ps(shift), logits},
      n);
}

// x = n ln 2 + r for x in [kMinGap, 0], with |r| <= ln 2 / 2, and exp(r) = 1 +
// factor r by the Taylor polynomial of degree 7 (error below 2^-27).
struct ReducedExp {
  __m256 n, r, factor;
};

ATTENDANT_AVX2 inline ReducedExp Reduce(__m256 x) {
  const __m256 n =
      _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)),
                      _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // ln 2 in two parts, the first with few bits.
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 p = _mm256_set1_ps(1.0f / 5040);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 720));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 120));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 24));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 6));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  return {n, r, p};
}

// Returns 2^n, built from its exponent bits, for n in [-126, 0].
ATTENDANT_AVX2 inline __m256 PowerOfTwo(__m256 n) {
  const __m256i exponent =
      _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
}

// Returns exp(x) for x in [kMinGap, 0].
ATTENDANT_AVX2 inline __m256 Exp(__m256 x) {
  const ReducedExp e = Reduce(x);
  return _mm256_mul_ps(_mm256_fmadd_ps(e.factor, e.r, _mm256_set1_ps(1.0f)),
                       PowerOfTwo(e.n));
}

// Returns exp(x) - 1 for x in [kMinGap, 0], precise also near 0: it subtracts 1
// from 2^n, which is exact, not from the sum.
ATTENDANT_AVX2 inline __m256 Expm1(__m256 x) {
  const ReducedExp e = Reduce(x);
  const __m256 power = PowerOfTwo(e.n);
  return _mm256_fmadd_ps(power, _mm256_mul_ps(e.factor, e.r),
                         _mm256_sub_ps(power, _mm256_set1_ps(1.0f)));
}

// tanh(t) = -m / (2 + m) with m = exp(-2 t) - 1 for t >= 0, and odd. Beyond
// kMinGap / 2 it is 1.
ATTENDANT_AVX2 inline __m256 Tanh(__m256 t) {
  const __m256 sign_bit = _mm256_set1_ps(-0.0f);
  const __m256 size = _mm256_andnot_ps(sign_bit, t);
  const __m256 m = Expm1(_mm256_max_ps(
      _mm256_mul_ps(size, _mm256_set1_ps(-2.0f)), _mm256_set1_ps(kMinGap)));
  const __m256 negative =
      _mm256_div_ps(m, _mm256_add_ps(_mm256_set1_ps(2.0f), m));
  // Negate where t is positive.
  return _mm256_xor_ps(negative, _mm256_andnot_ps(t, sign_bit));
}

ATTENDANT_AVX2 void TanhDotRows(const float* query, const float* output_weight,
                                const float* rows, std::int64_t row_count,
                                std::int64_t dim, float* dots) {
  for (std::int64_t r = 0; r < row_count; ++r) {
    const float* row = rows + r * dim;
    float dot = 0;
    for (std::int64_t begin = 0; begin < dim; begin += kBlockDim) {
      const std::int64_t end = std::min(dim, begin + kBlockDim);
      __m256 sums[kTileRows] = {_mm256_setzero_ps(), _mm256_setzero_ps(),
                                _mm256_setzero_ps(), _mm256_setzero_ps()};
      std::int64_t d = begin;
      for (; d + kWidth <= end; d += kWidth) {
        const __m256 t =
            _mm256_add_ps(_mm256_loadu_ps(query + d), _mm256_loadu_ps(row + d));
        sums[0] = _mm256_fmadd_ps(_mm256_loadu_ps(output_weight + d), Tanh(t),
                                  sums[0]);
      }
      if (d < end) {
        const __m256i mask = FirstLanes(end - d);
        const __m256 t = _mm256_add_ps(_mm256_maskload_ps(query + d, mask),
                                       _mm256_maskload_ps(row + d, mask));
        sums[0] = _mm256_fmadd_ps(_mm256_maskload_ps(output_weight + d, mask),
                                  Tanh(t), sums[0]);
      }
      dot += _mm_cvtss_f32(SumOfEach(sums));
    }
    dots[r] = dot;
  }
}

ATTENDANT_AVX2 inline double SumOfLanes(__m256d v) {
  const __m128d pair =
      _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)));
}

ATTENDANT_AVX2 ExpSums SumExps(const float* logits, std::int64_t n, float max,
                               float* exps) {
  const __m256 max_lanes = _mm256_set1_ps(max);
  const __m256 min_gap = _mm256_set1_ps(kMinGap);
  __m256d sum = _mm256_setzero_pd();
  __m256d sum_gap = _mm256_setzero_pd();
  __m256d sum_square = _mm256_setzero_pd();
  for (std::int64_t i = 0; i < n; i += kWidth) {
    const __m256i mask = FirstLanes(std::min<std::int64_t>(n - i, kWidth));
    __m256 gap = _mm256_sub_ps(_mm256_maskload_ps(logits + i, mask), max_lanes);
    const __m256 counted = _mm256_and_ps(
        _mm256_cmp_ps(gap, min_gap, _CMP_GE_OQ), _mm256_castsi256_ps(mask));
    gap = _mm256_and_ps(gap, counted);
    const __m256 e = _mm256_and_ps(Exp(gap), counted);
    if (exps != nullptr) _mm256_maskstore_ps(exps + i, mask, e);
    const __m256d e_low = _mm256_cvtps_pd(_mm256_castps256_ps128(e));
    const __m256d e_high = _mm256_cvtps_pd(_mm256_extractf128_ps(e, 1));
    const __m256d gap_low = _mm256_cvtps_pd(_mm256_castps256_ps128(gap));
    const __m256d gap_high = _mm256_cvtps_pd(_mm256_extractf128_ps(gap, 1));
    sum = _mm256_add_pd(sum, _mm256_add_pd(e_low, e_high));
    sum_gap = _mm256_fmadd_pd(e_low, gap_low, sum_gap);
    sum_gap = _mm256_fmadd_pd(e_high, gap_high, sum_gap);
    sum_square = _mm256_fmadd_pd(e_low, e_low, sum_square);
    sum_square = _mm256_fmadd_pd(e_high, e_high, sum_square);
  }
  ExpSums sums;
  sums.sum = SumOfLanes(sum);
  sums.sum_gap = SumOfLanes(sum_gap);
  sums.sum_square = SumOfLanes(sum_square);
  return sums;
}

ATTENDANT_AVX2 void SumPowers(const float* numbers, std::int64_t n,
                              double* sums) {
  const __m256 least = _mm256_set1_ps(kMinSquared);
  __m256 totals[kPowers];
  for (__m256& total : totals) total = _mm256_setzero_ps();
  for (std::int64_t i = 0; i < n; i += kWidth) {
    __m256 power = _mm256_maskload_ps(
        numbers + i, FirstLanes(std::min<std::int64_t>(n - i, kWidth)));
    ATTENDANT_UNROLL
    for (__m256& total : totals) {
      power = _mm256_and_ps(power, _mm256_cmp_ps(power, least, _CMP_GE_OQ));
      power = _mm256_mul_ps(power, power);
      total = _mm256_add_ps(total, power);
    }
  }
  for (int k = 0; k < kPowers; ++k) {
    const __m256 lanes = totals[k];
    sums[k] = SumOfLanes(
        _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(lanes)),
                      _mm256_cvtps_pd(_mm256_extractf128_ps(lanes, 1))));
  }
}

ATTENDANT_AVX2 std::int64_t SelectAtLeast(const float* numbers, std::int64_t n,
                                          float threshold,
                                          std::int32_t* positions) {
  const __m256 threshold_lanes = _mm256_set1_ps(threshold);
  std::int64_t count = 0;
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    auto chosen = static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(
        _mm256_loadu_ps(numbers + i), threshold_lanes, _CMP_GE_OQ)));
    for (; chosen != 0; chosen &= chosen - 1) {
      positions[count++] = static_cast<std::int32_t>(i + __builtin_ctz(chosen));
    }
  }
  for (; i < n; ++i) {
    if (numbers[i] >= threshold) {
      positions[count++] = static_cast<std::int32_t>(i);
    }
  }
  return count;
}

// Returns the mean logits of the lists from the l-th on.
ATTENDANT_AVX2 inline __m256 MeanLogits(const NormalLists& lists,
                                        const float* scores, std::int64_t l,
                                        __m256i mask, __m256 unit_lanes) {
  return _mm256_mul_ps(
      unit_lanes, _mm256_sub_ps(_mm256_maskload_ps(scores + l, mask),
                                _mm256_maskload_ps(lists.reaches + l, mask)));
}

ATTENDANT_AVX2 void NormalLogSums(const NormalLists& lists, const float* scores,
                                  float unit, float spread,
                                  std::int64_t list_count, float* log_sums) {
  const __m256 unit_lanes = _mm256_set1_ps(unit);
  const __m256 spread_lanes = _mm256_set1_ps(spread);
  const __m256 half = _mm256_set1_ps(0.5f);
  const __m256 none = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
  for (std::int64_t l = 0; l < list_count; l += kWidth) {
    const __m256i mask =
        FirstLanes(std::min<std::int64_t>(list_count - l, kWidth));
    const __m256 mean = MeanLogits(lists, scores, l, mask, unit_lanes);
    const __m256 log_count = _mm256_maskload_ps(lists.log_counts + l, mask);
    const __m256 along =
        _mm256_mul_ps(_mm256_mul_ps(mean, mean),
                      _mm256_maskload_ps(lists.mean_shares + l, mask));
    const __m256 variance = _mm256_fmadd_ps(
        spread_lanes, _mm256_maskload_ps(lists.variances + l, mask), along);
    const __m256 limit = _mm256_add_ps(log_count, log_count);
    __m256 gain = _mm256_fmadd_ps(variance, half, log_count);
    const __m256 frozen = _mm256_cmp_ps(variance, limit, _CMP_GT_OQ);
    if (_mm256_movemask_ps(frozen) != 0) {
      gain = _mm256_blendv_ps(
          gain, _mm256_sqrt_ps(_mm256_mul_ps(variance, limit)), frozen);
    }
    const __m256 empty =
        _mm256_cmp_ps(log_count, _mm256_setzero_ps(), _CMP_LT_OQ);
    _mm256_maskstore_ps(
        log_sums + l, mask,
        _mm256_blendv_ps(_mm256_add_ps(mean, gain), none, empty));
  }
}

ATTENDANT_AVX2 double NormalSquares(const NormalLists& lists,
                                    const float* scores, float unit,
                                    const float* log_sums, const float* weights,
                                    float max, std::int64_t list_count,
                                    float* log_squares) {
  const __m256 unit_lanes = _mm256_set1_ps(unit);
  const __m256 max_lanes = _mm256_set1_ps(max);
  const __m256 two = _mm256_set1_ps(2);
  const __m256 three = _mm256_set1_ps(3);
  __m256 sums[kTileRows] = {_mm256_setzero_ps(), _mm256_setzero_ps(),
                            _mm256_setzero_ps(), _mm256_setzero_ps()};
  for (std::int64_t l = 0; l < list_count; l += kWidth) {
    const __m256i mask =
        FirstLanes(std::min<std::int64_t>(list_count - l, kWidth));
    const __m256 mean = MeanLogits(lists, scores, l, mask, unit_lanes);
    const __m256 log_count = _mm256_maskload_ps(lists.log_counts + l, mask);
    const __m256 log_sum = _mm256_maskload_ps(log_sums + l, mask);
    const __m256 twice = _mm256_add_ps(log_sum, log_sum);
    const __m256 square = _mm256_fnmadd_ps(
        three, log_count, _mm256_mul_ps(two, _mm256_sub_ps(twice, mean)));
    _mm256_maskstore_ps(log_squares + l, mask, _mm256_min_ps(square, twice));
    const __m256 tilted = _mm256_min_ps(
        _mm256_fmsub_ps(two, _mm256_sub_ps(log_sum, log_count), mean), log_sum);
    const __m256 weight = _mm256_maskload_ps(weights + l, mask);
    const __m256 counted =
        _mm256_cmp_ps(weight, _mm256_setzero_ps(), _CMP_NEQ_OQ);
    // Masked, because an infinite gap times a weight of 0 is NaN.
    const __m256 gap = _mm256_and_ps(_mm256_sub_ps(tilted, max_lanes), counted);
    sums[0] = _mm256_fmadd_ps(weight, gap, sums[0]);
  }
  return static_cast<double>(_mm_cvtss_f32(SumOfEach(sums)));
}

ATTENDANT_AVX2 void ExpsPerKey(const float* log_sums, const float* log_counts,
                               std::int64_t list_count, float power, float max,
                               float* of_key) {
  const __m256 zero = _mm256_setzero_ps();
  for (std::int64_t l = 0; l < list_count; l += kWidth) {
    const __m256i mask =
        FirstLanes(std::min<std::int64_t>(list_count - l, kWidth));
    const __m256 taken_off = _mm256_add_ps(
        _mm256_max_ps(zero, _mm256_maskload_ps(log_counts + l, mask)),
        _mm256_set1_ps(max));
    const __m256 x = _mm256_min_ps(
        zero,
        _mm256_fmsub_ps(_mm256_set1_ps(power),
                        _mm256_maskload_ps(log_sums + l, mask), taken_off));
    const __m256 counted =
        _mm256_cmp_ps(x, _mm256_set1_ps(kMinGap), _CMP_GE_OQ);
    _mm256_maskstore_ps(of_key + l, mask,
                        _mm256_and_ps(Exp(_mm256_and_ps(x, counted)), counted));
  }
}

ATTENDANT_AVX2 void DotChunks(const float* a, const float* b, std::int64_t n,
                              float* sums) {
  for (std::int64_t i = 0; i < n; i += kChunk) {
    __m256 products[kTileRows] = {_mm256_setzero_ps(), _mm256_setzero_ps(),
                                  _mm256_setzero_ps(), _mm256_setzero_ps()};
    const std::int64_t end = std::min(n, i + kChunk);
    int part = 0;
    for (std::int64_t j = i; j < end; j += kWidth, ++part) {
      const __m256i mask = FirstLanes(std::min<std::int64_t>(end - j, kWidth));
      products[part] = _mm256_mul_ps(_mm256_maskload_ps(a + j, mask),
                                     _mm256_maskload_ps(b + j, mask));
    }
    products[0] = _mm256_add_ps(products[0], products[1]);
    sums[i / kChunk] = _mm_cvtss_f32(SumOfEach(products));
  }
}

ATTENDANT_AVX2 void Rank(const std::uint32_t* numbers, std::int64_t n,
                         std::uint32_t* ranks) {
  // AVX2 compares signed numbers only.
  const __m256i flip = _mm256_set1_epi32(static_cast<int>(0x80000000));
  for (std::int64_t begin = 0; begin < n; begin += kWidth) {
    const __m256i mask = FirstLanes(std::min<std::int64_t>(n - begin, kWidth));
    const __m256i ranked = _mm256_xor_si256(
        flip, _mm256_maskload_epi32(
                  reinterpret_cast<const int*>(numbers + begin), mask));
    const __m256i place =
        _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(begin)),
                         _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i counts = _mm256_setzero_si256();
    for (std::int64_t j = 0; j < n; ++j) {
      const __m256i number = _mm256_xor_si256(
          flip, _mm256_set1_epi32(static_cast<int>(numbers[j])));
      const __m256i before = _mm256_and_si256(
          _mm256_cmpeq_epi32(ranked, number),
          _mm256_cmpgt_epi32(place, _mm256_set1_epi32(static_cast<int>(j))));
      // A comparison that is true gives -1.
      counts = _mm256_sub_epi32(
          counts, _mm256_or_si256(_mm256_cmpgt_epi32(ranked, number), before));
    }
    _mm256_maskstore_epi32(reinterpret_cast<int*>(ranks + begin), mask, counts);
  }
}

ATTENDANT_AVX2 std::int64_t CountAtLeast(const float* numbers, std::int64_t n,
                                         float threshold) {
  const __m256 threshold_lanes = _mm256_set1_ps(threshold);
  std::int64_t count = 0;
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    count += __builtin_popcount(
        static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(
            _mm256_loadu_ps(numbers + i), threshold_lanes, _CMP_GE_OQ))));
  }
  for (; i < n; ++i) count += numbers[i] >= threshold ? 1 : 0;
  return count;
}

// Returns other - v in the lanes of kSecond, v + other elsewhere.
template <int kSecond>
ATTENDANT_AVX2 inline __m256 SumOrDifference(__m256 v, __m256 other) {
  return _mm256_blend_ps(_mm256_add_ps(v, other), _mm256_sub_ps(other, v),
                         kSecond);
}

ATTENDANT_AVX2 void Transform(float* vector, std::int64_t size,
                              std::int64_t row_count) {
  // Stages within a register. A vector of fewer components takes the first of
  // them.
  const __m256i mask = FirstLanes(std::min<std::int64_t>(size, kWidth));
  const auto has = [&](std::int64_t half) {
    return row_count <= half && half < size;
  };
  for (std::int64_t i = 0; row_count < kWidth && i < size; i += kWidth) {
    __m256 v = _mm256_maskload_ps(vector + i, mask);
    if (has(1)) v = SumOrDifference<0xaa>(v, _mm256_permute_ps(v, 0xb1));
    if (has(2)) v = SumOrDifference<0xcc>(v, _mm256_permute_ps(v, 0x4e));
    if (has(4)) {
      v = SumOrDifference<0xf0>(v, _mm256_permute2f128_ps(v, v, 1));
    }
    _mm256_maskstore_ps(vector + i, mask, v);
  }
  for (std::int64_t half = std::max<std::int64_t>(kWidth, row_count);
       half < size; half *= 2) {
    for (std::int64_t begin = 0; begin < size; begin += 2 * half) {
      for (std::int64_t i = begin; i < begin + half; i += kWidth) {
        const __m256 first = _mm256_loadu_ps(vector + i);
        const __m256 second = _mm256_loadu_ps(vector + half + i);
        _mm256_storeu_ps(vector + i, _mm256_add_ps(first, second));
        _mm256_storeu_ps(vector + half + i, _mm256_sub_ps(first, second));
      }
    }
  }
}

ATTENDANT_AVX2 void AddScaled(double factor, const float* row, std::int64_t dim,
                              double* sum) {
  const __m256d factor_lanes = _mm256_set1_pd(factor);
  constexpr std::int64_t kDoubles = 4;
  std::int64_t d = 0;
  for (; d + kDoubles <= dim; d += kDoubles) {
    _mm256_storeu_pd(
        sum + d,
        _mm256_fmadd_pd(factor_lanes, _mm256_cvtps_pd(_mm_loadu_ps(row + d)),
                        _mm256_loadu_pd(sum + d)));
  }
  for (; d < dim; ++d) sum[d] = __builtin_fma(factor, row[d], sum[d]);
}

ATTENDANT_AVX2 void AddScaledRows(const double* factors,
                                  const float* const* rows, std::int64_t n,
                                  std::int64_t dim, double* sum) {
  constexpr std::int64_t kDoubles = 4;
  constexpr int kTogether = 8;
  std::int64_t d = 0;
  // These sums stay in registers.
  for (; d + kTogether * kDoubles <= dim; d += kTogether * kDoubles) {
    __m256d sums[kTogether];
    ATTENDANT_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      sums[i] = _mm256_loadu_pd(sum + d + i * kDoubles);
    }
    for (std::int64_t r = 0; r < n; ++r) {
      const __m256d factor = _mm256_set1_pd(factors[r]);
      ATTENDANT_UNROLL
      for (int i = 0; i < kTogether; ++i) {
        sums[i] = _mm256_fmadd_pd(
            factor, _mm256_cvtps_pd(_mm_loadu_ps(rows[r] + d + i * kDoubles)),
            sums[i]);
      }
    }
    ATTENDANT_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      _mm256_storeu_pd(sum + d + i * kDoubles, sums[i]);
    }
  }
  for (std::int64_t r = 0; r < n && d < dim; ++r) {
    AddScaled(factors[r], rows[r] + d, dim - d, sum + d);
  }
}

// Computes sums[q * dim + d] for kQueries queries and kRegisters registers of
// components, the last of which holds `last_count`. Loads a row's components
// once for all the queries.
template <int kQueries, int kRegisters>
ATTENDANT_AVX2 inline void PoolTile(const float* weights, const float* rows,
                                    std::int64_t row_count, std::int64_t dim,
                                    std::int64_t last_count, float* sums) {
  __m256 pooled[kQueries][kRegisters];
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    ATTENDANT_UNROLL
    for (int i = 0; i < kRegisters; ++i) pooled[q][i] = _mm256_setzero_ps();
  }
  const __m256i last = FirstLanes(last_count);
  constexpr int kLast = kRegisters - 1;
  for (std::int64_t r = 0; r < row_count; ++r) {
    const float* from = rows + r * dim;
    __m256 row[kRegisters];
    ATTENDANT_UNROLL
    for (int i = 0; i < kLast; ++i) row[i] = _mm256_loadu_ps(from + i * kWidth);
    row[kLast] = _mm256_maskload_ps(from + kLast * kWidth, last);
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      const __m256 weight = _mm256_set1_ps(weights[q * row_count + r]);
      ATTENDANT_UNROLL
      for (int i = 0; i < kRegisters; ++i) {
        pooled[q][i] = _mm256_fmadd_ps(weight, row[i], pooled[q][i]);
      }
    }
  }
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    float* to = sums + q * dim;
    ATTENDANT_UNROLL
    for (int i = 0; i < kLast; ++i) {
      _mm256_storeu_ps(to + i * kWidth, pooled[q][i]);
    }
    _mm256_maskstore_ps(to + kLast * kWidth, last, pooled[q][kLast]);
  }
}

template <int kRegisters>
ATTENDANT_AVX2 inline void PoolQueries(const float* weights,
                                       std::int64_t query_count,
                                       const float* rows,
                                       std::int64_t row_count, std::int64_t dim,
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

ATTENDANT_AVX2 void PoolRows(const float* weights, std::int64_t query_count,
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

}  // namespace

const Kernels kAvx2Kernels = {
    DotRows,       DotRowsAt,     DotRowsMulti, TanhDotRows,  Scale,
    Max,           AddMax,        CorrectMax,   SumExps,      SumPowers,
    ExpsByLibrary, SelectAtLeast, Rank,         CountAtLeast, NormalLogSums,
    NormalSquares, ExpsPerKey,    DotChunks,    Transform,    AddScaled,
    AddScaledRows, PoolRows};

}  // namespace attendant

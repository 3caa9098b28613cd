// Exponentials, and functions computed from them.
#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "core/kernels/avx512.h"

namespace attendant::avx512 {
namespace {

// x = n ln 2 + r for x in [kMinGap, 0], with |r| <= ln 2 / 2, and exp(r) = 1 +
// factor r by the Taylor polynomial of degree 7 (error below 2^-27).
struct ReducedExp {
  __m512 n, r, factor;
};

ATTENDANT_AVX512 inline ReducedExp Reduce(__m512 x) {
  const __m512 n =
      _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
                           _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // ln 2 in two parts, the first with few bits.
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.0f / 5040);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 720));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 120));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 24));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 6));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return {n, r, p};
}

// Returns exp(x) - 1 for x in [kMinGap, 0], precise also near 0: it subtracts 1
// from 2^n, which is exact, not from the sum.
ATTENDANT_AVX512 inline __m512 Expm1(__m512 x) {
  const ReducedExp e = Reduce(x);
  const __m512 power = _mm512_scalef_ps(_mm512_set1_ps(1.0f), e.n);
  return _mm512_fmadd_ps(power, _mm512_mul_ps(e.factor, e.r),
                         _mm512_sub_ps(power, _mm512_set1_ps(1.0f)));
}

// tanh(t) = -m / (2 + m) with m = exp(-2 t) - 1 for t >= 0, and odd. Beyond
// kMinGap / 2 it is 1.
ATTENDANT_AVX512 inline __m512 Tanh(__m512 t) {
  const __m512 m = Expm1(
      _mm512_max_ps(_mm512_mul_ps(_mm512_abs_ps(t), _mm512_set1_ps(-2.0f)),
                    _mm512_set1_ps(kMinGap)));
  const __m512 negative =
      _mm512_div_ps(m, _mm512_add_ps(_mm512_set1_ps(2.0f), m));
  // Negate where t is positive.
  return _mm512_xor_ps(negative, _mm512_andnot_ps(t, _mm512_set1_ps(-0.0f)));
}

}  // namespace

ATTENDANT_AVX512 void TanhDotRows(const float* query,
                                  const float* output_weight, const float* rows,
                                  std::int64_t row_count, std::int64_t dim,
                                  float* dots) {
  for (std::int64_t r = 0; r < row_count; ++r) {
    const float* row = rows + r * dim;
    float dot = 0;
    for (std::int64_t begin = 0; begin < dim; begin += kBlockDim) {
      const std::int64_t end = std::min(dim, begin + kBlockDim);
      __m512 sum = _mm512_setzero_ps();
      for (std::int64_t d = begin; d < end; d += kWidth) {
        const __mmask16 mask =
            FirstLanes(std::min<std::int64_t>(end - d, kWidth));
        const __m512 t = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, query + d),
                                       _mm512_maskz_loadu_ps(mask, row + d));
        sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, output_weight + d),
                              Tanh(t), sum);
      }
      dot += _mm512_reduce_add_ps(sum);
    }
    dots[r] = dot;
  }
}

namespace {

// Returns exp(x) for x in [kMinGap, 0] where `counted`, else 0. Computes 2^n (1
// + f q(f)) with x log2 e = n + f and |f| <= 1/2, where q interpolates (2^f -
// 1) / f at Chebyshev's points. The relative error is below 2^-22.2, and below
// 2^-21.6 with the roundings, of which the last two matter.
ATTENDANT_AVX512 inline __m512 Exp(__m512 x, __mmask16 counted) {
  // Adding this leaves an integer in the lowest bits.
  const __m512 rounder = _mm512_set1_ps(12582912.0f);  // 1.5 x 2^23
  // log2 e in two parts.
  const __m512 log2_e = _mm512_set1_ps(1.44269502f);
  const __m512 n = _mm512_sub_ps(_mm512_fmadd_ps(x, log2_e, rounder), rounder);
  __m512 f = _mm512_fmsub_ps(x, log2_e, n);
  f = _mm512_fmadd_ps(x, _mm512_set1_ps(1.92596303e-8f), f);
  __m512 q = _mm512_set1_ps(1.33813021e-3f);
  q = _mm512_fmadd_ps(q, f, _mm512_set1_ps(9.66636837e-3f));
  q = _mm512_fmadd_ps(q, f, _mm512_set1_ps(5.55038117e-2f));
  q = _mm512_fmadd_ps(q, f, _mm512_set1_ps(0.240223497f));
  q = _mm512_fmadd_ps(q, f, _mm512_set1_ps(0.693147182f));
  return _mm512_maskz_scalef_ps(counted,
                                _mm512_fmadd_ps(q, f, _mm512_set1_ps(1.0f)), n);
}

// Sums of a lane's few terms as floats.
struct ShortSums {
  __m512 sum, sum_gap, sum_square;
};

// Start of the sums of squares: a smaller float in a lane would be a denormal,
// on which processors stall.
constexpr float kNormal = 0x1p-100f;

ATTENDANT_AVX512 inline void Clear(ShortSums& sums) {
  sums.sum = sums.sum_gap = _mm512_setzero_ps();
  sums.sum_square = _mm512_set1_ps(kNormal);
}

// Adds exp(logits - max) to the sums, and returns it.
ATTENDANT_AVX512 inline __m512 AddTerms(__m512 logits, __m512 max,
                                        ShortSums& sums) {
  const __m512 gap = _mm512_sub_ps(logits, max);
  const __mmask16 counted =
      _mm512_cmp_ps_mask(gap, _mm512_set1_ps(kMinGap), _CMP_GE_OQ);
  const __m512 e = Exp(gap, counted);
  sums.sum = _mm512_add_ps(sums.sum, e);
  // A gap that is not counted may be -infinity.
  sums.sum_gap = _mm512_mask3_fmadd_ps(e, gap, sums.sum_gap, counted);
  sums.sum_square = _mm512_fmadd_ps(e, e, sums.sum_square);
  return e;
}

// Returns the sum of two registers of floats, in doubles.
ATTENDANT_AVX512 inline __m512d SumOf(__m512 a, __m512 b) {
  const __m512 sums = _mm512_add_ps(a, b);
  return _mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(sums)),
                       _mm512_cvtps_pd(_mm512_extractf32x8_ps(sums, 1)));
}

template <bool kStores>
ATTENDANT_AVX512 ExpSums SumExpsTo(const float* logits, std::int64_t n,
                                   float max, float* exps) {
  constexpr int kTogether = 2;
  // After this many numbers, 8 per lane, sums continue in doubles.
  constexpr std::int64_t kShort = 8 * kTogether * kWidth;
  const __m512 max_lanes = _mm512_set1_ps(max);
  const __m512 none = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512d sum = _mm512_setzero_pd();
  __m512d sum_gap = _mm512_setzero_pd();
  __m512d sum_square = _mm512_setzero_pd();
  for (std::int64_t begin = 0; begin < n; begin += kShort) {
    const std::int64_t end = std::min(n, begin + kShort);
    ShortSums even, odd;
    Clear(even);
    Clear(odd);
    std::int64_t i = begin;
    for (; i + kTogether * kWidth <= end; i += kTogether * kWidth) {
      const __m512 first =
          AddTerms(_mm512_loadu_ps(logits + i), max_lanes, even);
      const __m512 second =
          AddTerms(_mm512_loadu_ps(logits + i + kWidth), max_lanes, odd);
      if (kStores) {
        _mm512_storeu_ps(exps + i, first);
        _mm512_storeu_ps(exps + i + kWidth, second);
      }
    }
    for (; i < end; i += kWidth) {
      const __mmask16 mask =
          FirstLanes(std::min<std::int64_t>(end - i, kWidth));
      const __m512 terms = AddTerms(
          _mm512_mask_loadu_ps(none, mask, logits + i), max_lanes, even);
      if (kStores) _mm512_mask_storeu_ps(exps + i, mask, terms);
    }
    sum = _mm512_add_pd(sum, SumOf(even.sum, odd.sum));
    sum_gap = _mm512_add_pd(sum_gap, SumOf(even.sum_gap, odd.sum_gap));
    sum_square = _mm512_add_pd(
        sum_square, _mm512_sub_pd(SumOf(even.sum_square, odd.sum_square),
                                  _mm512_set1_pd(2.0 * kTogether * kNormal)));
  }
  return {.sum = _mm512_reduce_add_pd(sum),
          .sum_gap = _mm512_reduce_add_pd(sum_gap),
          .sum_square = _mm512_reduce_add_pd(sum_square)};
}

}  // namespace

ATTENDANT_AVX512 ExpSums SumExps(const float* logits, std::int64_t n, float max,
                                 float* exps) {
  return exps == nullptr ? SumExpsTo<false>(logits, n, max, exps)
                         : SumExpsTo<true>(logits, n, max, exps);
}

ATTENDANT_AVX512 void SumPowers(const float* numbers, std::int64_t n,
                                double* sums) {
  const __m512 least = _mm512_set1_ps(kMinSquared);
  __m512 totals[kPowers];
  ATTENDANT_UNROLL
  for (__m512& total : totals) total = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < n; i += kWidth) {
    __m512 power = _mm512_maskz_loadu_ps(
        FirstLanes(std::min<std::int64_t>(n - i, kWidth)), numbers + i);
    ATTENDANT_UNROLL
    for (__m512& total : totals) {
      const __mmask16 kept = _mm512_cmp_ps_mask(power, least, _CMP_GE_OQ);
      power = _mm512_maskz_mul_ps(kept, power, power);
      total = _mm512_add_ps(total, power);
    }
  }
  ATTENDANT_UNROLL
  for (int k = 0; k < kPowers; ++k) {
    sums[k] = static_cast<double>(_mm512_reduce_add_ps(totals[k]));
  }
}

// Computes 2^k exp(r) with x = k ln 2 + r and |r| <= ln 2 / 2, by the Taylor
// polynomial of degree 12 (error below 2^-52).
ATTENDANT_AVX512 double Exps(const float* logits, std::int64_t n, double max,
                             double* exps) {
  constexpr double kCoefficients[] = {1.0 / 479001600,
                                      1.0 / 39916800,
                                      1.0 / 3628800,
                                      1.0 / 362880,
                                      1.0 / 40320,
                                      1.0 / 5040,
                                      1.0 / 720,
                                      1.0 / 120,
                                      1.0 / 24,
                                      1.0 / 6,
                                      0.5,
                                      1,
                                      1};
  constexpr std::int64_t kDoubles = 8;
  // exp of this is 0 as a double.
  const __m512d lowest = _mm512_set1_pd(-750);
  __m512d sum = _mm512_setzero_pd();
  for (std::int64_t i = 0; i < n; i += kDoubles) {
    const auto mask = static_cast<__mmask8>(
        FirstLanes(std::min<std::int64_t>(n - i, kDoubles)));
    const __m512d x = _mm512_max_pd(
        _mm512_sub_pd(_mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, logits + i)),
                      _mm512_set1_pd(max)),
        lowest);
    const __m512d k = _mm512_roundscale_pd(
        _mm512_mul_pd(x, _mm512_set1_pd(1.4426950408889634)),
        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    // ln 2 in two parts, the first with few bits.
    __m512d r = _mm512_fnmadd_pd(k, _mm512_set1_pd(0x1.62e42fefap-1), x);
    r = _mm512_fnmadd_pd(k, _mm512_set1_pd(0x1.cf79abc9e3b39p-40), r);
    __m512d p = _mm512_setzero_pd();
    ATTENDANT_UNROLL
    for (const double coefficient : kCoefficients) {
      p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(coefficient));
    }
    const __m512d e = _mm512_maskz_scalef_pd(mask, p, k);
    _mm512_mask_storeu_pd(exps + i, mask, e);
    sum = _mm512_add_pd(sum, e);
  }
  return _mm512_reduce_add_pd(sum);
}

// Returns the mean logits of the lists from the l-th on.
ATTENDANT_AVX512 inline __m512 MeanLogits(const NormalLists& lists,
                                          const float* scores, std::int64_t l,
                                          __mmask16 mask, __m512 unit_lanes) {
  return _mm512_mul_ps(
      unit_lanes,
      _mm512_sub_ps(_mm512_maskz_loadu_ps(mask, scores + l),
                    _mm512_maskz_loadu_ps(mask, lists.reaches + l)));
}

ATTENDANT_AVX512 void NormalLogSums(const NormalLists& lists,
                                    const float* scores, float unit,
                                    float spread, std::int64_t list_count,
                                    float* log_sums) {
  const __m512 unit_lanes = _mm512_set1_ps(unit);
  const __m512 spread_lanes = _mm512_set1_ps(spread);
  const __m512 half = _mm512_set1_ps(0.5f);
  const __m512 none = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  for (std::int64_t l = 0; l < list_count; l += kWidth) {
    const __mmask16 mask =
        FirstLanes(std::min<std::int64_t>(list_count - l, kWidth));
    const __m512 mean = MeanLogits(lists, scores, l, mask, unit_lanes);
    const __m512 log_count = _mm512_maskz_loadu_ps(mask, lists.log_counts + l);
    const __m512 along =
        _mm512_mul_ps(_mm512_mul_ps(mean, mean),
                      _mm512_maskz_loadu_ps(mask, lists.mean_shares + l));
    const __m512 variance = _mm512_fmadd_ps(
        spread_lanes, _mm512_maskz_loadu_ps(mask, lists.variances + l), along);
    const __m512 limit = _mm512_add_ps(log_count, log_count);
    __m512 gain = _mm512_fmadd_ps(variance, half, log_count);
    const __mmask16 frozen = _mm512_cmp_ps_mask(variance, limit, _CMP_GT_OQ);
    if (frozen != 0) {
      gain = _mm512_mask_sqrt_ps(gain, frozen, _mm512_mul_ps(variance, limit));
    }
    const __mmask16 empty =
        _mm512_cmp_ps_mask(log_count, _mm512_setzero_ps(), _CMP_LT_OQ);
    _mm512_mask_storeu_ps(
        log_sums + l, mask,
        _mm512_mask_mov_ps(_mm512_add_ps(mean, gain), empty, none));
  }
}

ATTENDANT_AVX512 double NormalSquares(const NormalLists& lists,
                                      const float* scores, float unit,
                                      const float* log_sums,
                                      const float* weights, float max,
                                      std::int64_t list_count,
                                      float* log_squares) {
  const __m512 unit_lanes = _mm512_set1_ps(unit);
  const __m512 max_lanes = _mm512_set1_ps(max);
  const __m512 two = _mm512_set1_ps(2);
  const __m512 three = _mm512_set1_ps(3);
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t l = 0; l < list_count; l += kWidth) {
    const __mmask16 mask =
        FirstLanes(std::min<std::int64_t>(list_count - l, kWidth));
    const __m512 mean = MeanLogits(lists, scores, l, mask, unit_lanes);
    const __m512 log_count = _mm512_maskz_loadu_ps(mask, lists.log_counts + l);
    const __m512 log_sum = _mm512_maskz_loadu_ps(mask, log_sums + l);
    const __m512 twice = _mm512_add_ps(log_sum, log_sum);
    const __m512 square = _mm512_fnmadd_ps(
        three, log_count, _mm512_mul_ps(two, _mm512_sub_ps(twice, mean)));
    _mm512_mask_storeu_ps(log_squares + l, mask, _mm512_min_ps(square, twice));
    const __m512 tilted = _mm512_min_ps(
        _mm512_fmsub_ps(two, _mm512_sub_ps(log_sum, log_count), mean), log_sum);
    const __m512 weight = _mm512_maskz_loadu_ps(mask, weights + l);
    const __mmask16 counted =
        _mm512_cmp_ps_mask(weight, _mm512_setzero_ps(), _CMP_NEQ_OQ);
    sum = _mm512_mask3_fmadd_ps(weight, _mm512_sub_ps(tilted, max_lanes), sum,
                                counted);
  }
  return static_cast<double>(_mm512_reduce_add_ps(sum));
}

ATTENDANT_AVX512 void ExpsPerKey(const float* log_sums, const float* log_counts,
                                 std::int64_t list_count, float power,
                                 float max, float* of_key) {
  const __m512 zero = _mm512_setzero_ps();
  for (std::int64_t l = 0; l < list_count; l += kWidth) {
    const __mmask16 mask =
        FirstLanes(std::min<std::int64_t>(list_count - l, kWidth));
    const __m512 taken_off = _mm512_add_ps(
        _mm512_max_ps(zero, _mm512_maskz_loadu_ps(mask, log_counts + l)),
        _mm512_set1_ps(max));
    const __m512 x = _mm512_min_ps(
        zero,
        _mm512_fmsub_ps(_mm512_set1_ps(power),
                        _mm512_maskz_loadu_ps(mask, log_sums + l), taken_off));
    const __mmask16 counted =
        _mm512_cmp_ps_mask(x, _mm512_set1_ps(kMinGap), _CMP_GE_OQ);
    _mm512_mask_storeu_ps(of_key + l, mask, Exp(x, counted));
  }
}

}  // namespace attendant::avx512

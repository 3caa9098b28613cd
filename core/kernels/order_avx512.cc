// Comparisons: maxima, selection and ranks.
#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "core/kernels/avx512.h"

namespace attendant::avx512 {
namespace {

// Returns the greatest of n numbers. At(i, mask) supplies the 16 numbers from i
// on, limited to `mask`.
template <typename Numbers>
ATTENDANT_AVX512 inline float MaxOf(const Numbers& numbers, std::int64_t n) {
  constexpr __mmask16 kAll = 0xffff;
  const __m512 lowest = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  // Several maxima, because each step waits for the one before it.
  constexpr int kTogether = 4;
  __m512 max[kTogether] = {lowest, lowest, lowest, lowest};
  std::int64_t i = 0;
  for (; i + kTogether * kWidth <= n; i += kTogether * kWidth) {
    ATTENDANT_UNROLL
    for (int j = 0; j < kTogether; ++j) {
      max[j] = _mm512_max_ps(max[j], numbers.At(i + j * kWidth, kAll));
    }
  }
  for (; i < n; i += kWidth) {
    const __mmask16 mask = FirstLanes(std::min<std::int64_t>(n - i, kWidth));
    max[0] = _mm512_mask_max_ps(max[0], mask, max[0], numbers.At(i, mask));
  }
  return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(max[0], max[1]),
                                            _mm512_max_ps(max[2], max[3])));
}

struct AsTheyAre {
  const float* numbers;

  ATTENDANT_AVX512 __m512 At(std::int64_t i, __mmask16 mask) const {
    return _mm512_maskz_loadu_ps(mask, numbers + i);
  }
};

struct Added {
  const float* terms;
  float* numbers;

  ATTENDANT_AVX512 __m512 At(std::int64_t i, __mmask16 mask) const {
    const __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, numbers + i),
                                     _mm512_maskz_loadu_ps(mask, terms + i));
    _mm512_mask_storeu_ps(numbers + i, mask, sum);
    return sum;
  }
};

struct Corrected {
  const float* scales;
  __m512 factor;
  __m512 shift;
  float* logits;

  ATTENDANT_AVX512 __m512 At(std::int64_t i, __mmask16 mask) const {
    const __m512 scale = _mm512_maskz_loadu_ps(mask, scales + i);
    const __m512 term =
        _mm512_fnmadd_ps(factor, _mm512_mul_ps(scale, scale), shift);
    const __m512 logit =
        _mm512_add_ps(_mm512_maskz_loadu_ps(mask, logits + i), term);
    _mm512_mask_storeu_ps(logits + i, mask, logit);
    return logit;
  }
};

}  // namespace

ATTENDANT_AVX512 float Max(const float* numbers, std::int64_t n) {
  return MaxOf(AsTheyAre{numbers}, n);
}

ATTENDANT_AVX512 float AddMax(const float* terms, std::int64_t n,
                              float* numbers) {
  return MaxOf(Added{terms, numbers}, n);
}

ATTENDANT_AVX512 float CorrectMax(const float* scales, float factor,
                                  float shift, std::int64_t n, float* logits) {
  return MaxOf(
      Corrected{scales, _mm512_set1_ps(factor), _mm512_set1_ps(shift), logits},
      n);
}

ATTENDANT_AVX512 bool Scale(const float* numbers, std::int64_t n, float factor,
                            float* scaled) {
  const __m512 factor_lanes = _mm512_set1_ps(factor);
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  __m512i greatest = _mm512_setzero_si512();
  for (std::int64_t i = 0; i < n; i += kWidth) {
    const __mmask16 mask = FirstLanes(std::min<std::int64_t>(n - i, kWidth));
    const __m512 product =
        _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, numbers + i), factor_lanes);
    greatest = _mm512_mask_max_epu32(
        greatest, mask, greatest,
        _mm512_and_si512(_mm512_castps_si512(product), magnitude));
    _mm512_mask_storeu_ps(scaled + i, mask, product);
  }
  // Infinities and NaN have all exponent bits set.
  return _mm512_reduce_max_epu32(greatest) < 0x7f800000;
}

namespace {

// Appends the positions of the lanes in `chosen`; the first lane has position
// `begin`.
ATTENDANT_AVX512 inline void AppendPositions(__mmask16 chosen,
                                             std::int64_t begin,
                                             std::int32_t* positions,
                                             std::int64_t& count) {
  const __m512i lanes =
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i all =
      _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(begin)));
  const int chosen_count = __builtin_popcount(chosen);
  _mm512_mask_storeu_epi32(positions + count, FirstLanes(chosen_count),
                           _mm512_maskz_compress_epi32(chosen, all));
  count += chosen_count;
}

}  // namespace

// Usually nothing is chosen, so many numbers are tested at once.
ATTENDANT_AVX512 std::int64_t SelectAtLeast(const float* numbers,
                                            std::int64_t n, float threshold,
                                            std::int32_t* positions) {
  constexpr int kTogether = 4;
  const __m512 threshold_lanes = _mm512_set1_ps(threshold);
  std::int64_t count = 0;
  std::int64_t i = 0;
  for (; i + kTogether * kWidth <= n; i += kTogether * kWidth) {
    __mmask16 chosen[kTogether];
    ATTENDANT_UNROLL
    for (int t = 0; t < kTogether; ++t) {
      chosen[t] = _mm512_cmp_ps_mask(_mm512_loadu_ps(numbers + i + t * kWidth),
                                     threshold_lanes, _CMP_GE_OQ);
    }
    if ((chosen[0] | chosen[1] | chosen[2] | chosen[3]) == 0) continue;
    ATTENDANT_UNROLL
    for (int t = 0; t < kTogether; ++t) {
      if (chosen[t] != 0) {
        AppendPositions(chosen[t], i + t * kWidth, positions, count);
      }
    }
  }
  for (; i < n; i += kWidth) {
    const __mmask16 mask = FirstLanes(std::min<std::int64_t>(n - i, kWidth));
    const __mmask16 chosen =
        _mm512_mask_cmp_ps_mask(mask, _mm512_maskz_loadu_ps(mask, numbers + i),
                                threshold_lanes, _CMP_GE_OQ);
    if (chosen != 0) AppendPositions(chosen, i, positions, count);
  }
  return count;
}

namespace {

// Ranks the numbers in kRegisters registers from `begin` on: compares them with
// the other numbers one by one.
template <int kRegisters>
ATTENDANT_AVX512 inline void RankTile(const std::uint32_t* numbers,
                                      std::int64_t n, std::int64_t begin,
                                      std::uint32_t* ranks) {
  const __m512i one = _mm512_set1_epi32(1);
  __m512i ranked[kRegisters];
  __m512i counts[kRegisters];
  ATTENDANT_UNROLL
  for (int i = 0; i < kRegisters; ++i) {
    const std::int64_t at = begin + i * kWidth;
    const __mmask16 mask = FirstLanes(std::min<std::int64_t>(n - at, kWidth));
    ranked[i] = _mm512_maskz_loadu_epi32(mask, numbers + at);
    counts[i] = _mm512_setzero_si512();
  }
  const std::int64_t end =
      std::min<std::int64_t>(n, begin + kRegisters * kWidth);
  for (std::int64_t j = 0; j < begin; ++j) {
    const __m512i number = _mm512_set1_epi32(static_cast<int>(numbers[j]));
    ATTENDANT_UNROLL
    for (int i = 0; i < kRegisters; ++i) {
      counts[i] = _mm512_mask_add_epi32(
          counts[i], _mm512_cmple_epu32_mask(number, ranked[i]), counts[i],
          one);
    }
  }
  ATTENDANT_UNROLL
  for (int own = 0; own < kRegisters; ++own) {
    const std::int64_t first = begin + own * kWidth;
    const std::int64_t last = std::min<std::int64_t>(n, first + kWidth);
    // Equal numbers rank in order of position.
    unsigned after = 0xfffe;
    for (std::int64_t j = first; j < last; ++j, after <<= 1) {
      const __m512i number = _mm512_set1_epi32(static_cast<int>(numbers[j]));
      ATTENDANT_UNROLL
      for (int i = 0; i < kRegisters; ++i) {
        __mmask16 before = _mm512_cmplt_epu32_mask(number, ranked[i]);
        if (i == own) {
          before |= _mm512_mask_cmpeq_epu32_mask(static_cast<__mmask16>(after),
                                                 number, ranked[i]);
        } else if (i > own) {
          before = _mm512_cmple_epu32_mask(number, ranked[i]);
        }
        counts[i] = _mm512_mask_add_epi32(counts[i], before, counts[i], one);
      }
    }
  }
  for (std::int64_t j = end; j < n; ++j) {
    const __m512i number = _mm512_set1_epi32(static_cast<int>(numbers[j]));
    ATTENDANT_UNROLL
    for (int i = 0; i < kRegisters; ++i) {
      counts[i] = _mm512_mask_add_epi32(
          counts[i], _mm512_cmplt_epu32_mask(number, ranked[i]), counts[i],
          one);
    }
  }
  ATTENDANT_UNROLL
  for (int i = 0; i < kRegisters; ++i) {
    const std::int64_t at = begin + i * kWidth;
    _mm512_mask_storeu_epi32(ranks + at,
                             FirstLanes(std::min<std::int64_t>(n - at, kWidth)),
                             counts[i]);
  }
}

}  // namespace

ATTENDANT_AVX512 void Rank(const std::uint32_t* numbers, std::int64_t n,
                           std::uint32_t* ranks) {
  constexpr int kTogether = 4;
  std::int64_t begin = 0;
  for (; begin + (kTogether - 1) * kWidth < n; begin += kTogether * kWidth) {
    RankTile<kTogether>(numbers, n, begin, ranks);
  }
  for (; begin < n; begin += kWidth) RankTile<1>(numbers, n, begin, ranks);
}

ATTENDANT_AVX512 std::int64_t CountAtLeast(const float* numbers, std::int64_t n,
                                           float threshold) {
  const __m512 threshold_lanes = _mm512_set1_ps(threshold);
  const __m512i one = _mm512_set1_epi32(1);
  __m512i counts = _mm512_setzero_si512();
  for (std::int64_t i = 0; i < n; i += kWidth) {
    const __mmask16 mask = FirstLanes(std::min<std::int64_t>(n - i, kWidth));
    const __mmask16 found =
        _mm512_mask_cmp_ps_mask(mask, _mm512_maskz_loadu_ps(mask, numbers + i),
                                threshold_lanes, _CMP_GE_OQ);
    counts = _mm512_mask_add_epi32(counts, found, counts, one);
  }
  return _mm512_reduce_add_epi32(counts);
}

}  // namespace attendant::avx512

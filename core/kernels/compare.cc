// The target attribute is on functions, not on the file, so that no inline
// function from a header is compiled for instructions that the processor may
// lack.
#include "core/kernels/compare.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>

#define ATTENDANT_AVX2 __attribute__((target("avx2,fma")))
#define ATTENDANT_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl")))

namespace attendant {
namespace {

// Handles the rows of incomplete words, and is the scalar twin for all rows.
template <typename T, typename Passes>
void CompareRows(const T* rows, std::int64_t n, std::uint64_t* words,
                 Passes passes) {
  for (std::int64_t begin = 0; begin < n; begin += 64) {
    const std::int64_t end = std::min<std::int64_t>(n, begin + 64);
    std::uint64_t word = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      word |= static_cast<std::uint64_t>(passes(rows[i])) << (i - begin);
    }
    *words++ = word;
  }
}

void IntegersScalar(const std::int64_t* numbers, std::int64_t n,
                    std::int64_t low, std::int64_t high, std::uint64_t* words) {
  CompareRows(numbers, n, words, [=](std::int64_t number) {
    return (low <= number) & (number <= high);
  });
}

void DoublesScalar(const double* numbers, std::int64_t n, double low,
                   double high, std::uint64_t* words) {
  CompareRows(numbers, n, words, [=](double number) {
    return (low <= number) & (number <= high);
  });
}

void CodeScalar(const std::int32_t* codes, std::int64_t n, std::int32_t code,
                std::uint64_t* words) {
  CompareRows(codes, n, words,
              [=](std::int32_t other) { return other == code; });
}

void CodesScalar(const std::int32_t* codes, std::int64_t n,
                 const std::uint32_t* chosen, std::int32_t code_count,
                 std::uint64_t* words) {
  const auto count = static_cast<std::uint32_t>(code_count);
  CompareRows(codes, n, words, [=](std::int32_t signed_code) {
    const auto code = static_cast<std::uint32_t>(signed_code);
    const std::uint32_t word = chosen[std::min(code, count - 1) / 32];
    return code < count && ((word >> (code % 32)) & 1) != 0;
  });
}

std::int64_t CountBitsScalar(const std::uint64_t* words,
                             const std::uint64_t* but, std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t w = 0; w < n; ++w) {
    count += std::popcount(but == nullptr ? words[w] : words[w] & ~but[w]);
  }
  return count;
}

// Every processor with AVX2 has popcnt.
__attribute__((target("popcnt"))) std::int64_t CountBitsPopcnt(
    const std::uint64_t* words, const std::uint64_t* but, std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t w = 0; w < n; ++w) {
    count +=
        __builtin_popcountll(but == nullptr ? words[w] : words[w] & ~but[w]);
  }
  return count;
}

ATTENDANT_AVX2 void IntegersAvx2(const std::int64_t* numbers, std::int64_t n,
                                 std::int64_t low, std::int64_t high,
                                 std::uint64_t* words) {
  const __m256i lows = _mm256_set1_epi64x(low);
  const __m256i highs = _mm256_set1_epi64x(high);
  for (; n >= 64; n -= 64, numbers += 64) {
    std::uint64_t outside = 0;
    for (int i = 0; i < 64; i += 4) {
      const __m256i v =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers + i));
      const __m256i out = _mm256_or_si256(_mm256_cmpgt_epi64(lows, v),
                                          _mm256_cmpgt_epi64(v, highs));
      outside |= static_cast<std::uint64_t>(
                     _mm256_movemask_pd(_mm256_castsi256_pd(out)))
                 << i;
    }
    *words++ = ~outside;
  }
  IntegersScalar(numbers, n, low, high, words);
}

ATTENDANT_AVX2 void DoublesAvx2(const double* numbers, std::int64_t n,
                                double low, double high, std::uint64_t* words) {
  const __m256d lows = _mm256_set1_pd(low);
  const __m256d highs = _mm256_set1_pd(high);
  for (; n >= 64; n -= 64, numbers += 64) {
    std::uint64_t word = 0;
    for (int i = 0; i < 64; i += 4) {
      const __m256d v = _mm256_loadu_pd(numbers + i);
      const __m256d in = _mm256_and_pd(_mm256_cmp_pd(lows, v, _CMP_LE_OQ),
                                       _mm256_cmp_pd(v, highs, _CMP_LE_OQ));
      word |= static_cast<std::uint64_t>(_mm256_movemask_pd(in)) << i;
    }
    *words++ = word;
  }
  DoublesScalar(numbers, n, low, high, words);
}

ATTENDANT_AVX2 void CodeAvx2(const std::int32_t* codes, std::int64_t n,
                             std::int32_t code, std::uint64_t* words) {
  const __m256i wanted = _mm256_set1_epi32(code);
  for (; n >= 64; n -= 64, codes += 64) {
    std::uint64_t word = 0;
    for (int i = 0; i < 64; i += 8) {
      const __m256i v =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i));
      const __m256 in = _mm256_castsi256_ps(_mm256_cmpeq_epi32(v, wanted));
      word |= static_cast<std::uint64_t>(_mm256_movemask_ps(in)) << i;
    }
    *words++ = word;
  }
  CodeScalar(codes, n, code, words);
}

ATTENDANT_AVX2 void CodesAvx2(const std::int32_t* codes, std::int64_t n,
                              const std::uint32_t* chosen,
                              std::int32_t code_count, std::uint64_t* words) {
  const __m256i last = _mm256_set1_epi32(code_count - 1);
  const __m256i low_bits = _mm256_set1_epi32(31);
  for (; n >= 64; n -= 64, codes += 64) {
    std::uint64_t word = 0;
    for (int i = 0; i < 64; i += 8) {
      const __m256i v =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i));
      // A code out of range reads the bit of the last code and is masked out
      // below.
      const __m256i code = _mm256_min_epu32(v, last);
      const __m256i found = _mm256_i32gather_epi32(
          reinterpret_cast<const int*>(chosen), _mm256_srli_epi32(code, 5), 4);
      // Shift the chosen bit to the sign.
      const __m256i sign = _mm256_sllv_epi32(
          found, _mm256_sub_epi32(low_bits, _mm256_and_si256(code, low_bits)));
      const __m256i in = _mm256_and_si256(sign, _mm256_cmpeq_epi32(v, code));
      word |= static_cast<std::uint64_t>(
                  _mm256_movemask_ps(_mm256_castsi256_ps(in)))
              << i;
    }
    *words++ = word;
  }
  CodesScalar(codes, n, chosen, code_count, words);
}

ATTENDANT_AVX512 void IntegersAvx512(const std::int64_t* numbers,
                                     std::int64_t n, std::int64_t low,
                                     std::int64_t high, std::uint64_t* words) {
  const __m512i lows = _mm512_set1_epi64(low);
  const __m512i highs = _mm512_set1_epi64(high);
  for (; n >= 64; n -= 64, numbers += 64) {
    std::uint64_t word = 0;
    for (int i = 0; i < 64; i += 8) {
      const __m512i v = _mm512_loadu_si512(numbers + i);
      const __mmask8 in = _mm512_mask_cmple_epi64_mask(
          _mm512_cmple_epi64_mask(lows, v), v, highs);
      word |= std::uint64_t{in} << i;
    }
    *words++ = word;
  }
  IntegersScalar(numbers, n, low, high, words);
}

ATTENDANT_AVX512 void DoublesAvx512(const double* numbers, std::int64_t n,
                                    double low, double high,
                                    std::uint64_t* words) {
  const __m512d lows = _mm512_set1_pd(low);
  const __m512d highs = _mm512_set1_pd(high);
  for (; n >= 64; n -= 64, numbers += 64) {
    std::uint64_t word = 0;
    for (int i = 0; i < 64; i += 8) {
      const __m512d v = _mm512_loadu_pd(numbers + i);
      const __mmask8 in = _mm512_mask_cmp_pd_mask(
          _mm512_cmp_pd_mask(lows, v, _CMP_LE_OQ), v, highs, _CMP_LE_OQ);
      word |= std::uint64_t{in} << i;
    }
    *words++ = word;
  }
  DoublesScalar(numbers, n, low, high, words);
}

ATTENDANT_AVX512 void CodeAvx512(const std::int32_t* codes, std::int64_t n,
                                 std::int32_t code, std::uint64_t* words) {
  const __m512i wanted = _mm512_set1_epi32(code);
  for (; n >= 64; n -= 64, codes += 64) {
    std::uint64_t word = 0;
    for (int i = 0; i < 64; i += 16) {
      const __mmask16 in =
          _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(codes + i), wanted);
      word |= std::uint64_t{in} << i;
    }
    *words++ = word;
  }
  CodeScalar(codes, n, code, words);
}

ATTENDANT_AVX512 void CodesAvx512(const std::int32_t* codes, std::int64_t n,
                                  const std::uint32_t* chosen,
                                  std::int32_t code_count,
                                  std::uint64_t* words) {
  const __m512i count = _mm512_set1_epi32(code_count);
  const __m512i low_bits = _mm512_set1_epi32(31);
  const __m512i one = _mm512_set1_epi32(1);
  for (; n >= 64; n -= 64, codes += 64) {
    std::uint64_t word = 0;
    for (int i = 0; i < 64; i += 16) {
      const __m512i code = _mm512_loadu_si512(codes + i);
      const __mmask16 known = _mm512_cmplt_epu32_mask(code, count);
      const __m512i found = _mm512_mask_i32gather_epi32(
          _mm512_setzero_si512(), known, _mm512_srli_epi32(code, 5), chosen, 4);
      const __mmask16 in = _mm512_test_epi32_mask(
          found, _mm512_sllv_epi32(one, _mm512_and_si512(code, low_bits)));
      word |= std::uint64_t{in} << i;
    }
    *words++ = word;
  }
  CodesScalar(codes, n, chosen, code_count, words);
}

constexpr CompareKernels kScalar = {IntegersScalar, DoublesScalar, CodeScalar,
                                    CodesScalar, CountBitsScalar};
constexpr CompareKernels kAvx2 = {IntegersAvx2, DoublesAvx2, CodeAvx2,
                                  CodesAvx2, CountBitsPopcnt};
constexpr CompareKernels kAvx512 = {IntegersAvx512, DoublesAvx512, CodeAvx512,
                                    CodesAvx512, CountBitsPopcnt};

}  // namespace

const CompareKernels& CompareKernelsFor(KernelLevel level) {
  switch (level) {
    case KernelLevel::kAvx512:
      return kAvx512;
    case KernelLevel::kAvx2:
      return kAvx2;
    case KernelLevel::kScalar:
      break;
  }
  return kScalar;
}

const CompareKernels& ActiveCompareKernels() {
  return CompareKernelsFor(ActiveKernelLevel());
}

}  // namespace attendant

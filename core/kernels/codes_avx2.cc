// Codes for AVX2. Target attributes on the functions, not on the file, so that
// nothing inline from a header is compiled for processors that may not be
// there.
#include <immintrin.h>

#include <cstring>

#include "core/kernels/levels.h"

#define ATTENDANT_AVX2 __attribute__((target("avx2,fma"), always_inline))
#define ATTENDANT_AVX2_ENTRY __attribute__((target("avx2,fma")))
#define ATTENDANT_UNROLL _Pragma("GCC unroll 8")

namespace attendant {
namespace {

constexpr int kWidth = 8;  // rows in a register, half a block

// Products of bytes added in pairs to 16 bits saturate (vpmaddubsw), so both
// sides are widened: components 0 and 2 of each row's 4 in one register, 1 and
// 3 in the other, as the pairs that vpmaddwd adds.
struct Widened {
  __m256i even, odd;
};

ATTENDANT_AVX2 inline Widened WidenCodes(__m256i codes) {
  return {_mm256_and_si256(codes, _mm256_set1_epi16(0xff)),
          _mm256_srli_epi16(codes, 8)};
}

ATTENDANT_AVX2 inline Widened Components(const std::int8_t* from) {
  std::int32_t four;
  std::memcpy(&four, from, sizeof(four));
  const __m256i bytes = _mm256_set1_epi32(four);
  return {_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8),
          _mm256_srai_epi16(bytes, 8)};
}

ATTENDANT_AVX2 inline __m256i AddProducts(__m256i sum, const Widened& codes,
                                          const Widened& components) {
  return _mm256_add_epi32(
      sum, _mm256_add_epi32(_mm256_madd_epi16(codes.even, components.even),
                            _mm256_madd_epi16(codes.odd, components.odd)));
}

struct CodePair {
  Widened first, second;  // components 0..3 and 4..7 of a step, 8 rows
};

ATTENDANT_AVX2 inline __m256i Load(const std::uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

template <int kBits>
ATTENDANT_AVX2 inline CodePair LoadCodes(const std::uint8_t* high,
                                         const std::uint8_t* low) {
  const __m256i nibbles = _mm256_set1_epi8(0x0f);
  const __m256i h = Load(high);
  const __m256i first = _mm256_and_si256(h, nibbles);
  if constexpr (kBits == 4) {
    return {WidenCodes(first),
            WidenCodes(_mm256_and_si256(_mm256_srli_epi16(h, 4), nibbles))};
  } else {
    const __m256i l = Load(low);
    return {WidenCodes(_mm256_or_si256(_mm256_slli_epi16(first, 4),
                                       _mm256_and_si256(l, nibbles))),
            WidenCodes(_mm256_or_si256(
                _mm256_andnot_si256(nibbles, h),
                _mm256_and_si256(_mm256_srli_epi16(l, 4), nibbles)))};
  }
}

// A block and kQueries queries, 4 sums each.
template <int kBits, int kQueries>
ATTENDANT_AVX2 inline void Tile(const CodeQuery* queries,
                                const std::uint8_t* high,
                                const std::uint8_t* low, const float* scales,
                                std::int64_t step_count, std::int64_t stride,
                                float* logits) {
  __m256i high_sums[kQueries][2];
  __m256i low_sums[kQueries][2];
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    ATTENDANT_UNROLL
    for (int half = 0; half < 2; ++half) {
      high_sums[q][half] = _mm256_setzero_si256();
      low_sums[q][half] = _mm256_setzero_si256();
    }
  }
  for (std::int64_t t = 0; t < step_count; ++t) {
    ATTENDANT_UNROLL
    for (int half = 0; half < 2; ++half) {
      const std::int64_t at = 64 * t + 32 * half;
      const CodePair codes = LoadCodes<kBits>(high + at, low + at);
      ATTENDANT_UNROLL
      for (int q = 0; q < kQueries; ++q) {
        high_sums[q][half] = AddProducts(high_sums[q][half], codes.first,
                                         Components(queries[q].high + 8 * t));
        low_sums[q][half] = AddProducts(low_sums[q][half], codes.first,
                                        Components(queries[q].low + 8 * t));
        high_sums[q][half] =
            AddProducts(high_sums[q][half], codes.second,
                        Components(queries[q].high + 8 * t + 4));
        low_sums[q][half] = AddProducts(low_sums[q][half], codes.second,
                                        Components(queries[q].low + 8 * t + 4));
      }
    }
  }
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    ATTENDANT_UNROLL
    for (int half = 0; half < 2; ++half) {
      __m256i h = high_sums[q][half];
      __m256i l = low_sums[q][half];
      constexpr int kMiddle = kBits == 8 ? 128 : 241;
      if constexpr (kBits == 4) {
        h = _mm256_slli_epi32(h, 5);
        l = _mm256_slli_epi32(l, 5);
      }
      h = _mm256_sub_epi32(h, _mm256_set1_epi32(kMiddle * queries[q].high_sum));
      l = _mm256_sub_epi32(l, _mm256_set1_epi32(kMiddle * queries[q].low_sum));
      // The product with 256 is exact: one rounding, as for the twin.
      __m256 dot = _mm256_fmadd_ps(_mm256_cvtepi32_ps(h), _mm256_set1_ps(256),
                                   _mm256_cvtepi32_ps(l));
      if constexpr (kBits == 4) dot = _mm256_mul_ps(dot, _mm256_set1_ps(0.5f));
      dot = _mm256_mul_ps(dot, _mm256_loadu_ps(scales + kWidth * half));
      dot = _mm256_mul_ps(dot, _mm256_set1_ps(queries[q].unit));
      _mm256_storeu_ps(logits + q * stride + kWidth * half, dot);
    }
  }
}

template <int kBits>
ATTENDANT_AVX2_ENTRY void Logits(const CodeQuery* queries,
                                 std::int64_t query_count,
                                 const std::uint8_t* high,
                                 const std::uint8_t* low, const float* scales,
                                 std::int64_t block_count,
                                 std::int64_t step_count, std::int64_t stride,
                                 float* logits) {
  const std::int64_t block_bytes = CodePlaneBytes(step_count);
  for (std::int64_t b = 0; b < block_count; ++b) {
    std::int64_t q = 0;
    for (; q + 2 <= query_count; q += 2) {
      Tile<kBits, 2>(queries + q, high, low, scales, step_count, stride,
                     logits + q * stride);
    }
    if (q < query_count) {
      Tile<kBits, 1>(queries + q, high, low, scales, step_count, stride,
                     logits + q * stride);
    }
    high += block_bytes;
    low += block_bytes;
    scales += kCodeRows;
    logits += kCodeRows;
  }
}

ATTENDANT_AVX2_ENTRY void Logits8(const CodeQuery* queries,
                                  std::int64_t query_count,
                                  const std::uint8_t* high_plane,
                                  const std::uint8_t* low_plane,
                                  const float* scales, std::int64_t block_count,
                                  std::int64_t step_count, std::int64_t stride,
                                  float* logits) {
  Logits<8>(queries, query_count, high_plane, low_plane, scales, block_count,
            step_count, stride, logits);
}

ATTENDANT_AVX2_ENTRY void Logits4(const CodeQuery* queries,
                                  std::int64_t query_count,
                                  const std::uint8_t* high_plane,
                                  const float* scales, std::int64_t block_count,
                                  std::int64_t step_count, std::int64_t stride,
                                  float* logits) {
  // The low plane is not read.
  Logits<4>(queries, query_count, high_plane, high_plane, scales, block_count,
            step_count, stride, logits);
}

}  // namespace

const CodeKernels kAvx2CodeKernels = {Logits8, Logits4};

}  // namespace attendant

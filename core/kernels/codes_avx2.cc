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

// The float that a plane's sum of products stands for.
template <int kBits>
ATTENDANT_AVX2 inline __m256 FromSum(__m256i sum, std::int32_t query_sum) {
  constexpr int kMiddle = kBits == 8 ? 128 : 241;
  if constexpr (kBits == 4) sum = _mm256_slli_epi32(sum, 5);
  return _mm256_cvtepi32_ps(
      _mm256_sub_epi32(sum, _mm256_set1_epi32(kMiddle * query_sum)));
}

// A block and kQueries queries of kPlanes planes, 2 sums each.
template <int kBits, int kPlanes, int kQueries>
ATTENDANT_AVX2 inline void Tile(const CodeQuery* queries,
                                const std::uint8_t* high,
                                const std::uint8_t* low, const float* scales,
                                std::int64_t step_count, std::int64_t stride,
                                float* logits) {
  __m256i sums[kPlanes][kQueries][2];
  ATTENDANT_UNROLL
  for (int p = 0; p < kPlanes; ++p) {
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      sums[p][q][0] = sums[p][q][1] = _mm256_setzero_si256();
    }
  }
  for (std::int64_t t = 0; t < step_count; ++t) {
    ATTENDANT_UNROLL
    for (int half = 0; half < 2; ++half) {
      const std::int64_t at = 64 * t + 32 * half;
      const CodePair codes = LoadCodes<kBits>(high + at, low + at);
      ATTENDANT_UNROLL
      for (int p = 0; p < kPlanes; ++p) {
        ATTENDANT_UNROLL
        for (int q = 0; q < kQueries; ++q) {
          const std::int8_t* plane = p == 0 ? queries[q].high : queries[q].low;
          __m256i& sum = sums[p][q][half];
          sum = AddProducts(sum, codes.first, Components(plane + 8 * t));
          sum = AddProducts(sum, codes.second, Components(plane + 8 * t + 4));
        }
      }
    }
  }
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    ATTENDANT_UNROLL
    for (int half = 0; half < 2; ++half) {
      const __m256 high_dot =
          FromSum<kBits>(sums[0][q][half], queries[q].high_sum);
      const __m256 low_dot =
          kPlanes == 1
              ? _mm256_setzero_ps()
              : FromSum<kBits>(sums[kPlanes - 1][q][half], queries[q].low_sum);
      // The product with 256 is exact: one rounding, as for the twin.
      __m256 dot = _mm256_fmadd_ps(high_dot, _mm256_set1_ps(256), low_dot);
      if constexpr (kBits == 4) dot = _mm256_mul_ps(dot, _mm256_set1_ps(0.5f));
      dot = _mm256_mul_ps(dot, _mm256_loadu_ps(scales + kWidth * half));
      dot = _mm256_mul_ps(dot, _mm256_set1_ps(queries[q].unit));
      _mm256_storeu_ps(logits + q * stride + kWidth * half, dot);
    }
  }
}

template <int kBits, int kPlanes>
ATTENDANT_AVX2_ENTRY void LogitsOf(const CodeQuery* queries,
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
      Tile<kBits, kPlanes, 2>(queries + q, high, low, scales, step_count,
                              stride, logits + q * stride);
    }
    if (q < query_count) {
      Tile<kBits, kPlanes, 1>(queries + q, high, low, scales, step_count,
                              stride, logits + q * stride);
    }
    high += block_bytes;
    low += block_bytes;
    scales += kCodeRows;
    logits += kCodeRows;
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
  if (query_count == 0) return;
  const auto logits_of =
      queries[0].low == nullptr ? LogitsOf<kBits, 1> : LogitsOf<kBits, 2>;
  logits_of(queries, query_count, high, low, scales, block_count, step_count,
            stride, logits);
}

ATTENDANT_AVX2_ENTRY void Logits8(const CodeQuery* queries,
                                  std::int64_t query_count,
                                  const std::uint8_t* high_plane,
                                  const std::uint8_t* low_plane,
                                  const float* scales, std::int64_t block_count,
                                  std::int64_t, std::int64_t step_count,
                                  std::int64_t stride, float* logits) {
  Logits<8>(queries, query_count, high_plane, low_plane, scales, block_count,
            step_count, stride, logits);
}

ATTENDANT_AVX2_ENTRY void Logits4(const CodeQuery* queries,
                                  std::int64_t query_count,
                                  const std::uint8_t* high_plane,
                                  const float* scales, std::int64_t block_count,
                                  std::int64_t, std::int64_t step_count,
                                  std::int64_t stride, float* logits) {
  // The low plane is not read.
  Logits<4>(queries, query_count, high_plane, high_plane, scales, block_count,
            step_count, stride, logits);
}

ATTENDANT_AVX2_ENTRY void Logits4At(const CodeQuery& query,
                                    const std::uint8_t* high_plane,
                                    const float* scales,
                                    const std::int32_t* blocks,
                                    std::int64_t count, std::int64_t step_count,
                                    float* logits) {
  for (std::int64_t i = 0; i < count; ++i) {
    Logits4(&query, 1, high_plane + blocks[i] * CodePlaneBytes(step_count),
            scales + blocks[i] * kCodeRows, 1, 1, step_count, kCodeRows,
            logits + i * kCodeRows);
  }
}

}  // namespace

const CodeKernels kAvx2CodeKernels = {Logits8, Logits4, Logits4At};

}  // namespace attendant

// Codes for AVX-512 with VNNI. Target attributes on the functions, not on the
// file, so that nothing inline from a header is compiled for processors that
// may not be there.
#include <immintrin.h>

#include <cstring>

#include "core/kernels/levels.h"

#define ATTENDANT_VNNI                                                    \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"), \
                 always_inline))
#define ATTENDANT_VNNI_ENTRY \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
// Loops over a tile's sums: unrolled before anything else, they stay in
// registers.
#define ATTENDANT_UNROLL _Pragma("GCC unroll 8")

namespace attendant {
namespace {

// A query's planes give 2 sums a block. Of 32 registers a tile of many queries
// takes 24 for sums, 4 for codes and 2 for masks and a query's components.
constexpr int kTileQueries = 6;
constexpr int kTileBlocks = 2;
constexpr int kSingleBlocks = 4;

struct CodePair {
  __m512i first, second;  // components 0..3 and 4..7 of a step, 16 rows
};

ATTENDANT_VNNI inline __m512i Load(const std::uint8_t* from) {
  return _mm512_loadu_si512(from);
}

// A query's next 4 components for each row.
ATTENDANT_VNNI inline __m512i Components(const std::int8_t* from) {
  std::int32_t four;
  std::memcpy(&four, from, sizeof(four));
  return _mm512_set1_epi32(four);
}

template <int kBits>
ATTENDANT_VNNI inline CodePair LoadCodes(const std::uint8_t* high,
                                         const std::uint8_t* low) {
  const __m512i nibbles = _mm512_set1_epi8(0x0f);
  const __m512i h = Load(high);
  if constexpr (kBits == 4) {
    return {_mm512_and_si512(h, nibbles),
            _mm512_and_si512(_mm512_srli_epi16(h, 4), nibbles)};
  } else {
    // 0xca: where the mask has a bit, of the second operand, else of the third.
    constexpr int kSelect = 0xca;
    const __m512i l = Load(low);
    return {
        _mm512_ternarylogic_epi32(nibbles, l, _mm512_slli_epi16(h, 4), kSelect),
        _mm512_ternarylogic_epi32(nibbles, _mm512_srli_epi16(l, 4), h,
                                  kSelect)};
  }
}

// A tile's rows begin at the planes and scales given.
template <int kBits, int kBlocks, int kQueries>
ATTENDANT_VNNI inline void Tile(const CodeQuery* queries,
                                const std::uint8_t* high,
                                const std::uint8_t* low, const float* scales,
                                std::int64_t step_count, std::int64_t stride,
                                float* logits) {
  const std::int64_t block_bytes = CodePlaneBytes(step_count);
  __m512i high_sums[kQueries][kBlocks];
  __m512i low_sums[kQueries][kBlocks];
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    ATTENDANT_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      high_sums[q][b] = _mm512_setzero_si512();
      low_sums[q][b] = _mm512_setzero_si512();
    }
  }
  for (std::int64_t t = 0; t < step_count; ++t) {
    CodePair codes[kBlocks];
    ATTENDANT_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      const std::int64_t at = b * block_bytes + 64 * t;
      codes[b] = LoadCodes<kBits>(high + at, low + at);
      if constexpr (kQueries == 1) {
        _mm_prefetch(high + at + kBlocks * block_bytes, _MM_HINT_T0);
        if constexpr (kBits == 8) {
          _mm_prefetch(low + at + kBlocks * block_bytes, _MM_HINT_T0);
        }
      }
    }
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      const __m512i high_first = Components(queries[q].high + 8 * t);
      const __m512i low_first = Components(queries[q].low + 8 * t);
      const __m512i high_second = Components(queries[q].high + 8 * t + 4);
      const __m512i low_second = Components(queries[q].low + 8 * t + 4);
      ATTENDANT_UNROLL
      for (int b = 0; b < kBlocks; ++b) {
        high_sums[q][b] =
            _mm512_dpbusd_epi32(high_sums[q][b], codes[b].first, high_first);
        low_sums[q][b] =
            _mm512_dpbusd_epi32(low_sums[q][b], codes[b].first, low_first);
        high_sums[q][b] =
            _mm512_dpbusd_epi32(high_sums[q][b], codes[b].second, high_second);
        low_sums[q][b] =
            _mm512_dpbusd_epi32(low_sums[q][b], codes[b].second, low_second);
      }
    }
  }
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    const __m512 unit = _mm512_set1_ps(queries[q].unit);
    ATTENDANT_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      __m512i h = high_sums[q][b];
      __m512i l = low_sums[q][b];
      constexpr int kMiddle = kBits == 8 ? 128 : 241;
      if constexpr (kBits == 4) {
        h = _mm512_slli_epi32(h, 5);
        l = _mm512_slli_epi32(l, 5);
      }
      h = _mm512_sub_epi32(h, _mm512_set1_epi32(kMiddle * queries[q].high_sum));
      l = _mm512_sub_epi32(l, _mm512_set1_epi32(kMiddle * queries[q].low_sum));
      // The product with 256 is exact: one rounding, as for the twin.
      __m512 dot = _mm512_fmadd_ps(_mm512_cvtepi32_ps(h), _mm512_set1_ps(256),
                                   _mm512_cvtepi32_ps(l));
      if constexpr (kBits == 4) dot = _mm512_mul_ps(dot, _mm512_set1_ps(0.5f));
      dot = _mm512_mul_ps(dot, _mm512_loadu_ps(scales + kCodeRows * b));
      _mm512_storeu_ps(logits + q * stride + kCodeRows * b,
                       _mm512_mul_ps(dot, unit));
    }
  }
}

template <int kBits, int kBlocks>
ATTENDANT_VNNI_ENTRY void TileOf(int query_count, const CodeQuery* queries,
                                 const std::uint8_t* high,
                                 const std::uint8_t* low, const float* scales,
                                 std::int64_t step_count, std::int64_t stride,
                                 float* logits) {
  switch (query_count) {
    case 1:
      return Tile<kBits, kBlocks, 1>(queries, high, low, scales, step_count,
                                     stride, logits);
    case 2:
      return Tile<kBits, kBlocks, 2>(queries, high, low, scales, step_count,
                                     stride, logits);
    case 3:
      return Tile<kBits, kBlocks, 3>(queries, high, low, scales, step_count,
                                     stride, logits);
    case 4:
      return Tile<kBits, kBlocks, 4>(queries, high, low, scales, step_count,
                                     stride, logits);
    case 5:
      return Tile<kBits, kBlocks, 5>(queries, high, low, scales, step_count,
                                     stride, logits);
    default:
      return Tile<kBits, kBlocks, kTileQueries>(queries, high, low, scales,
                                                step_count, stride, logits);
  }
}

template <int kBits>
ATTENDANT_VNNI_ENTRY void Logits(const CodeQuery* queries,
                                 std::int64_t query_count,
                                 const std::uint8_t* high,
                                 const std::uint8_t* low, const float* scales,
                                 std::int64_t block_count,
                                 std::int64_t step_count, std::int64_t stride,
                                 float* logits) {
  const std::int64_t block_bytes = CodePlaneBytes(step_count);
  std::int64_t b = 0;
  if (query_count == 1) {
    for (; b + kSingleBlocks <= block_count; b += kSingleBlocks) {
      Tile<kBits, kSingleBlocks, 1>(
          queries, high + b * block_bytes, low + b * block_bytes,
          scales + b * kCodeRows, step_count, stride, logits + b * kCodeRows);
    }
  }
  // Tiles of queries that differ by one at most: no last one is all latency.
  const std::int64_t tile_count =
      (query_count + kTileQueries - 1) / kTileQueries;
  for (; b < block_count; b += kTileBlocks) {
    std::int64_t q = 0;
    for (std::int64_t tile = 0; tile < tile_count; ++tile) {
      const std::int64_t end = query_count * (tile + 1) / tile_count;
      const auto tile_of =
          b + 1 < block_count ? TileOf<kBits, kTileBlocks> : TileOf<kBits, 1>;
      tile_of(static_cast<int>(end - q), queries + q, high + b * block_bytes,
              low + b * block_bytes, scales + b * kCodeRows, step_count, stride,
              logits + q * stride + b * kCodeRows);
      q = end;
    }
  }
}

ATTENDANT_VNNI_ENTRY void Logits8(const CodeQuery* queries,
                                  std::int64_t query_count,
                                  const std::uint8_t* high_plane,
                                  const std::uint8_t* low_plane,
                                  const float* scales, std::int64_t block_count,
                                  std::int64_t step_count, std::int64_t stride,
                                  float* logits) {
  Logits<8>(queries, query_count, high_plane, low_plane, scales, block_count,
            step_count, stride, logits);
}

ATTENDANT_VNNI_ENTRY void Logits4(const CodeQuery* queries,
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

const CodeKernels kVnniCodeKernels = {Logits8, Logits4};

}  // namespace attendant

// Codes for AVX-512 with VNNI. Target attributes on the functions, not on the
// file, so that nothing inline from a header is compiled for processors that
// may not be there.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "core/kernels/levels.h"

#define ATTENDANT_VNNI \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define ATTENDANT_VNNI_INLINE ATTENDANT_VNNI __attribute__((always_inline))
// Loops over a tile's sums: unrolled before anything else, they stay in
// registers.
#define ATTENDANT_UNROLL _Pragma("GCC unroll 8")

namespace attendant {
namespace {

// A tile's 3 x 4 blocks have 24 sums, a query's planes 2 each, of 32 registers.
constexpr int kTileQueries = 3;
constexpr int kTileBlocks = 4;
// Rows of more steps are brought to bytes by each tile of queries anew; shorter
// ones once for all, in a buffer of 64 KiB at most.
constexpr std::int64_t kBufferSteps = 128;
constexpr std::int64_t kLine = 64;
// How far ahead a single query asks for its codes, in each plane, at least.
constexpr std::int64_t kAheadBytes = 4096;

struct CodePair {
  __m512i first, second;  // components 0..3 and 4..7 of a step, 16 rows
};

ATTENDANT_VNNI_INLINE inline void Prefetch(const std::uint8_t* from) {
  _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T0);
}

template <int kBits>
ATTENDANT_VNNI_INLINE inline CodePair LoadCodes(const std::uint8_t* high,
                                                const std::uint8_t* low) {
  const __m512i nibbles = _mm512_set1_epi8(0x0f);
  const __m512i h = _mm512_loadu_si512(high);
  if constexpr (kBits == 4) {
    return {_mm512_and_si512(h, nibbles),
            _mm512_and_si512(_mm512_srli_epi16(h, 4), nibbles)};
  } else {
    // Where the mask has a bit, of the second operand, else of the third.
    constexpr int kSelect = 0xca;
    const __m512i l = _mm512_loadu_si512(low);
    return {
        _mm512_ternarylogic_epi32(nibbles, l, _mm512_slli_epi16(h, 4), kSelect),
        _mm512_ternarylogic_epi32(nibbles, _mm512_srli_epi16(l, 4), h,
                                  kSelect)};
  }
}

// Where a tile has its codes from: the planes of kBlocks blocks,
template <int kBits, int kBlocks>
struct Planes {
  template <bool kAlone>
  ATTENDANT_VNNI_INLINE inline void Load(std::int64_t t,
                                         CodePair (&codes)[kBlocks]) const {
    ATTENDANT_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      const std::int64_t at = b * block_bytes + kLine * t;
      codes[b] = LoadCodes<kBits>(high + at, low + at);
      // A single query is bound by memory: ask for the same of a later tile.
      if constexpr (kAlone) {
        Prefetch(high + at + ahead);
        if constexpr (kBits == 8) Prefetch(low + at + ahead);
      }
    }
  }

  const std::uint8_t* high;
  const std::uint8_t* low;
  std::int64_t block_bytes;
  std::int64_t ahead;  // bytes, of whole tiles
};

// or a buffer, step by step.
template <int kBlocks>
struct Bytes {
  template <bool kAlone>
  ATTENDANT_VNNI_INLINE inline void Load(std::int64_t t,
                                         CodePair (&codes)[kBlocks]) const {
    ATTENDANT_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      const std::uint8_t* from = bytes + 2 * kLine * (t * kBlocks + b);
      codes[b] = {_mm512_load_si512(from), _mm512_load_si512(from + kLine)};
    }
  }

  const std::uint8_t* bytes;
};

ATTENDANT_VNNI_INLINE inline __m512i Components(const std::int8_t* from) {
  std::int32_t four;
  std::memcpy(&four, from, sizeof(four));
  return _mm512_set1_epi32(four);
}

// GCC 12 holds a tile's sums in memory if it may order the intrinsics itself.
ATTENDANT_VNNI_INLINE inline void AddProducts(__m512i& sum, __m512i codes,
                                              __m512i components) {
  asm volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(components));
}

// Of kBlocks blocks, to whose first row `scales` and `logits` point.
template <int kBits, int kBlocks, int kQueries, typename Source>
ATTENDANT_VNNI_INLINE inline void Tile(const CodeQuery* queries,
                                       const Source& source,
                                       const float* scales,
                                       std::int64_t step_count,
                                       std::int64_t stride, float* logits) {
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
    source.template Load<kQueries == 1>(t, codes);
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      const __m512i high = Components(queries[q].high + kCodeDims * t);
      const __m512i low = Components(queries[q].low + kCodeDims * t);
      ATTENDANT_UNROLL
      for (int b = 0; b < kBlocks; ++b) {
        AddProducts(high_sums[q][b], codes[b].first, high);
        AddProducts(low_sums[q][b], codes[b].first, low);
      }
    }
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      const __m512i high = Components(queries[q].high + kCodeDims * t + 4);
      const __m512i low = Components(queries[q].low + kCodeDims * t + 4);
      ATTENDANT_UNROLL
      for (int b = 0; b < kBlocks; ++b) {
        AddProducts(high_sums[q][b], codes[b].second, high);
        AddProducts(low_sums[q][b], codes[b].second, low);
      }
    }
  }
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    constexpr int kMiddle = kBits == 8 ? 128 : 241;
    const __m512i high_middle =
        _mm512_set1_epi32(kMiddle * queries[q].high_sum);
    const __m512i low_middle = _mm512_set1_epi32(kMiddle * queries[q].low_sum);
    const __m512 unit = _mm512_set1_ps(queries[q].unit);
    ATTENDANT_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      __m512i high = high_sums[q][b];
      __m512i low = low_sums[q][b];
      if constexpr (kBits == 4) {
        high = _mm512_slli_epi32(high, 5);
        low = _mm512_slli_epi32(low, 5);
      }
      high = _mm512_sub_epi32(high, high_middle);
      low = _mm512_sub_epi32(low, low_middle);
      // The product with 256 is exact: one rounding, as for the twin.
      __m512 dot =
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), _mm512_set1_ps(256),
                          _mm512_cvtepi32_ps(low));
      if constexpr (kBits == 4) dot = _mm512_mul_ps(dot, _mm512_set1_ps(0.5f));
      dot = _mm512_mul_ps(dot, _mm512_loadu_ps(scales + kCodeRows * b));
      _mm512_storeu_ps(logits + q * stride + kCodeRows * b,
                       _mm512_mul_ps(dot, unit));
    }
  }
}

template <int kBits, int kBlocks, typename Source>
ATTENDANT_VNNI void TileOf(std::int64_t query_count, const CodeQuery* queries,
                           const Source& source, const float* scales,
                           std::int64_t step_count, std::int64_t stride,
                           float* logits) {
  switch (query_count) {
    case 1:
      return Tile<kBits, kBlocks, 1>(queries, source, scales, step_count,
                                     stride, logits);
    case 2:
      return Tile<kBits, kBlocks, 2>(queries, source, scales, step_count,
                                     stride, logits);
    default:
      return Tile<kBits, kBlocks, kTileQueries>(queries, source, scales,
                                                step_count, stride, logits);
  }
}

// The planes' bytes of a group of blocks, to be asked for in equal parts.
class NextBlocks {
 public:
  NextBlocks(const std::uint8_t* high, const std::uint8_t* low,
             std::int64_t bytes, std::int64_t part_count)
      : high_(high), low_(low), bytes_(bytes), part_count_(part_count) {}

  template <int kBits>
  ATTENDANT_VNNI_INLINE inline void PrefetchPart(std::int64_t part) const {
    const std::int64_t line_count = bytes_ / kLine;
    const std::int64_t end = line_count * (part + 1) / part_count_;
    for (std::int64_t i = line_count * part / part_count_; i < end; ++i) {
      Prefetch(high_ + kLine * i);
      if constexpr (kBits == 8) Prefetch(low_ + kLine * i);
    }
  }

 private:
  const std::uint8_t* high_;
  const std::uint8_t* low_;
  std::int64_t bytes_;
  std::int64_t part_count_;
};

template <int kBits, int kBlocks>
ATTENDANT_VNNI void Blocks(const CodeQuery* queries, std::int64_t query_count,
                           const std::uint8_t* high, const std::uint8_t* low,
                           const float* scales, std::int64_t step_count,
                           std::int64_t stride, float* logits) {
  const std::int64_t block_bytes = CodePlaneBytes(step_count);
  const std::int64_t group_bytes = kBlocks * block_bytes;
  const Planes<kBits, kBlocks> planes = {
      high, low, block_bytes,
      group_bytes * std::max<std::int64_t>(1, kAheadBytes / group_bytes)};
  if (query_count == 1) {
    return TileOf<kBits, kBlocks>(1, queries, planes, scales, step_count,
                                  stride, logits);
  }
  alignas(kLine) std::uint8_t bytes[2 * kLine * kBufferSteps * kBlocks];
  const bool is_buffered = step_count <= kBufferSteps;
  if (is_buffered) {
    for (std::int64_t t = 0; t < step_count; ++t) {
      CodePair codes[kBlocks];
      planes.template Load<false>(t, codes);
      ATTENDANT_UNROLL
      for (int b = 0; b < kBlocks; ++b) {
        std::uint8_t* to = bytes + 2 * kLine * (t * kBlocks + b);
        _mm512_store_si512(to, codes[b].first);
        _mm512_store_si512(to + kLine, codes[b].second);
      }
    }
  }
  // Tiles of queries that differ by one at most: no last one is all latency.
  const std::int64_t tile_count =
      (query_count + kTileQueries - 1) / kTileQueries;
  const NextBlocks next(high + group_bytes, low + group_bytes, group_bytes,
                        tile_count);
  std::int64_t q = 0;
  for (std::int64_t tile = 0; tile < tile_count; ++tile) {
    const std::int64_t end = query_count * (tile + 1) / tile_count;
    if (is_buffered) {
      TileOf<kBits, kBlocks>(end - q, queries + q, Bytes<kBlocks>{bytes},
                             scales, step_count, stride, logits + q * stride);
    } else {
      TileOf<kBits, kBlocks>(end - q, queries + q, planes, scales, step_count,
                             stride, logits + q * stride);
    }
    next.PrefetchPart<kBits>(tile);
    q = end;
  }
}

template <int kBits>
ATTENDANT_VNNI void Logits(const CodeQuery* queries, std::int64_t query_count,
                           const std::uint8_t* high, const std::uint8_t* low,
                           const float* scales, std::int64_t block_count,
                           std::int64_t step_count, std::int64_t stride,
                           float* logits) {
  if (query_count == 0) return;
  const std::int64_t block_bytes = CodePlaneBytes(step_count);
  for (std::int64_t b = 0; b < block_count; b += kTileBlocks) {
    const auto blocks_of = [&] {
      switch (block_count - b) {
        case 1:
          return Blocks<kBits, 1>;
        case 2:
          return Blocks<kBits, 2>;
        case 3:
          return Blocks<kBits, 3>;
        default:
          return Blocks<kBits, kTileBlocks>;
      }
    }();
    blocks_of(queries, query_count, high + b * block_bytes,
              low + b * block_bytes, scales + b * kCodeRows, step_count, stride,
              logits + b * kCodeRows);
  }
}

ATTENDANT_VNNI void Logits8(const CodeQuery* queries, std::int64_t query_count,
                            const std::uint8_t* high_plane,
                            const std::uint8_t* low_plane, const float* scales,
                            std::int64_t block_count, std::int64_t step_count,
                            std::int64_t stride, float* logits) {
  Logits<8>(queries, query_count, high_plane, low_plane, scales, block_count,
            step_count, stride, logits);
}

ATTENDANT_VNNI void Logits4(const CodeQuery* queries, std::int64_t query_count,
                            const std::uint8_t* high_plane, const float* scales,
                            std::int64_t block_count, std::int64_t step_count,
                            std::int64_t stride, float* logits) {
  // The low plane is not read.
  Logits<4>(queries, query_count, high_plane, high_plane, scales, block_count,
            step_count, stride, logits);
}

}  // namespace

const CodeKernels kVnniCodeKernels = {Logits8, Logits4};

}  // namespace attendant

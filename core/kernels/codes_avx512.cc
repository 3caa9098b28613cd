// Codes for AVX-512 with VNNI. The target attribute is on functions, not on the
// file, so that no inline function from a header is compiled for instructions
// that the processor may lack.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "core/kernels/code_blocks.h"
#include "core/kernels/levels.h"

#define ATTENDANT_VNNI \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define ATTENDANT_VNNI_INLINE ATTENDANT_VNNI __attribute__((always_inline))
// For loops over a tile's sums: unrolled before any other optimisation, the
// sums stay in registers.
#define ATTENDANT_UNROLL _Pragma("GCC unroll 8")
// For loops over a block's steps.
#define ATTENDANT_UNROLL_TWICE _Pragma("GCC unroll 2")

namespace attendant {
namespace {

constexpr int kMaxBlocks = 4;
constexpr std::int64_t kLine = 64;
// With many queries, codes are expanded to bytes once for all of them, for as
// many blocks as fit into a buffer of this size: half of the L1 cache for rows
// of 512.
constexpr std::int64_t kBufferBytes = 64 << 10;
// How far ahead a single query prefetches its codes in each plane.
constexpr std::int64_t kAheadBytes = 8192;

// Of 32 registers, a tile uses at most 24 for sums (one per block, query and
// plane of the query) and 4 for codes.
constexpr int TileQueries(int planes, int blocks) {
  return std::min(6, 24 / (planes * blocks));
}

struct CodePair {
  __m512i first, second;  // components 0..3 and 4..7 of a step, 16 rows
};

// Prefetches a line into the first cache.
ATTENDANT_VNNI_INLINE inline void PrefetchFirst(const std::uint8_t* from) {
  _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T0);
}
// Prefetches a line into the second cache, which can wait for more lines at
// once.
ATTENDANT_VNNI_INLINE inline void PrefetchSecond(const std::uint8_t* from) {
  _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T1);
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
    // Selects the second operand where the mask has a bit, else the third.
    constexpr int kSelect = 0xca;
    const __m512i l = _mm512_loadu_si512(low);
    return {
        _mm512_ternarylogic_epi32(nibbles, l, _mm512_slli_epi16(h, 4), kSelect),
        _mm512_ternarylogic_epi32(nibbles, _mm512_srli_epi16(l, 4), h,
                                  kSelect)};
  }
}

// A tile's codes, read from blocks anywhere, of 4 bits.
template <int kBlocks>
struct BlocksAt {
  ATTENDANT_VNNI_INLINE inline void Load(std::int64_t t,
                                         CodePair (&codes)[kBlocks]) const {
    ATTENDANT_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      codes[b] = LoadCodes<4>(high[b] + kLine * t, nullptr);
    }
  }

  const std::uint8_t* high[kBlocks];
};

// A tile's codes, read from a buffer step by step. Each step also prefetches a
// fixed number of lines of each plane of the codes that follow: prefetching all
// at once would stall.
template <int kBlocks>
struct Bytes {
  ATTENDANT_VNNI_INLINE inline void Load(std::int64_t t,
                                         CodePair (&codes)[kBlocks]) const {
    ATTENDANT_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      const std::uint8_t* from = bytes + 2 * kLine * (t * kBlocks + b);
      codes[b] = {_mm512_load_si512(from), _mm512_load_si512(from + kLine)};
    }
    for (std::int64_t i = 0; i < lines_a_step; ++i) {
      PrefetchFirst(next_high + kLine * (t * lines_a_step + i));
      PrefetchFirst(next_low + kLine * (t * lines_a_step + i));
    }
  }

  const std::uint8_t* bytes;
  const std::uint8_t* next_high;
  const std::uint8_t* next_low;
  std::int64_t lines_a_step;
};

ATTENDANT_VNNI_INLINE inline __m512i Components(const std::int8_t* from) {
  std::int32_t four;
  std::memcpy(&four, from, sizeof(four));
  return _mm512_set1_epi32(four);
}

// In assembly, as GCC 12 keeps a tile's sums in memory if it may reorder the
// intrinsics.
ATTENDANT_VNNI_INLINE inline void AddProducts(__m512i& sum, __m512i codes,
                                              __m512i components) {
  asm volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(components));
}

ATTENDANT_VNNI_INLINE inline __m512 FromSum(const CodeMeaning& meaning,
                                            __m512i sum,
                                            std::int32_t query_sum) {
  return _mm512_cvtepi32_ps(
      _mm512_sub_epi32(_mm512_sll_epi32(sum, _mm_cvtsi32_si128(meaning.shift)),
                       _mm512_set1_epi32(meaning.middle * query_sum)));
}

// Returns the logits of a block from the sums of the query's planes.
template <int kPlanes>
ATTENDANT_VNNI_INLINE inline __m512 LogitsFrom(const __m512i (&sums)[kPlanes],
                                               const CodeQuery& query,
                                               const CodeMeaning& meaning,
                                               const float* scales) {
  const __m512 high = FromSum(meaning, sums[0], query.high_sum);
  // The product with 256 is exact, so this rounds once, as the scalar twin
  // does.
  __m512 dot = _mm512_mul_ps(high, _mm512_set1_ps(256));
  if constexpr (kPlanes == 2) {
    dot = _mm512_fmadd_ps(high, _mm512_set1_ps(256),
                          FromSum(meaning, sums[1], query.low_sum));
  }
  // The product with the factor is exact too.
  dot = _mm512_mul_ps(dot, _mm512_set1_ps(meaning.factor));
  dot = _mm512_mul_ps(dot, _mm512_loadu_ps(scales));
  return _mm512_mul_ps(dot, _mm512_set1_ps(query.unit));
}

template <int kPlanes, int kBlocks, int kQueries, typename Source>
ATTENDANT_VNNI void Tile(const CodeQuery* queries, const Source& source,
                         const CodeMeaning& meaning, std::int64_t step_count,
                         const CodeTarget& target) {
  // Sums would wait for each other if there are few, so each has two parts.
  constexpr int kParts = kPlanes * kQueries * kBlocks <= 4 ? 2 : 1;
  __m512i sums[kParts][kPlanes][kQueries][kBlocks];
  ATTENDANT_UNROLL
  for (int part = 0; part < kParts; ++part) {
    ATTENDANT_UNROLL
    for (int p = 0; p < kPlanes; ++p) {
      ATTENDANT_UNROLL
      for (int q = 0; q < kQueries; ++q) {
        ATTENDANT_UNROLL
        for (int b = 0; b < kBlocks; ++b) {
          sums[part][p][q][b] = _mm512_setzero_si512();
        }
      }
    }
  }
  for (std::int64_t t = 0; t < step_count; ++t) {
    CodePair codes[kBlocks];
    source.Load(t, codes);
    ATTENDANT_UNROLL
    for (int half = 0; half < 2; ++half) {
      ATTENDANT_UNROLL
      for (int q = 0; q < kQueries; ++q) {
        ATTENDANT_UNROLL
        for (int p = 0; p < kPlanes; ++p) {
          const std::int8_t* plane = p == 0 ? queries[q].high : queries[q].low;
          const __m512i components =
              Components(plane + kCodeDims * t + 4 * half);
          ATTENDANT_UNROLL
          for (int b = 0; b < kBlocks; ++b) {
            AddProducts(sums[kParts == 2 ? half : 0][p][q][b],
                        half == 0 ? codes[b].first : codes[b].second,
                        components);
          }
        }
      }
    }
  }
  if constexpr (kParts == 2) {
    ATTENDANT_UNROLL
    for (int p = 0; p < kPlanes; ++p) {
      ATTENDANT_UNROLL
      for (int q = 0; q < kQueries; ++q) {
        ATTENDANT_UNROLL
        for (int b = 0; b < kBlocks; ++b) {
          sums[0][p][q][b] =
              _mm512_add_epi32(sums[0][p][q][b], sums[1][p][q][b]);
        }
      }
    }
  }
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    ATTENDANT_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      __m512i of_block[kPlanes];
      ATTENDANT_UNROLL
      for (int p = 0; p < kPlanes; ++p) of_block[p] = sums[0][p][q][b];
      _mm512_storeu_ps(target.logits + q * target.stride + kCodeRows * b,
                       LogitsFrom<kPlanes>(of_block, queries[q], meaning,
                                           target.scales + kCodeRows * b));
    }
  }
}

// Computes a tile of query_count queries, at most kQueries.
template <int kPlanes, int kBlocks,
          int kQueries = TileQueries(kPlanes, kBlocks)>
ATTENDANT_VNNI void TileOf(std::int64_t query_count, const CodeQuery* queries,
                           const Bytes<kBlocks>& bytes,
                           const CodeMeaning& meaning, std::int64_t step_count,
                           const CodeTarget& target) {
  if constexpr (kQueries > 1) {
    if (query_count < kQueries) {
      return TileOf<kPlanes, kBlocks, kQueries - 1>(
          query_count, queries, bytes, meaning, step_count, target);
    }
  }
  Tile<kPlanes, kBlocks, kQueries>(queries, bytes, meaning, step_count, target);
}

// A single query is bound by memory, which is fastest when read line after
// line: a block at a time, and nothing in between.
template <int kBits, int kPlanes>
ATTENDANT_VNNI void SingleQuery(const CodeQuery& query, const CodeBlocks& codes,
                                const CodeTarget& target) {
  const std::int64_t step_count = codes.step_count;
  const std::int64_t block_bytes = CodePlaneBytes(step_count);
  const std::int64_t ahead = std::min(
      std::max(kAheadBytes / block_bytes, std::int64_t{1}), codes.block_count);
  for (std::int64_t b = 0; b < codes.block_count; ++b) {
    const CodeBlocks block = codes.From(b);
    const std::int64_t later = block_bytes * block.Ahead(ahead);
    // Sums of a step's first four components, and of its last four. GCC 12
    // would keep an array of them in memory.
    __m512i high_first = _mm512_setzero_si512();
    __m512i high_last = high_first;
    __m512i low_first = high_first;
    __m512i low_last = high_first;
    ATTENDANT_UNROLL_TWICE
    for (std::int64_t t = 0; t < step_count; ++t) {
      const CodePair pair =
          LoadCodes<kBits>(block.high + kLine * t, block.low + kLine * t);
      PrefetchSecond(block.high + later + kLine * t);
      if constexpr (kBits == 8) PrefetchSecond(block.low + later + kLine * t);
      const std::int8_t* high = query.high + kCodeDims * t;
      AddProducts(high_first, pair.first, Components(high));
      AddProducts(high_last, pair.second, Components(high + 4));
      if constexpr (kPlanes == 2) {
        const std::int8_t* low = query.low + kCodeDims * t;
        AddProducts(low_first, pair.first, Components(low));
        AddProducts(low_last, pair.second, Components(low + 4));
      }
    }
    __m512i sums[kPlanes] = {_mm512_add_epi32(high_first, high_last)};
    if constexpr (kPlanes == 2) sums[1] = _mm512_add_epi32(low_first, low_last);
    _mm512_storeu_ps(target.logits + kCodeRows * b,
                     LogitsFrom<kPlanes>(sums, query, CodeMeaningOf(kBits),
                                         target.scales + kCodeRows * b));
  }
}

template <int kBits, int kPlanes, int kBlocks>
ATTENDANT_VNNI void ManyQueries(const CodeQuery* queries,
                                std::int64_t query_count,
                                const CodeBlocks& codes,
                                const CodeTarget& target) {
  const std::int64_t step_count = codes.step_count;
  const std::int64_t block_bytes = CodePlaneBytes(step_count);
  alignas(kLine) std::uint8_t bytes[kBufferBytes];
  for (std::int64_t t = 0; t < step_count; ++t) {
    ATTENDANT_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      const std::int64_t at = b * block_bytes + kLine * t;
      const CodePair pair = LoadCodes<kBits>(codes.high + at, codes.low + at);
      std::uint8_t* to = bytes + 2 * kLine * (t * kBlocks + b);
      _mm512_store_si512(to, pair.first);
      _mm512_store_si512(to + kLine, pair.second);
    }
  }
  // Tiles have sizes that differ by one query at most, so that no small last
  // tile is all latency.
  constexpr int kQueries = TileQueries(kPlanes, kBlocks);
  const std::int64_t tile_count = (query_count + kQueries - 1) / kQueries;
  // The first tiles, which have enough steps, prefetch the next group.
  const std::int64_t lines_a_step = (kBlocks + tile_count - 1) / tile_count;
  const std::int64_t next = block_bytes * codes.Ahead(kBlocks);
  const std::uint8_t* next_high = codes.high + next;
  const std::uint8_t* next_low = codes.low + next;
  std::int64_t q = 0;
  for (std::int64_t tile = 0; tile < tile_count; ++tile) {
    const std::int64_t end = query_count * (tile + 1) / tile_count;
    const std::int64_t offset = tile * lines_a_step * kLine * step_count;
    const bool is_asked = tile * lines_a_step >= kBlocks;
    TileOf<kPlanes, kBlocks>(
        end - q, queries + q,
        {bytes, next_high + offset, next_low + offset,
         is_asked ? 0 : lines_a_step},
        CodeMeaningOf(kBits), step_count,
        {target.scales, target.stride, target.logits + q * target.stride});
    q = end;
  }
}

template <int kBits, int kPlanes>
ATTENDANT_VNNI void LogitsOf(const CodeQuery* queries, std::int64_t query_count,
                             const CodeBlocks& codes,
                             const CodeTarget& target) {
  const std::int64_t block_count = codes.block_count;
  const std::int64_t block_bytes = CodePlaneBytes(codes.step_count);
  const std::int64_t buffered = kBufferBytes / (2 * block_bytes);
  // Rows too long for the buffer are read by each query.
  if (query_count == 1 || buffered == 0) {
    for (std::int64_t q = 0; q < query_count; ++q) {
      SingleQuery<kBits, kPlanes>(
          queries[q], codes,
          {target.scales, target.stride, target.logits + q * target.stride});
    }
    return;
  }
  const std::int64_t most = std::min<std::int64_t>(kMaxBlocks, buffered);
  constexpr decltype(&ManyQueries<kBits, kPlanes, 1>) kMany[] = {
      ManyQueries<kBits, kPlanes, 1>, ManyQueries<kBits, kPlanes, 2>,
      ManyQueries<kBits, kPlanes, 3>, ManyQueries<kBits, kPlanes, 4>};
  for (std::int64_t b = 0; b < block_count;) {
    const std::int64_t blocks = std::min(most, block_count - b);
    kMany[blocks - 1](queries, query_count, codes.From(b),
                      {target.scales + b * kCodeRows, target.stride,
                       target.logits + b * kCodeRows});
    b += blocks;
  }
}

template <int kBits>
ATTENDANT_VNNI void Logits(const CodeQuery* queries, std::int64_t query_count,
                           const CodeBlocks& codes, const CodeTarget& target) {
  if (query_count == 0) return;
  const auto logits_of =
      queries[0].low == nullptr ? LogitsOf<kBits, 1> : LogitsOf<kBits, 2>;
  logits_of(queries, query_count, codes, target);
}

ATTENDANT_VNNI void Logits8(const CodeQuery* queries, std::int64_t query_count,
                            const std::uint8_t* high_plane,
                            const std::uint8_t* low_plane, const float* scales,
                            std::int64_t block_count, std::int64_t next_block,
                            std::int64_t step_count, std::int64_t stride,
                            float* logits) {
  Logits<8>(queries, query_count,
            {high_plane, low_plane, step_count, block_count, next_block},
            {scales, stride, logits});
}

ATTENDANT_VNNI void Logits4(const CodeQuery* queries, std::int64_t query_count,
                            const std::uint8_t* high_plane, const float* scales,
                            std::int64_t block_count, std::int64_t next_block,
                            std::int64_t step_count, std::int64_t stride,
                            float* logits) {
  // The low plane is not read.
  Logits<4>(queries, query_count,
            {high_plane, high_plane, step_count, block_count, next_block},
            {scales, stride, logits});
}

template <int kPlanes, int kBlocks>
ATTENDANT_VNNI void SingleQueryAt(const CodeQuery& query,
                                  const std::uint8_t* high_plane,
                                  const float* scales,
                                  const std::int32_t* blocks,
                                  std::int64_t step_count, float* logits) {
  BlocksAt<kBlocks> source;
  alignas(kLine) float of_blocks[kBlocks * kCodeRows];
  for (int b = 0; b < kBlocks; ++b) {
    source.high[b] = high_plane + blocks[b] * CodePlaneBytes(step_count);
    std::copy_n(scales + blocks[b] * kCodeRows, kCodeRows,
                of_blocks + b * kCodeRows);
  }
  Tile<kPlanes, kBlocks, 1>(&query, source, CodeMeaningOf(4), step_count,
                            {of_blocks, kBlocks * kCodeRows, logits});
}

template <int kPlanes>
ATTENDANT_VNNI void LogitsAt(const CodeQuery& query,
                             const std::uint8_t* high_plane,
                             const float* scales, const std::int32_t* blocks,
                             std::int64_t count, std::int64_t step_count,
                             float* logits) {
  std::int64_t i = 0;
  for (; i + kMaxBlocks <= count; i += kMaxBlocks) {
    SingleQueryAt<kPlanes, kMaxBlocks>(query, high_plane, scales, blocks + i,
                                       step_count, logits + i * kCodeRows);
  }
  for (; i < count; ++i) {
    SingleQueryAt<kPlanes, 1>(query, high_plane, scales, blocks + i, step_count,
                              logits + i * kCodeRows);
  }
}

ATTENDANT_VNNI void Logits4At(const CodeQuery& query,
                              const std::uint8_t* high_plane,
                              const float* scales, const std::int32_t* blocks,
                              std::int64_t count, std::int64_t step_count,
                              float* logits) {
  const auto logits_at = query.low == nullptr ? LogitsAt<1> : LogitsAt<2>;
  logits_at(query, high_plane, scales, blocks, count, step_count, logits);
}

}  // namespace

const CodeKernels kVnniCodeKernels = {Logits8, Logits4, Logits4At};

}  // namespace attendant

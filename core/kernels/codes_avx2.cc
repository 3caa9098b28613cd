// Codes for AVX2, and for AVX2 with VNNI. The target attribute is on functions,
// not on the file, so that no inline function from a header is compiled for
// instructions that the processor may lack.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "core/kernels/code_blocks.h"
#include "core/kernels/levels.h"

#define ATTENDANT_AVX2 __attribute__((target("avx2,fma")))
#define ATTENDANT_AVX2_INLINE ATTENDANT_AVX2 __attribute__((always_inline))
// For loops over a tile's sums: unrolled before any other optimisation, the
// sums stay in registers.
#define ATTENDANT_UNROLL _Pragma("GCC unroll 8")

namespace attendant {
namespace {

constexpr int kHalves = 2;  // registers of 8 rows in a block
constexpr int kHalfRows = 8;
constexpr std::int64_t kLine = 64;
// With many queries, a block's codes are unpacked once for all of them if they
// fit into a buffer of this size: rows of 1,024 do.
constexpr std::int64_t kBufferBytes = 32 << 10;
// How far ahead codes are prefetched in each plane.
constexpr std::int64_t kAheadBytes = 4096;
constexpr std::int64_t kMaxQueries = 64;

// How products of codes and components are added up. Pairs of byte products
// saturate 16 bits (vpmaddubsw), unless the codes are nibbles.
enum class Way {
  kNibbles,  // 4 bits: summed in 16 bits, after a few steps in 32
  kWords,    // 8 bits: both sides widened to 16
  kVnni,     // bytes summed directly in 32 bits
};

// Components are broadcast 4 bytes at a time, kGroups times per step, for as
// many pairs of registers with the codes of 16 rows.
template <Way kWay>
constexpr int kGroups = kWay == Way::kWords ? 4 : 2;
template <Way kWay>
constexpr std::int64_t kQueryStepBytes = 4 * kGroups<kWay>;
template <Way kWay>
constexpr std::int64_t kCodeStepBytes = kLine* kGroups<kWay>;

// Sums of 16 bits are full after this many steps of 2 products of at most 2 x
// 128 x 15 each.
constexpr int kShortSteps = 4;
static_assert(kShortSteps * 2 * 2 * 128 * 15 < 1 << 15);

// With words, a query's two planes are joined into one of 16 bits as long as no
// logit's sum overflows 32 bits and the planes' sums are exact as floats: then
// adding these rounds in the same way as converting the joint sum.
constexpr std::int64_t kMaxJointSteps = 64;
static_assert(kMaxJointSteps * kCodeDims * 128 * (127 * 256 + 128) < 1LL << 31);
static_assert(kMaxJointSteps * kCodeDims * 128 * 128 < 1 << 24);

// A query in the layout that tiles read.
struct TileQuery {
  const std::int8_t* planes[2];  // kQueryStepBytes per step
  std::int32_t sums[2];          // of components
  float top;                     // factor of plane 0
  float unit;
};

// The 16 rows of a block.
struct RowPair {
  __m256i first, second;
};

ATTENDANT_AVX2_INLINE inline __m256i LoadBytes(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

ATTENDANT_AVX2_INLINE inline void Prefetch(const std::uint8_t* from) {
  _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T0);
}

// Returns the codes of group `group`, of 8 rows: components 0..3 of a step,
// then 4..7. As words they are components 0 and 2, 1 and 3, 4 and 6, 5 and 7.
template <Way kWay, int kBits>
ATTENDANT_AVX2_INLINE inline __m256i Unpack(const std::uint8_t* from_high,
                                            const std::uint8_t* from_low,
                                            int group) {
  const __m256i nibbles = _mm256_set1_epi8(0x0f);
  const __m256i high = LoadBytes(from_high);
  const bool is_second = group >= kGroups<kWay> / 2;
  __m256i bytes;
  if constexpr (kBits == 4) {
    bytes = _mm256_and_si256(is_second ? _mm256_srli_epi16(high, 4) : high,
                             nibbles);
  } else {
    const __m256i low = LoadBytes(from_low);
    bytes = is_second
                ? _mm256_or_si256(
                      _mm256_andnot_si256(nibbles, high),
                      _mm256_and_si256(_mm256_srli_epi16(low, 4), nibbles))
                : _mm256_or_si256(
                      _mm256_slli_epi16(_mm256_and_si256(high, nibbles), 4),
                      _mm256_and_si256(low, nibbles));
  }
  if (kWay != Way::kWords) return bytes;
  return group % 2 == 0 ? _mm256_and_si256(bytes, _mm256_set1_epi16(0xff))
                        : _mm256_srli_epi16(bytes, 8);
}

// A tile's codes, read from the planes of a block.
template <Way kWay, int kBits>
struct Planes {
  ATTENDANT_AVX2_INLINE inline RowPair Load(std::int64_t t, int group) const {
    const std::uint8_t* from_high = high + kLine * t;
    const std::uint8_t* from_low = low + kLine * t;
    if (group == 0) {
      Prefetch(from_high + ahead);
      if constexpr (kBits == 8) Prefetch(from_low + ahead);
    }
    return {Unpack<kWay, kBits>(from_high, from_low, group),
            Unpack<kWay, kBits>(from_high + kLine / 2, from_low + kLine / 2,
                                group)};
  }

  const std::uint8_t* high;
  const std::uint8_t* low;
  std::int64_t ahead;  // bytes
};

// A tile's codes, read from a buffer of unpacked codes.
template <Way kWay>
struct Unpacked {
  ATTENDANT_AVX2_INLINE inline RowPair Load(std::int64_t t, int group) const {
    const std::uint8_t* from = bytes + t * kCodeStepBytes<kWay> + kLine * group;
    return {LoadBytes(from), LoadBytes(from + kLine / 2)};
  }

  const std::uint8_t* bytes;
};

ATTENDANT_AVX2_INLINE inline __m256i Components(const std::int8_t* from) {
  std::int32_t four;
  std::memcpy(&four, from, sizeof(four));
  return _mm256_set1_epi32(four);
}

template <Way kWay>
ATTENDANT_AVX2_INLINE inline void AddProducts(__m256i& sum, __m256i codes,
                                              __m256i components) {
  if constexpr (kWay == Way::kNibbles) {
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(codes, components));
  } else if constexpr (kWay == Way::kWords) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(codes, components));
  } else {
    // AVX-VNNI in assembly, as the compiler need not know it. GCC 12 keeps sums
    // in memory if it may reorder these instructions.
    asm volatile("%{vex%} vpdpbusd %2, %1, %0"
                 : "+x"(sum)
                 : "x"(codes), "x"(components));
  }
}

// Converts a plane's sum of products to the float that it stands for.
template <int kBits>
ATTENDANT_AVX2_INLINE inline __m256 FromSum(__m256i sum,
                                            std::int32_t query_sum) {
  constexpr CodeMeaning kMeaning = CodeMeaningOf(kBits);
  const auto taken_off =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(kMeaning.middle) *
                                static_cast<std::uint32_t>(query_sum));
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(
      _mm256_slli_epi32(sum, kMeaning.shift), _mm256_set1_epi32(taken_off)));
}

// Adds the products of kSteps steps from t on. GCC 12 keeps sums in registers
// only if no loop is nested in one that is not unrolled.
template <Way kWay, int kSteps, int kPlanes, int kSums, int kParts,
          typename Source>
ATTENDANT_AVX2_INLINE inline void AddSteps(
    const TileQuery* queries, const Source& source, std::int64_t t,
    __m256i (&sums)[kParts][kSums][kHalves]) {
  __m256i shorts[kSums][kHalves];
  if constexpr (kWay == Way::kNibbles) {
    ATTENDANT_UNROLL
    for (int i = 0; i < kSums; ++i) {
      shorts[i][0] = shorts[i][1] = _mm256_setzero_si256();
    }
  }
  // Not unrolled: the loads of four steps would not fit into registers.
#pragma GCC unroll 1
  for (int step = 0; step < kSteps; ++step) {
    ATTENDANT_UNROLL
    for (int g = 0; g < kGroups<kWay>; ++g) {
      const RowPair codes = source.Load(t + step, g);
      auto& to = kWay == Way::kNibbles ? shorts : sums[g % kParts];
      ATTENDANT_UNROLL
      for (int i = 0; i < kSums; ++i) {
        const __m256i components =
            Components(queries[i / kPlanes].planes[i % kPlanes] +
                       kQueryStepBytes<kWay> * (t + step) + 4 * g);
        AddProducts<kWay>(to[i][0], codes.first, components);
        AddProducts<kWay>(to[i][1], codes.second, components);
      }
    }
  }
  if constexpr (kWay == Way::kNibbles) {
    const __m256i ones = _mm256_set1_epi16(1);
    ATTENDANT_UNROLL
    for (int i = 0; i < kSums; ++i) {
      ATTENDANT_UNROLL
      for (int half = 0; half < kHalves; ++half) {
        sums[0][i][half] = _mm256_add_epi32(
            sums[0][i][half], _mm256_madd_epi16(shorts[i][half], ones));
      }
    }
  }
}

// Computes the logits of a block and kQueries queries.
template <Way kWay, int kBits, int kPlanes, int kQueries, typename Source>
ATTENDANT_AVX2 __attribute__((noinline)) void Tile(const TileQuery* queries,
                                                   const Source& source,
                                                   std::int64_t step_count,
                                                   const CodeTarget& target) {
  // VNNI's sums would wait for each other if there are few, so each has two
  // parts.
  constexpr int kParts = kWay == Way::kVnni && kPlanes * kQueries <= 2 ? 2 : 1;
  constexpr int kSums = kPlanes * kQueries;
  constexpr int kTogether = kWay == Way::kNibbles ? kShortSteps : 1;
  __m256i parts[kParts][kSums][kHalves];
  ATTENDANT_UNROLL
  for (int part = 0; part < kParts; ++part) {
    ATTENDANT_UNROLL
    for (int i = 0; i < kSums; ++i) {
      parts[part][i][0] = parts[part][i][1] = _mm256_setzero_si256();
    }
  }
  std::int64_t t = 0;
  for (; t + kTogether <= step_count; t += kTogether) {
    AddSteps<kWay, kTogether, kPlanes>(queries, source, t, parts);
  }
  for (; t < step_count; ++t) {
    AddSteps<kWay, 1, kPlanes>(queries, source, t, parts);
  }
  auto& sums = parts[0];
  if constexpr (kParts == 2) {
    ATTENDANT_UNROLL
    for (int i = 0; i < kSums; ++i) {
      ATTENDANT_UNROLL
      for (int half = 0; half < kHalves; ++half) {
        sums[i][half] = _mm256_add_epi32(sums[i][half], parts[1][i][half]);
      }
    }
  }
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    ATTENDANT_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      const __m256 high =
          FromSum<kBits>(sums[kPlanes * q][half], queries[q].sums[0]);
      const __m256 low =
          kPlanes == 1 ? _mm256_setzero_ps()
                       : FromSum<kBits>(sums[kPlanes * q + kPlanes - 1][half],
                                        queries[q].sums[1]);
      // The product with 256 or 1 is exact, so this rounds once, as the scalar
      // twin does. The product with the factor is exact too.
      __m256 dot = _mm256_fmadd_ps(high, _mm256_set1_ps(queries[q].top), low);
      dot = _mm256_mul_ps(dot, _mm256_set1_ps(CodeMeaningOf(kBits).factor));
      dot =
          _mm256_mul_ps(dot, _mm256_loadu_ps(target.scales + kHalfRows * half));
      _mm256_storeu_ps(target.logits + q * target.stride + kHalfRows * half,
                       _mm256_mul_ps(dot, _mm256_set1_ps(queries[q].unit)));
    }
  }
}

// Computes a tile of query_count queries, at most kQueries.
template <Way kWay, int kBits, int kPlanes, int kQueries = 4 / kPlanes>
ATTENDANT_AVX2 void TileOf(std::int64_t query_count, const TileQuery* queries,
                           const Unpacked<kWay>& codes, std::int64_t step_count,
                           const CodeTarget& target) {
  if constexpr (kQueries > 1) {
    if (query_count < kQueries) {
      return TileOf<kWay, kBits, kPlanes, kQueries - 1>(
          query_count, queries, codes, step_count, target);
    }
  }
  Tile<kWay, kBits, kPlanes, kQueries>(queries, codes, step_count, target);
}

template <Way kWay, int kBits>
ATTENDANT_AVX2 void UnpackBlock(const Planes<kWay, kBits>& planes,
                                std::int64_t step_count, std::uint8_t* to) {
  for (std::int64_t t = 0; t < step_count; ++t) {
    ATTENDANT_UNROLL
    for (int g = 0; g < kGroups<kWay>; ++g, to += kLine) {
      const RowPair codes = planes.Load(t, g);
      _mm256_store_si256(reinterpret_cast<__m256i*>(to), codes.first);
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + kLine / 2),
                         codes.second);
    }
  }
}

template <Way kWay, int kBits, int kPlanes>
ATTENDANT_AVX2 void EveryBlock(const TileQuery* queries,
                               std::int64_t query_count,
                               const CodeBlocks& blocks,
                               const CodeTarget& target) {
  constexpr std::int64_t kTogether = 4 / kPlanes;
  const std::int64_t step_count = blocks.step_count;
  const std::int64_t block_bytes = CodePlaneBytes(step_count);
  const std::int64_t ahead =
      std::max<std::int64_t>(kAheadBytes / block_bytes, 1);
  // Rows too long for the buffer are unpacked for each query.
  const bool unpacks =
      query_count > 1 && step_count * kCodeStepBytes<kWay> <= kBufferBytes;
  alignas(kLine) std::uint8_t unpacked[kBufferBytes];
  for (std::int64_t b = 0; b < blocks.block_count; ++b) {
    const CodeBlocks at = blocks.From(b);
    const Planes<kWay, kBits> planes = {
        at.high, at.low,
        block_bytes * at.Ahead(std::min(ahead, blocks.block_count))};
    const auto target_of = [&](std::int64_t q) {
      return CodeTarget{target.scales + b * kCodeRows, target.stride,
                        target.logits + q * target.stride + b * kCodeRows};
    };
    if (!unpacks) {
      for (std::int64_t q = 0; q < query_count; ++q) {
        Tile<kWay, kBits, kPlanes, 1>(queries + q, planes, step_count,
                                      target_of(q));
      }
      continue;
    }
    UnpackBlock<kWay, kBits>(planes, step_count, unpacked);
    for (std::int64_t q = 0; q < query_count; q += kTogether) {
      TileOf<kWay, kBits, kPlanes>(query_count - q, queries + q,
                                   Unpacked<kWay>{unpacked}, step_count,
                                   target_of(q));
    }
  }
}

// Stores the words that a step's 8 components are broadcast from, in the order
// 0, 2, 1, 3, 4, 6, 5, 7.
ATTENDANT_AVX2_INLINE inline void StoreWords(__m128i words, std::int8_t* to) {
  const __m128i order =
      _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm_shuffle_epi8(words, order));
}

ATTENDANT_AVX2_INLINE inline __m128i LoadStep(const std::int8_t* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}

// Returns a query of words in one plane or two; `words` has 16 bytes for each
// step of a plane.
ATTENDANT_AVX2 TileQuery WidenQuery(const CodeQuery& query, bool is_joint,
                                    std::int64_t step_count,
                                    std::int8_t* words) {
  TileQuery wide = {.planes = {words, words},
                    .sums = {query.high_sum, query.low_sum},
                    .top = 256,
                    .unit = query.unit};
  if (is_joint) {
    wide.sums[0] = 256 * query.high_sum + query.low_sum;
    wide.top = 1;
    for (std::int64_t t = 0; t < step_count; ++t) {
      const __m128i high = LoadStep(query.high + kCodeDims * t);
      const __m128i low = LoadStep(query.low + kCodeDims * t);
      // A negative low byte borrows 1 from the high byte.
      const __m128i carry = _mm_cmpgt_epi8(_mm_setzero_si128(), low);
      StoreWords(_mm_unpacklo_epi8(low, _mm_add_epi8(high, carry)),
                 words + 16 * t);
    }
    return wide;
  }
  const std::int8_t* planes[] = {query.high, query.low};
  for (int p = 0; p < 2 && planes[p] != nullptr; ++p) {
    wide.planes[p] = words + 16 * step_count * p;
    for (std::int64_t t = 0; t < step_count; ++t) {
      StoreWords(_mm_cvtepi8_epi16(LoadStep(planes[p] + kCodeDims * t)),
                 words + 16 * (step_count * p + t));
    }
  }
  return wide;
}

template <Way kWay, int kBits>
ATTENDANT_AVX2 void Logits(const CodeQuery* queries, std::int64_t query_count,
                           const CodeBlocks& blocks, const CodeTarget& target) {
  if (query_count == 0) return;
  constexpr bool kWidens = kWay == Way::kWords;
  // The bytes of 64 queries of 512 components, or of 2 of the longest.
  alignas(kLine) std::int8_t words[kWidens ? 64 << 10 : 1];
  const bool has_low = queries[0].low != nullptr;
  const bool is_joint =
      kWidens && has_low && blocks.step_count <= kMaxJointSteps;
  const int plane_count = has_low && !is_joint ? 2 : 1;
  const std::int64_t query_bytes =
      kQueryStepBytes<kWay> * blocks.step_count * plane_count;
  const std::int64_t together =
      kWidens ? std::min(kMaxQueries, std::int64_t{sizeof(words)} / query_bytes)
              : kMaxQueries;
  const auto every_block = plane_count == 1 ? EveryBlock<kWay, kBits, 1>
                                            : EveryBlock<kWay, kBits, 2>;
  for (std::int64_t first = 0; first < query_count; first += together) {
    TileQuery tile_queries[kMaxQueries];
    const std::int64_t count = std::min(together, query_count - first);
    for (std::int64_t q = 0; q < count; ++q) {
      const CodeQuery& query = queries[first + q];
      if constexpr (kWidens) {
        tile_queries[q] = WidenQuery(query, is_joint, blocks.step_count,
                                     words + q * query_bytes);
      } else {
        tile_queries[q] = {.planes = {query.high, query.low},
                           .sums = {query.high_sum, query.low_sum},
                           .top = 256,
                           .unit = query.unit};
      }
    }
    every_block(
        tile_queries, count, blocks,
        {target.scales, target.stride, target.logits + first * target.stride});
  }
}

template <Way kWay>
ATTENDANT_AVX2 void Logits8(const CodeQuery* queries, std::int64_t query_count,
                            const std::uint8_t* high_plane,
                            const std::uint8_t* low_plane, const float* scales,
                            std::int64_t block_count, std::int64_t next_block,
                            std::int64_t step_count, std::int64_t stride,
                            float* logits) {
  Logits<kWay, 8>(queries, query_count,
                  {high_plane, low_plane, step_count, block_count, next_block},
                  {scales, stride, logits});
}

template <Way kWay>
ATTENDANT_AVX2 void Logits4(const CodeQuery* queries, std::int64_t query_count,
                            const std::uint8_t* high_plane, const float* scales,
                            std::int64_t block_count, std::int64_t next_block,
                            std::int64_t step_count, std::int64_t stride,
                            float* logits) {
  // The low plane is not read.
  Logits<kWay, 4>(queries, query_count,
                  {high_plane, high_plane, step_count, block_count, next_block},
                  {scales, stride, logits});
}

template <Way kWay>
ATTENDANT_AVX2 void Logits4At(const CodeQuery& query,
                              const std::uint8_t* high_plane,
                              const float* scales, const std::int32_t* blocks,
                              std::int64_t count, std::int64_t step_count,
                              float* logits) {
  for (std::int64_t i = 0; i < count; ++i) {
    Logits4<kWay>(&query, 1,
                  high_plane + blocks[i] * CodePlaneBytes(step_count),
                  scales + blocks[i] * kCodeRows, 1, 0, step_count, kCodeRows,
                  logits + i * kCodeRows);
  }
}

}  // namespace

const CodeKernels kAvx2CodeKernels = {
    Logits8<Way::kWords>, Logits4<Way::kNibbles>, Logits4At<Way::kNibbles>};
const CodeKernels kAvxVnniCodeKernels = {
    Logits8<Way::kVnni>, Logits4<Way::kVnni>, Logits4At<Way::kVnni>};

}  // namespace attendant

// Kernels for AVX-512 F, DQ and VL. Target attributes on the functions, not on
// the file, so that nothing inline from a header is compiled for processors
// that may not be there.
#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "core/kernels/levels.h"

#define ATTENDANT_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl")))
// Loops over a tile's sums: unrolled before anything else, they stay in
// registers.
#define ATTENDANT_UNROLL _Pragma("GCC unroll 16")

namespace attendant {
namespace {

constexpr int kWidth = 16;  // floats in a register
// Components after which sums are added up and begun anew: one long sum would
// lose digits of what comes late.
constexpr std::int64_t kBlockDim = 64 * kWidth;
constexpr int kTileRows = 8;
constexpr int kTileQueries = 3;  // 3 x 8 sums, 3 queries: 27 of 32 registers
constexpr int kPoolQueries = 4;
constexpr int kPoolRegisters = 4;  // 4 x 4 sums, 4 of a row, a weight

ATTENDANT_AVX512 inline __mmask16 FirstLanes(std::int64_t count) {
  return static_cast<__mmask16>((1u << count) - 1);
}

// The sums of 8 registers. Each is added up by the same tree, wherever it
// stands: within 128-bit lanes, (0 + 2) + (1 + 3); then the lanes,
// (0 + 1) + (2 + 3).
ATTENDANT_AVX512 inline __m256 SumOfEach(const __m512 (&v)[kTileRows]) {
  __m512 quads[2];
  ATTENDANT_UNROLL
  for (int i = 0; i < 2; ++i) {
    const __m512* four = v + 4 * i;
    const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(four[0], four[1]),
                                    _mm512_unpackhi_ps(four[0], four[1]));
    const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(four[2], four[3]),
                                    _mm512_unpackhi_ps(four[2], four[3]));
    const __m512d ab_pairs = _mm512_castps_pd(ab);
    const __m512d cd_pairs = _mm512_castps_pd(cd);
    quads[i] =
        _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(ab_pairs, cd_pairs)),
                      _mm512_castpd_ps(_mm512_unpackhi_pd(ab_pairs, cd_pairs)));
  }
  const __m512 halves =
      _mm512_add_ps(_mm512_shuffle_f32x4(quads[0], quads[1], 0x88),
                    _mm512_shuffle_f32x4(quads[0], quads[1], 0xdd));
  // Lanes of halves: first and second half of quad 0, then of quad 1; 0x88 and
  // 0xdd picked lanes 0, 2 and 1, 3.
  return _mm512_castps512_ps256(
      _mm512_add_ps(_mm512_shuffle_f32x4(halves, halves, 0x88),
                    _mm512_shuffle_f32x4(halves, halves, 0xdd)));
}

// dots[q * stride + r] for kQueries queries and kRows rows. One sum a pair
// and block, over dim in steps of the width, the tail masked; blocks, of which
// there is one unless kLong, are added in their order. kAhead: asks for the
// rows of the next tile, as few queries are bound by memory.
template <int kQueries, int kRows, bool kLong, bool kAhead>
ATTENDANT_AVX512 inline void DotTile(const float* queries, const float* rows,
                                     std::int64_t dim, std::int64_t stride,
                                     float* dots) {
  constexpr __mmask8 kStored = (1u << kRows) - 1;
  for (std::int64_t begin = 0; begin == 0 || begin < dim; begin += kBlockDim) {
    __m512 sums[kQueries][kTileRows];
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      ATTENDANT_UNROLL
      for (int r = 0; r < kTileRows; ++r) sums[q][r] = _mm512_setzero_ps();
    }
    const std::int64_t count = kLong ? std::min(dim - begin, kBlockDim) : dim;
    std::int64_t d = 0;
    for (; d + kWidth <= count; d += kWidth) {
      __m512 query[kQueries];
      ATTENDANT_UNROLL
      for (int q = 0; q < kQueries; ++q) {
        query[q] = _mm512_loadu_ps(queries + q * dim + d);
      }
      ATTENDANT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const float* from = rows + r * dim + d;
        const __m512 row = _mm512_loadu_ps(from);
        if (kAhead && kRows == kTileRows) {
          _mm_prefetch(reinterpret_cast<const char*>(from) +
                           kTileRows * dim * std::int64_t{sizeof(float)},
                       _MM_HINT_T0);
        }
        ATTENDANT_UNROLL
        for (int q = 0; q < kQueries; ++q) {
          sums[q][r] = _mm512_fmadd_ps(query[q], row, sums[q][r]);
        }
      }
    }
    if (d < count) {
      const __mmask16 mask = FirstLanes(count - d);
      __m512 query[kQueries];
      ATTENDANT_UNROLL
      for (int q = 0; q < kQueries; ++q) {
        query[q] = _mm512_maskz_loadu_ps(mask, queries + q * dim + d);
      }
      ATTENDANT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const __m512 row = _mm512_maskz_loadu_ps(mask, rows + r * dim + d);
        ATTENDANT_UNROLL
        for (int q = 0; q < kQueries; ++q) {
          sums[q][r] = _mm512_fmadd_ps(query[q], row, sums[q][r]);
        }
      }
    }
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      float* to = dots + q * stride;
      __m256 added = SumOfEach(sums[q]);
      if (begin > 0) {
        added = _mm256_add_ps(_mm256_maskz_loadu_ps(kStored, to), added);
      }
      _mm256_mask_storeu_ps(to, kStored, added);
    }
    queries += kBlockDim;
    rows += kBlockDim;
  }
}

template <int kRows, bool kLong>
ATTENDANT_AVX512 inline void DotQueries(const float* queries,
                                        std::int64_t query_count,
                                        const float* rows, std::int64_t dim,
                                        std::int64_t stride, float* dots) {
  // The first tile of queries asks for rows.
  std::int64_t q = 0;
  if (query_count >= kTileQueries) {
    DotTile<kTileQueries, kRows, kLong, true>(queries, rows, dim, stride, dots);
    q = kTileQueries;
  } else if (query_count > 0) {
    DotTile<1, kRows, kLong, true>(queries, rows, dim, stride, dots);
    q = 1;
  }
  for (; q + kTileQueries <= query_count; q += kTileQueries) {
    DotTile<kTileQueries, kRows, kLong, false>(queries + q * dim, rows, dim,
                                               stride, dots + q * stride);
  }
  for (; q < query_count; ++q) {
    DotTile<1, kRows, kLong, false>(queries + q * dim, rows, dim, stride,
                                    dots + q * stride);
  }
}

// Of the rows from first_row on.
template <bool kLong>
ATTENDANT_AVX512 void DotAll(const float* queries, std::int64_t query_count,
                             const float* rows, std::int64_t row_count,
                             std::int64_t dim, std::int64_t first_row,
                             float* dots) {
  std::int64_t r = first_row;
  for (; r + kTileRows <= row_count; r += kTileRows) {
    DotQueries<kTileRows, kLong>(queries, query_count, rows + r * dim, dim,
                                 row_count, dots + r);
  }
  if ((row_count - first_row) & 4) {
    DotQueries<4, kLong>(queries, query_count, rows + r * dim, dim, row_count,
                         dots + r);
    r += 4;
  }
  if ((row_count - first_row) & 2) {
    DotQueries<2, kLong>(queries, query_count, rows + r * dim, dim, row_count,
                         dots + r);
    r += 2;
  }
  if ((row_count - first_row) & 1) {
    DotQueries<1, kLong>(queries, query_count, rows + r * dim, dim, row_count,
                         dots + r);
  }
}

// Many queries: rows turned by blocks, so that a register holds one component
// of 16 rows and a tile's sums are added up without shuffles. A pair's
// additions keep the order of DotTile: component d goes to the sum of lane
// d % 16, and the lanes' sums are added as SumOfEach does.
constexpr int kTurnedRegisters = 2;
constexpr std::int64_t kTurnedRows = kTurnedRegisters * kWidth;
// 8 x 2 sums, 2 of rows, a query. More rows would not fit the first cache
// twice, as they are and turned.
constexpr int kTurnedQueries = 8;
// Shorter rows are mostly additions, longer ones mostly products without it.
constexpr std::int64_t kMinTurnedDim = 32;
constexpr std::int64_t kMaxTurnedDim = 256;
// Fewer do not make up for the turning.
constexpr std::int64_t kMinTurningQueries = 12;

// 16 rows' 16 components from `from` on, the rows `stride` apart, to as many
// components' 16 rows, `to_stride` apart.
ATTENDANT_AVX512 inline void TurnSquare(const float* from, std::int64_t stride,
                                        float* to, std::int64_t to_stride) {
  __m512 turned[kWidth];
  ATTENDANT_UNROLL
  for (int k = 0; k < 4; ++k) {
    // Lane l of quads[j]: of row 4 l + j.
    __m512 quads[4];
    ATTENDANT_UNROLL
    for (int j = 0; j < 4; ++j) {
      const float* row = from + j * stride + 4 * k;
      __m512 quad = _mm512_castps128_ps512(_mm_loadu_ps(row));
      quad = _mm512_insertf32x4(quad, _mm_loadu_ps(row + 4 * stride), 1);
      quad = _mm512_insertf32x4(quad, _mm_loadu_ps(row + 8 * stride), 2);
      quads[j] = _mm512_insertf32x4(quad, _mm_loadu_ps(row + 12 * stride), 3);
    }
    const __m512d low_01 =
        _mm512_castps_pd(_mm512_unpacklo_ps(quads[0], quads[1]));
    const __m512d low_23 =
        _mm512_castps_pd(_mm512_unpacklo_ps(quads[2], quads[3]));
    const __m512d high_01 =
        _mm512_castps_pd(_mm512_unpackhi_ps(quads[0], quads[1]));
    const __m512d high_23 =
        _mm512_castps_pd(_mm512_unpackhi_ps(quads[2], quads[3]));
    turned[4 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(low_01, low_23));
    turned[4 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low_01, low_23));
    turned[4 * k + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high_01, high_23));
    turned[4 * k + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high_01, high_23));
  }
  ATTENDANT_UNROLL
  for (int lane = 0; lane < kWidth; ++lane) {
    _mm512_store_ps(to + lane * to_stride, turned[lane]);
  }
}

// turned[(lane * steps + step) * kTurnedRows + r] = component 16 step + lane of
// row r, or 0 beyond dim.
ATTENDANT_AVX512 void TurnRows(const float* rows, std::int64_t dim,
                               float* turned) {
  const std::int64_t steps = (dim + kWidth - 1) / kWidth;
  const std::int64_t lane_stride = steps * kTurnedRows;
  alignas(64) float last[kWidth * kWidth];
  for (std::int64_t r = 0; r < kTurnedRows; r += kWidth) {
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::int64_t count = dim - step * kWidth;
      const float* from = rows + r * dim + step * kWidth;
      std::int64_t stride = dim;
      if (count < kWidth) {
        for (std::int64_t i = 0; i < kWidth; ++i) {
          _mm512_store_ps(
              last + i * kWidth,
              _mm512_maskz_loadu_ps(FirstLanes(count), from + i * dim));
        }
        from = last;
        stride = kWidth;
      }
      float* to = turned + step * kTurnedRows + r;
      TurnSquare(from, stride, to, lane_stride);
    }
  }
}

template <int kQueries>
using TurnedSums = __m512[kQueries][kTurnedRegisters];

// Turned rows and what is asked for meanwhile: of the rows that follow, as many
// lines with each lane.
struct TurnedRows {
  const float* components;
  const float* next;
  std::int64_t lines_a_lane;
};

// The sums of one lane; then each of `firsts`, in their order, plus the sums.
template <int kQueries, typename... Firsts>
ATTENDANT_AVX512 inline void SumLane(const float* queries, std::int64_t dim,
                                     const TurnedRows& turned,
                                     std::int64_t lane,
                                     TurnedSums<kQueries>& sums,
                                     const Firsts&... firsts) {
  const std::int64_t steps = (dim + kWidth - 1) / kWidth;
  const float* from = turned.components + lane * steps * kTurnedRows;
  const float* next = turned.next + lane * turned.lines_a_lane * kWidth;
  for (std::int64_t i = 0; i < turned.lines_a_lane; ++i) {
    _mm_prefetch(reinterpret_cast<const char*>(next + i * kWidth), _MM_HINT_T0);
  }
  __m512 local[kQueries][kTurnedRegisters];
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    ATTENDANT_UNROLL
    for (int r = 0; r < kTurnedRegisters; ++r) {
      local[q][r] = _mm512_setzero_ps();
    }
  }
  std::int64_t d = lane;
  for (; d < dim; d += kWidth, from += kTurnedRows) {
    __m512 rows[kTurnedRegisters];
    ATTENDANT_UNROLL
    for (int r = 0; r < kTurnedRegisters; ++r) {
      rows[r] = _mm512_load_ps(from + r * kWidth);
    }
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      const __m512 query = _mm512_set1_ps(queries[q * dim + d]);
      ATTENDANT_UNROLL
      for (int r = 0; r < kTurnedRegisters; ++r) {
        local[q][r] = _mm512_fmadd_ps(query, rows[r], local[q][r]);
      }
    }
  }
  const bool is_masked = d < steps * kWidth;
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    ATTENDANT_UNROLL
    for (int r = 0; r < kTurnedRegisters; ++r) {
      __m512 sum = local[q][r];
      // DotTile adds 0 for a masked component: it makes 0 of -0.
      if (is_masked) sum = _mm512_add_ps(sum, _mm512_setzero_ps());
      ((sum = _mm512_add_ps(firsts[q][r], sum)), ...);
      sums[q][r] = sum;
    }
  }
}

// The first three lanes of a quad.
template <int kQueries>
ATTENDANT_AVX512 inline void SumThree(const float* queries, std::int64_t dim,
                                      const TurnedRows& turned,
                                      std::int64_t lane,
                                      TurnedSums<kQueries>& even,
                                      TurnedSums<kQueries>& odd) {
  SumLane<kQueries>(queries, dim, turned, lane, even);
  SumLane<kQueries>(queries, dim, turned, lane + 2, even, even);
  SumLane<kQueries>(queries, dim, turned, lane + 1, odd);
}

// dots[q * stride + r] of kQueries queries and kTurnedRows rows.
template <int kQueries>
ATTENDANT_AVX512 inline void TurnedTile(const float* queries, std::int64_t dim,
                                        const TurnedRows& turned,
                                        std::int64_t stride, float* dots) {
  // Of lanes 0 and 2 of a quad, of its lane 1, and of quads.
  TurnedSums<kQueries> even, odd, low, high;
  SumThree<kQueries>(queries, dim, turned, 0, even, odd);
  SumLane<kQueries>(queries, dim, turned, 3, low, odd, even);
  SumThree<kQueries>(queries, dim, turned, 4, even, odd);
  SumLane<kQueries>(queries, dim, turned, 7, low, odd, even, low);
  SumThree<kQueries>(queries, dim, turned, 8, even, odd);
  SumLane<kQueries>(queries, dim, turned, 11, high, odd, even);
  SumThree<kQueries>(queries, dim, turned, 12, even, odd);
  SumLane<kQueries>(queries, dim, turned, 15, high, odd, even, high, low);
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    ATTENDANT_UNROLL
    for (int r = 0; r < kTurnedRegisters; ++r) {
      _mm512_storeu_ps(dots + q * stride + r * kWidth, high[q][r]);
    }
  }
}

template <int kQueries = kTurnedQueries>
ATTENDANT_AVX512 void TurnedTileOf(std::int64_t query_count,
                                   const float* queries, std::int64_t dim,
                                   const TurnedRows& turned,
                                   std::int64_t stride, float* dots) {
  if constexpr (kQueries > 1) {
    if (query_count < kQueries) {
      return TurnedTileOf<kQueries - 1>(query_count, queries, dim, turned,
                                        stride, dots);
    }
  }
  TurnedTile<kQueries>(queries, dim, turned, stride, dots);
}

// As many rows as are whole groups; returns how many.
ATTENDANT_AVX512 std::int64_t DotTurned(const float* queries,
                                        std::int64_t query_count,
                                        const float* rows,
                                        std::int64_t row_count,
                                        std::int64_t dim, float* dots) {
  alignas(64) float components[kTurnedRows * kMaxTurnedDim];
  // Tiles of queries that differ by one at most.
  const std::int64_t tile_count =
      (query_count + kTurnedQueries - 1) / kTurnedQueries;
  const std::int64_t lane_count = tile_count * kWidth;
  const std::int64_t lines_a_lane =
      (kTurnedRows * dim / kWidth + lane_count - 1) / lane_count;
  std::int64_t begin = 0;
  for (; begin + kTurnedRows <= row_count; begin += kTurnedRows) {
    TurnRows(rows + begin * dim, dim, components);
    TurnedRows turned = {components, rows + (begin + kTurnedRows) * dim,
                         lines_a_lane};
    std::int64_t q = 0;
    for (std::int64_t tile = 0; tile < tile_count; ++tile) {
      const std::int64_t end = query_count * (tile + 1) / tile_count;
      TurnedTileOf(end - q, queries + q * dim, dim, turned, row_count,
                   dots + q * row_count + begin);
      turned.next += lines_a_lane * kWidth * kWidth;
      q = end;
    }
  }
  return begin;
}

ATTENDANT_AVX512 void DotRowsMulti(const float* queries,
                                   std::int64_t query_count, const float* rows,
                                   std::int64_t row_count, std::int64_t dim,
                                   float* dots) {
  if (dim > kBlockDim) {
    DotAll<true>(queries, query_count, rows, row_count, dim, 0, dots);
    return;
  }
  const bool turns = query_count >= kMinTurningQueries &&
                     dim >= kMinTurnedDim && dim <= kMaxTurnedDim;
  const std::int64_t done =
      turns ? DotTurned(queries, query_count, rows, row_count, dim, dots) : 0;
  DotAll<false>(queries, query_count, rows, row_count, dim, done, dots);
}

ATTENDANT_AVX512 void DotRows(const float* query, const float* rows,
                              std::int64_t row_count, std::int64_t dim,
                              float* dots) {
  DotRowsMulti(query, 1, rows, row_count, dim, dots);
}

// kTileRows rows, wherever they are; at most kBlockDim floats each. The sums
// are those of DotTile.
ATTENDANT_AVX512 inline void DotTileAt(const float* query, const float* rows,
                                       const std::int32_t* positions,
                                       std::int64_t dim, float* dots) {
  const float* at[kTileRows];
  __m512 sums[kTileRows];
  ATTENDANT_UNROLL
  for (int r = 0; r < kTileRows; ++r) {
    at[r] = rows + positions[r] * dim;
    sums[r] = _mm512_setzero_ps();
  }
  std::int64_t d = 0;
  for (; d + kWidth <= dim; d += kWidth) {
    const __m512 components = _mm512_loadu_ps(query + d);
    ATTENDANT_UNROLL
    for (int r = 0; r < kTileRows; ++r) {
      sums[r] =
          _mm512_fmadd_ps(components, _mm512_loadu_ps(at[r] + d), sums[r]);
    }
  }
  if (d < dim) {
    const __mmask16 mask = FirstLanes(dim - d);
    const __m512 components = _mm512_maskz_loadu_ps(mask, query + d);
    ATTENDANT_UNROLL
    for (int r = 0; r < kTileRows; ++r) {
      sums[r] = _mm512_fmadd_ps(
          components, _mm512_maskz_loadu_ps(mask, at[r] + d), sums[r]);
    }
  }
  _mm256_storeu_ps(dots, SumOfEach(sums));
}

ATTENDANT_AVX512 void DotRowsAt(const float* query, const float* rows,
                                const std::int32_t* positions,
                                std::int64_t count, std::int64_t dim,
                                float* dots) {
  std::int64_t i = 0;
  if (dim <= kBlockDim) {
    for (; i + kTileRows <= count; i += kTileRows) {
      DotTileAt(query, rows, positions + i, dim, dots + i);
    }
  }
  for (; i < count; ++i) {
    DotRows(query, rows + positions[i] * dim, 1, dim, dots + i);
  }
}

ATTENDANT_AVX512 float Max(const float* numbers, std::int64_t n) {
  const __m512 lowest = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  // Each waits for the one before it, so there are several.
  constexpr int kTogether = 4;
  __m512 max[kTogether] = {lowest, lowest, lowest, lowest};
  std::int64_t i = 0;
  for (; i + kTogether * kWidth <= n; i += kTogether * kWidth) {
    ATTENDANT_UNROLL
    for (int j = 0; j < kTogether; ++j) {
      max[j] = _mm512_max_ps(max[j], _mm512_loadu_ps(numbers + i + j * kWidth));
    }
  }
  for (; i < n; i += kWidth) {
    const __mmask16 mask = FirstLanes(std::min<std::int64_t>(n - i, kWidth));
    max[0] =
        _mm512_max_ps(max[0], _mm512_mask_loadu_ps(lowest, mask, numbers + i));
  }
  return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(max[0], max[1]),
                                            _mm512_max_ps(max[2], max[3])));
}

// x = n ln 2 + r for x in [kMinGap, 0], with |r| <= ln 2 / 2, and a factor with
// exp(r) = 1 + factor r: the Taylor polynomial of degree 7 (error below 2^-27).
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

// exp(x) - 1 for x in [kMinGap, 0], precise also near 0: 1 is taken from 2^n,
// which is exact, and not from the sum.
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
  // Flip where t is positive.
  return _mm512_xor_ps(negative, _mm512_andnot_ps(t, _mm512_set1_ps(-0.0f)));
}

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

// exp(x) for x in [kMinGap, 0] where `counted`, else 0: 2^n (1 + f q(f)) with x
// log2 e = n + f and |f| <= 1/2. q interpolates (2^f - 1) / f at Chebyshev's
// points: the relative error is below 2^-22.2, and with the roundings, of which
// the last two count, below 2^-21.6.
ATTENDANT_AVX512 inline __m512 Exp(__m512 x, __mmask16 counted) {
  // Adding it leaves a whole number in the lowest bits.
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

// What squares are added to: less than a float in a lane would be a denormal,
// for which processors stop.
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

// Of two registers of floats, in doubles.
ATTENDANT_AVX512 inline __m512d SumOf(__m512 a, __m512 b) {
  const __m512 sums = _mm512_add_ps(a, b);
  return _mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(sums)),
                       _mm512_cvtps_pd(_mm512_extractf32x8_ps(sums, 1)));
}

template <bool kStores>
ATTENDANT_AVX512 ExpSums SumExpsTo(const float* logits, std::int64_t n,
                                   float max, float* exps) {
  constexpr int kTogether = 2;
  // After so many numbers, 8 a lane, sums go on in doubles.
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

ATTENDANT_AVX512 ExpSums SumExps(const float* logits, std::int64_t n, float max,
                                 float* exps) {
  return exps == nullptr ? SumExpsTo<false>(logits, n, max, exps)
                         : SumExpsTo<true>(logits, n, max, exps);
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

ATTENDANT_AVX512 std::int64_t SelectAtLeast(const float* numbers,
                                            std::int64_t n, float threshold,
                                            std::int32_t* positions) {
  const __m512 threshold_lanes = _mm512_set1_ps(threshold);
  __m512i lane =
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; i += kWidth) {
    const __mmask16 mask = FirstLanes(std::min<std::int64_t>(n - i, kWidth));
    const __mmask16 chosen =
        _mm512_mask_cmp_ps_mask(mask, _mm512_maskz_loadu_ps(mask, numbers + i),
                                threshold_lanes, _CMP_GE_OQ);
    if (chosen != 0) {
      const int chosen_count = __builtin_popcount(chosen);
      _mm512_mask_storeu_epi32(positions + count, FirstLanes(chosen_count),
                               _mm512_maskz_compress_epi32(chosen, lane));
      count += chosen_count;
    }
    lane = _mm512_add_epi32(lane, _mm512_set1_epi32(kWidth));
  }
  return count;
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
    const __m512 mean = _mm512_mul_ps(
        unit_lanes,
        _mm512_sub_ps(_mm512_maskz_loadu_ps(mask, scores + l),
                      _mm512_maskz_loadu_ps(mask, lists.reaches + l)));
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

ATTENDANT_AVX512 void DotChunks(const float* a, const float* b, std::int64_t n,
                                float* sums) {
  static_assert(kChunk == kWidth);
  for (std::int64_t begin = 0; begin < n; begin += kTileRows * kChunk) {
    __m512 products[kTileRows];
    ATTENDANT_UNROLL
    for (int c = 0; c < kTileRows; ++c) {
      const std::int64_t i = std::min(n, begin + c * kChunk);
      const __mmask16 mask = FirstLanes(std::min(n - i, kChunk));
      products[c] = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, a + i),
                                  _mm512_maskz_loadu_ps(mask, b + i));
    }
    const std::int64_t chunks =
        std::min<std::int64_t>(kTileRows, (n - begin + kChunk - 1) / kChunk);
    _mm256_mask_storeu_ps(sums + begin / kChunk,
                          static_cast<__mmask8>(FirstLanes(chunks)),
                          SumOfEach(products));
  }
}

// Of the numbers, those of kRegisters registers from `begin` on are ranked: the
// others are compared with them one by one.
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
    // Of equal ones, those go before that stand before.
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

// Where `second` has a bit, the difference of the other component and this
// one, else their sum.
ATTENDANT_AVX512 inline __m512 SumOrDifference(__m512 v, __m512 other,
                                               __mmask16 second) {
  return _mm512_mask_sub_ps(_mm512_add_ps(v, other), second, other, v);
}

ATTENDANT_AVX512 void Transform(float* vector, std::int64_t size) {
  // Stages within a register; of fewer components, the first of them.
  const __mmask16 mask = FirstLanes(std::min<std::int64_t>(size, kWidth));
  for (std::int64_t i = 0; i < size; i += kWidth) {
    __m512 v = _mm512_maskz_loadu_ps(mask, vector + i);
    if (size > 1) v = SumOrDifference(v, _mm512_permute_ps(v, 0xb1), 0xaaaa);
    if (size > 2) v = SumOrDifference(v, _mm512_permute_ps(v, 0x4e), 0xcccc);
    if (size > 4) {
      v = SumOrDifference(v, _mm512_shuffle_f32x4(v, v, 0xb1), 0xf0f0);
    }
    if (size > 8) {
      v = SumOrDifference(v, _mm512_shuffle_f32x4(v, v, 0x4e), 0xff00);
    }
    _mm512_mask_storeu_ps(vector + i, mask, v);
  }
  for (std::int64_t half = kWidth; half < size; half *= 2) {
    for (std::int64_t begin = 0; begin < size; begin += 2 * half) {
      for (std::int64_t i = begin; i < begin + half; i += kWidth) {
        const __m512 first = _mm512_loadu_ps(vector + i);
        const __m512 second = _mm512_loadu_ps(vector + half + i);
        _mm512_storeu_ps(vector + i, _mm512_add_ps(first, second));
        _mm512_storeu_ps(vector + half + i, _mm512_sub_ps(first, second));
      }
    }
  }
}

ATTENDANT_AVX512 void AddScaled(double factor, const float* row,
                                std::int64_t dim, double* sum) {
  const __m512d factor_lanes = _mm512_set1_pd(factor);
  constexpr std::int64_t kDoubles = 8;
  for (std::int64_t d = 0; d < dim; d += kDoubles) {
    const auto mask = static_cast<__mmask8>(
        FirstLanes(std::min<std::int64_t>(dim - d, kDoubles)));
    const __m512d added = _mm512_fmadd_pd(
        factor_lanes, _mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, row + d)),
        _mm512_maskz_loadu_pd(mask, sum + d));
    _mm512_mask_storeu_pd(sum + d, mask, added);
  }
}

// sums[q * dim + d] for kQueries queries and kRegisters registers of
// components, the last of which has `last_count` in it. A row's components are
// loaded once for all the queries.
template <int kQueries, int kRegisters>
ATTENDANT_AVX512 inline void PoolTile(const float* weights, const float* rows,
                                      std::int64_t row_count, std::int64_t dim,
                                      std::int64_t last_count, float* sums) {
  __m512 pooled[kQueries][kRegisters];
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    ATTENDANT_UNROLL
    for (int i = 0; i < kRegisters; ++i) pooled[q][i] = _mm512_setzero_ps();
  }
  const __mmask16 last = FirstLanes(last_count);
  constexpr int kLast = kRegisters - 1;
  for (std::int64_t r = 0; r < row_count; ++r) {
    const float* from = rows + r * dim;
    __m512 row[kRegisters];
    ATTENDANT_UNROLL
    for (int i = 0; i < kLast; ++i) row[i] = _mm512_loadu_ps(from + i * kWidth);
    row[kLast] = _mm512_maskz_loadu_ps(last, from + kLast * kWidth);
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      const __m512 weight = _mm512_set1_ps(weights[q * row_count + r]);
      ATTENDANT_UNROLL
      for (int i = 0; i < kRegisters; ++i) {
        pooled[q][i] = _mm512_fmadd_ps(weight, row[i], pooled[q][i]);
      }
    }
  }
  ATTENDANT_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    float* to = sums + q * dim;
    ATTENDANT_UNROLL
    for (int i = 0; i < kLast; ++i) {
      _mm512_storeu_ps(to + i * kWidth, pooled[q][i]);
    }
    _mm512_mask_storeu_ps(to + kLast * kWidth, last, pooled[q][kLast]);
  }
}

template <int kRegisters>
ATTENDANT_AVX512 inline void PoolQueries(const float* weights,
                                         std::int64_t query_count,
                                         const float* rows,
                                         std::int64_t row_count,
                                         std::int64_t dim,
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

ATTENDANT_AVX512 void PoolRows(const float* weights, std::int64_t query_count,
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

const Kernels kAvx512Kernels = {
    DotRows,   DotRowsAt,    DotRowsMulti,  TanhDotRows,
    Scale,     Max,          SumExps,       SelectAtLeast,
    Rank,      CountAtLeast, NormalLogSums, ExpsPerKey,
    DotChunks, Transform,    AddScaled,     PoolRows};

}  // namespace attendant

// Products of rows with many queries.
#include <immintrin.h>

#include <cstdint>

#include "core/kernels/avx512.h"

namespace attendant::avx512 {
namespace {

// For many queries, rows are transposed by blocks, so that a register holds one
// component of 16 rows and a tile's sums are added up without shuffles. A
// pair's additions keep the order of dot_avx512.cc: component d goes to the sum
// of lane d % 16, and the lanes' sums are added in the same order.
constexpr int kTurnedRegisters = 2;
constexpr std::int64_t kTurnedRows = kTurnedRegisters * kWidth;
// 8 x 2 sums, 2 registers of rows, a query. More rows would not fit into the L1
// cache twice, stored and transposed.
constexpr int kTurnedQueries = 8;
// Shorter rows are mostly additions; longer rows are mostly products even
// without transposing.
constexpr std::int64_t kMinTurnedDim = 32;
constexpr std::int64_t kMaxTurnedDim = 256;
// Fewer queries don't repay the transposing.
constexpr std::int64_t kMinTurningQueries = 12;

// Transposes a square: the 16 components from `from` on of 16 rows, `stride`
// apart, become 16 rows of each component, `to_stride` apart.
ATTENDANT_AVX512 inline void TurnSquare(const float* from, std::int64_t stride,
                                        float* to, std::int64_t to_stride) {
  __m512 turned[kWidth];
  ATTENDANT_UNROLL
  for (int k = 0; k < 4; ++k) {
    // Lane l of quads[j] is from row 4 l + j.
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

// Stores turned[(lane * steps + step) * kTurnedRows + r] = component 16 step +
// lane of row r, or 0 beyond dim.
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

// Transposed rows, and the rows that follow, of which each lane prefetches the
// same number of lines.
struct TurnedRows {
  const float* components;
  const float* next;
  std::int64_t lines_a_lane;
};

// Computes the sums of one lane, then adds each of `firsts` to them, in order.
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
    _mm_prefetch(reinterpret_cast<const char*>(next + i * kWidth), _MM_HINT_T1);
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
      // DotTile of dot_avx512.cc adds 0 for a masked component, which turns -0
      // into 0.
      if (is_masked) sum = _mm512_add_ps(sum, _mm512_setzero_ps());
      ((sum = _mm512_add_ps(firsts[q][r], sum)), ...);
      sums[q][r] = sum;
    }
  }
}

// Sums the first three lanes of a quad.
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

// Computes dots[q * stride + r] of kQueries queries and kTurnedRows rows.
template <int kQueries>
ATTENDANT_AVX512 inline void TurnedTile(const float* queries, std::int64_t dim,
                                        const TurnedRows& turned,
                                        std::int64_t stride, float* dots) {
  // Sums of lanes 0 and 2 of a quad, of its lane 1, and of quads.
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

}  // namespace

ATTENDANT_AVX512 std::int64_t DotTurned(const float* queries,
                                        std::int64_t query_count,
                                        const float* rows,
                                        std::int64_t row_count,
                                        std::int64_t dim, float* dots) {
  if (query_count < kMinTurningQueries || dim < kMinTurnedDim ||
      dim > kMaxTurnedDim) {
    return 0;
  }
  alignas(64) float components[kTurnedRows * kMaxTurnedDim];
  // Tiles have sizes that differ by one query at most.
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

}  // namespace attendant::avx512

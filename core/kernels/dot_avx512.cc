// Products of rows in their stored order.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/kernels/avx512.h"

namespace attendant::avx512 {
namespace {

constexpr int kTileRows = 8;
constexpr int kTileQueries = 3;  // 3 x 8 sums, 3 queries: 27 of 32 registers

// Returns the sums of 8 registers. Each is added up by the same tree, whatever
// its position: within 128-bit lanes, (0 + 2) + (1 + 3); then the lanes, (0 +
// 1) + (2 + 3).
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

// Adds the products of `count` components to each pair's sum, in steps of the
// width, with the tail masked.
template <int kQueries, int kRows, bool kAhead>
ATTENDANT_AVX512_INLINE inline void AddProducts(
    const float* queries, const float* rows, std::int64_t dim,
    std::int64_t count, __m512 (&sums)[kQueries][kTileRows]) {
  const std::int64_t whole = count / kWidth * kWidth;
  const __mmask16 mask = FirstLanes(count - whole);
  if constexpr (kQueries == 1) {
    // A single query is bound by memory, which is read fastest in order.
    ATTENDANT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const float* row = rows + r * dim;
      __m512 sum = sums[0][r];
      for (std::int64_t d = 0; d < whole; d += kWidth) {
        sum = _mm512_fmadd_ps(_mm512_loadu_ps(queries + d),
                              _mm512_loadu_ps(row + d), sum);
      }
      if (whole < count) {
        sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, queries + whole),
                              _mm512_maskz_loadu_ps(mask, row + whole), sum);
      }
      sums[0][r] = sum;
    }
    return;
  }
  for (std::int64_t d = 0; d < whole; d += kWidth) {
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
                         2 * kTileRows * dim * std::int64_t{sizeof(float)},
                     _MM_HINT_T1);
      }
      ATTENDANT_UNROLL
      for (int q = 0; q < kQueries; ++q) {
        sums[q][r] = _mm512_fmadd_ps(query[q], row, sums[q][r]);
      }
    }
  }
  if (whole < count) {
    __m512 query[kQueries];
    ATTENDANT_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      query[q] = _mm512_maskz_loadu_ps(mask, queries + q * dim + whole);
    }
    ATTENDANT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const __m512 row = _mm512_maskz_loadu_ps(mask, rows + r * dim + whole);
      ATTENDANT_UNROLL
      for (int q = 0; q < kQueries; ++q) {
        sums[q][r] = _mm512_fmadd_ps(query[q], row, sums[q][r]);
      }
    }
  }
}

// Computes dots[q * stride + r] for kQueries queries and kRows rows. Each pair
// has one sum per block; blocks, of which there is one unless kLong, are added
// in order. kAhead: prefetches the rows of a later tile.
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
    AddProducts<kQueries, kRows, kAhead>(
        queries, rows, dim, kLong ? std::min(dim - begin, kBlockDim) : dim,
        sums);
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
  // Only the first full tile of queries prefetches rows.
  std::int64_t q = 0;
  if (query_count >= kTileQueries) {
    DotTile<kTileQueries, kRows, kLong, true>(queries, rows, dim, stride, dots);
    q = kTileQueries;
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

// Computes the products with the rows from first_row on.
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

// A single query is bound by memory, which is fastest when rows are read line
// after line, prefetched, with no other reads in between: a query of at most
// this many full registers stays in registers.
constexpr int kMaxAloneSteps = 16;
constexpr std::int64_t kAheadBytes = 4096;

// Computes the products with the first rows, in eights, and returns their
// number. The sums are those of DotTile.
template <int kSteps>
ATTENDANT_AVX512 std::int64_t DotAlone(const float* query, const float* rows,
                                       std::int64_t row_count, float* dots) {
  constexpr std::int64_t kDim = kSteps * kWidth;
  __m512 components[kSteps];
  ATTENDANT_UNROLL
  for (int step = 0; step < kSteps; ++step) {
    components[step] = _mm512_loadu_ps(query + step * kWidth);
  }
  // Few rows are not prefetched: what follows them is not needed.
  const std::int64_t bytes = row_count * kDim * std::int64_t{sizeof(float)};
  const std::int64_t ahead = bytes >= 4 * kAheadBytes ? kAheadBytes : 0;
  alignas(64) float sums[kTileRows * kWidth];
  std::int64_t r = 0;
  for (; r + kTileRows <= row_count; r += kTileRows) {
    // Unrolled, the loop would read several rows at a time.
    ATTENDANT_NO_UNROLL
    for (int i = 0; i < kTileRows; ++i) {
      const float* row = rows + (r + i) * kDim;
      __m512 sum = _mm512_setzero_ps();
      ATTENDANT_UNROLL
      for (int step = 0; step < kSteps; ++step) {
        const float* from = row + step * kWidth;
        _mm_prefetch(reinterpret_cast<const char*>(from) + ahead, _MM_HINT_T1);
        sum = _mm512_fmadd_ps(components[step], _mm512_loadu_ps(from), sum);
      }
      _mm512_store_ps(sums + i * kWidth, sum);
    }
    __m512 added[kTileRows];
    ATTENDANT_UNROLL
    for (int i = 0; i < kTileRows; ++i) {
      added[i] = _mm512_load_ps(sums + i * kWidth);
    }
    _mm256_storeu_ps(dots + r, SumOfEach(added));
  }
  return r;
}

template <std::size_t... kSteps>
constexpr auto AloneBySteps(std::index_sequence<kSteps...> /*steps*/) {
  return std::array{&DotAlone<static_cast<int>(kSteps) + 1>...};
}
constexpr auto kAloneBySteps =
    AloneBySteps(std::make_index_sequence<kMaxAloneSteps>());

}  // namespace

ATTENDANT_AVX512 void DotRowsMulti(const float* queries,
                                   std::int64_t query_count, const float* rows,
                                   std::int64_t row_count, std::int64_t dim,
                                   float* dots) {
  if (dim > kBlockDim) {
    DotAll<true>(queries, query_count, rows, row_count, dim, 0, dots);
    return;
  }
  const std::int64_t steps = dim % kWidth == 0 ? dim / kWidth : 0;
  const bool alone = query_count == 1 && steps > 0 && steps <= kMaxAloneSteps;
  const std::int64_t done =
      alone ? kAloneBySteps[steps - 1](queries, rows, row_count, dots)
            : DotTurned(queries, query_count, rows, row_count, dim, dots);
  DotAll<false>(queries, query_count, rows, row_count, dim, done, dots);
}

ATTENDANT_AVX512 void DotRows(const float* query, const float* rows,
                              std::int64_t row_count, std::int64_t dim,
                              float* dots) {
  DotRowsMulti(query, 1, rows, row_count, dim, dots);
}

namespace {

// Computes kTileRows rows, anywhere in memory, of at most kBlockDim floats
// each. The sums are those of DotTile.
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

}  // namespace

ATTENDANT_AVX512 void DotRowsAt(const float* query, const float* rows,
                                const std::int32_t* positions,
                                std::int64_t count, std::int64_t dim,
                                float* dots) {
  if (dim > kBlockDim) {
    for (std::int64_t i = 0; i < count; ++i) {
      DotRows(query, rows + positions[i] * dim, 1, dim, dots + i);
    }
    return;
  }
  std::int64_t i = 0;
  for (; i + kTileRows <= count; i += kTileRows) {
    DotTileAt(query, rows, positions + i, dim, dots + i);
  }
  if (i == count) return;
  // Fill an incomplete tile with copies of the last row.
  std::int32_t last[kTileRows];
  float last_dots[kTileRows];
  for (std::int64_t r = 0; r < kTileRows; ++r) {
    last[r] = positions[std::min(i + r, count - 1)];
  }
  DotTileAt(query, rows, last, dim, last_dots);
  std::copy_n(last_dots, count - i, dots + i);
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

}  // namespace attendant::avx512

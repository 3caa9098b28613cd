// Logits of keys stored as codes: 8 bits per component, whose high nibbles are
// codes of 4 bits. One table of functions per instruction set, as in kernels.h,
// each with a scalar twin that gives the same bytes, as sums are of integers.
//
// Thread-safe: all are pure functions of their arguments. None allocates.
// Pointers need no alignment. Counts may be 0.
#ifndef ATTENDANT_CORE_KERNELS_CODES_H_
#define ATTENDANT_CORE_KERNELS_CODES_H_

#include <cstdint>

#include "core/kernels/kernels.h"

namespace attendant {

// Rows are stored in blocks of kCodeRows and their components in steps of
// kCodeDims. The last step is padded with components that are 0 in queries.
// Byte 64 t + 4 r + j, j < 4, of a block's plane holds two components of row r:
// 8 t + j in its low nibble and 8 t + 4 + j in its high nibble. There are two
// planes, each with its blocks in order: `high` with the high nibbles of all
// codes and `low` with the low ones.
inline constexpr std::int64_t kCodeRows = 16;
inline constexpr std::int64_t kCodeDims = 8;

constexpr std::int64_t CodeStepCount(std::int64_t dim) {
  return (dim + kCodeDims - 1) / kCodeDims;
}
// Returns the bytes of one plane of a block.
constexpr std::int64_t CodePlaneBytes(std::int64_t step_count) {
  return kCodeRows * kCodeDims / 2 * step_count;
}

// A query of 16 bits per component, 256 high + low, each [8 step_count] with
// |high| <= 127. step_count is at most 1024, so that no sum overflows 32 bits.
// If low is null the query has 8 bits, 256 high, and with many queries takes
// half the time; low must then be null in all queries of a call.
struct CodeQuery {
  const std::int8_t* high = nullptr;
  const std::int8_t* low = nullptr;
  std::int32_t high_sum = 0;  // over components
  std::int32_t low_sum = 0;
  float unit = 1;  // the logit of a dot product of 1 with a row of scale 1
};

struct CodeKernels {
  // logits[q * stride + r] = (dot * scales[r]) * unit of query q, for 16
  // block_count rows and query_count queries. dot is the product of the query
  // and the code minus 128, summed exactly except for the roundings below:
  //   float(sum of high * (code - 128)) * 256 + float(sum of low * (code -
  //   128))
  // The two conversions, the addition and the two products round once each. May
  // prefetch the blocks of the next call, if they begin next_block blocks after
  // the first of this call.
  void (*Logits8)(const CodeQuery* queries, std::int64_t query_count,
                  const std::uint8_t* high_plane, const std::uint8_t* low_plane,
                  const float* scales, std::int64_t block_count,
                  std::int64_t next_block, std::int64_t step_count,
                  std::int64_t stride, float* logits);

  // As Logits8, but from the high nibbles n alone, each standing for the middle
  // of the codes that have it, 16 n + 7.5. The sum above becomes 2 * 16 * sum
  // of high * n - 241 * high_sum, an integer, and likewise for low; the product
  // with 0.5 is exact.
  void (*Logits4)(const CodeQuery* queries, std::int64_t query_count,
                  const std::uint8_t* high_plane, const float* scales,
                  std::int64_t block_count, std::int64_t next_block,
                  std::int64_t step_count, std::int64_t stride, float* logits);

  // logits[16 i + r] is the logit of row r of block blocks[i], for `count`
  // blocks in any order, where high_plane and scales are those of block 0.
  // Gives the same bytes as Logits4.
  void (*Logits4At)(const CodeQuery& query, const std::uint8_t* high_plane,
                    const float* scales, const std::int32_t* blocks,
                    std::int64_t count, std::int64_t step_count, float* logits);
};

// Returns the table of a supported level. The table of kAvx512 also needs VNNI
// and BW; without them it is that of kAvx2, which has two tables: with AVX-VNNI
// and without.
const CodeKernels& CodeKernelsFor(KernelLevel level);

// Returns CodeKernelsFor(ActiveKernelLevel()).
const CodeKernels& ActiveCodeKernels();

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_CODES_H_

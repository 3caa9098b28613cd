// Sums of coded rows, each with a weight: what values add up to where they are
// kept as codes of 4 bits (codes.h). One table of functions for each
// instruction set, as kernels.h, each with a scalar twin, which gives the same
// numbers where sums are of integers.
//
// Thread-safe: all are pure functions of their arguments. None allocates.
// Pointers need no alignment. Counts may be 0.
#ifndef ATTENDANT_CORE_KERNELS_WEIGH_CODES_H_
#define ATTENDANT_CORE_KERNELS_WEIGH_CODES_H_

#include <cstdint>

#include "core/kernels/kernels.h"

namespace attendant {

// Blocks of rows that are weighed at once, at most.
inline constexpr std::int64_t kMaxWeighedBlocks = 64;
// Weights have up to three planes of 7 bits, which multiply as signed bytes do.
inline constexpr int kCodeWeightPlanes = 3;
inline constexpr int kCodeWeightPlaneBits = 7;

// What numbers come to, none of them below 0.
struct WeightSums {
  float greatest = 0;
  double sum = 0;
  double square_sum = 0;
};

struct WeighCodesKernels {
  // The sum of n numbers. A term passes at most n / 8 + 3 roundings to float.
  double (*Sum)(const float* numbers, std::int64_t n);

  // weights[i] = numbers[i] * scales[i], rounded once, for n numbers >= 0, and
  // what they come to, added up in doubles.
  WeightSums (*ScaleWeights)(const float* numbers, const float* scales,
                             std::int64_t n, float* weights);

  // rounded[i] = weights[i] * factor as the nearest whole number, for n
  // products in [0, 2^22): of the product, or of it rounded to a float.
  void (*RoundWeights)(const float* weights, std::int64_t n, float factor,
                       std::uint32_t* rounded);

  // sums[d] = sum over block_count blocks and their 16 rows r of
  // weights[16 b + r] * n, n being the high nibble of the row's component d, in
  // [0, 15]; weights are below 2^(7 plane_count). Block b lies at
  // high_plane + blocks[b] * CodePlaneBytes(step_count); blocks may be in any
  // order. sums [8 step_count] are overwritten.
  void (*Weigh4)(const std::uint32_t* weights, int plane_count,
                 const std::int32_t* blocks, std::int64_t block_count,
                 const std::uint8_t* high_plane, std::int64_t step_count,
                 std::int64_t* sums);
};

// The table of a supported level. That of kAvx512 needs VNNI and BW besides;
// where they are missing it is kAvx2's.
const WeighCodesKernels& WeighCodesKernelsFor(KernelLevel level);

// WeighCodesKernelsFor(ActiveKernelLevel()).
const WeighCodesKernels& ActiveWeighCodesKernels();

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_WEIGH_CODES_H_

// Weighted sums of coded rows: sums of values that are stored as codes of 4
// bits (codes.h). One table of functions per instruction set, as in kernels.h,
// each with a scalar twin, which gives the same numbers where sums are of
// integers.
//
// Thread-safe: all are pure functions of their arguments. None allocates.
// Pointers need no alignment. Counts may be 0.
#ifndef ATTENDANT_CORE_KERNELS_WEIGH_CODES_H_
#define ATTENDANT_CORE_KERNELS_WEIGH_CODES_H_

#include <cstdint>

#include "core/kernels/kernels.h"

namespace attendant {

// The most blocks of rows weighed in one call.
inline constexpr std::int64_t kMaxWeighedBlocks = 64;
// Weights have up to three planes of 7 bits, which multiply as signed bytes.
inline constexpr int kCodeWeightPlanes = 3;
inline constexpr int kCodeWeightPlaneBits = 7;

// Sums over numbers, none of which is below 0.
struct WeightSums {
  float greatest = 0;
  double sum = 0;
  double square_sum = 0;
};

struct WeighCodesKernels {
  // Returns the sum of n numbers. A term passes at most n / 8 + 3 roundings to
  // float.
  double (*Sum)(const float* numbers, std::int64_t n);

  // weights[i] = numbers[i] * scales[i], rounded once, for n numbers >= 0.
  // Returns the sums over the weights, added up in doubles.
  WeightSums (*ScaleWeights)(const float* numbers, const float* scales,
                             std::int64_t n, float* weights);

  // rounded[i] = the integer nearest to weights[i] * factor, for n products in
  // [0, 2^22). Rounds either the exact product or the product rounded to a
  // float.
  void (*RoundWeights)(const float* weights, std::int64_t n, float factor,
                       std::uint32_t* rounded);

  // sums[d] = sum over block_count blocks b and their 16 rows r of weights[16 b
  // + r] * n, where n, in [0, 15], is the high nibble of the row's component d;
  // weights are below 2^(7 plane_count). Block b is at high_plane + blocks[b] *
  // CodePlaneBytes(step_count); blocks may be in any order. Overwrites sums [8
  // step_count].
  void (*Weigh4)(const std::uint32_t* weights, int plane_count,
                 const std::int32_t* blocks, std::int64_t block_count,
                 const std::uint8_t* high_plane, std::int64_t step_count,
                 std::int64_t* sums);
};

// Returns the table of a supported level. The table of kAvx512 also needs VNNI
// and BW; without them it is that of kAvx2.
const WeighCodesKernels& WeighCodesKernelsFor(KernelLevel level);

// Returns WeighCodesKernelsFor(ActiveKernelLevel()).
const WeighCodesKernels& ActiveWeighCodesKernels();

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_WEIGH_CODES_H_

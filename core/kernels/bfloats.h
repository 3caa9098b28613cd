// Products of vectors stored as bfloat16, the upper half of a float: half the
// bytes, for measures that need not be exact. One table of functions per
// instruction set, as in kernels.h, each with a scalar twin of the same
// meaning.
//
// Thread-safe: all are pure functions of their arguments. None allocates.
// Pointers need no alignment. Counts may be 0.
#ifndef ATTENDANT_CORE_KERNELS_BFLOATS_H_
#define ATTENDANT_CORE_KERNELS_BFLOATS_H_

#include <cstdint>

#include "core/kernels/kernels.h"

namespace attendant {

// The bits of a bfloat16: a float's sign, its exponent and the first 7 bits of
// its fraction.
using Bfloat = std::uint16_t;

// bfloats[i] = numbers[i] * factor, rounded to a float and then to the nearest
// bfloat16, ties to even. The error is at most 2^-8 of the float, or of the
// least normal float. All numbers and products must be finite and below 2^127
// in absolute value.
void RoundToBfloats(const float* numbers, std::int64_t n, float factor,
                    Bfloat* bfloats);

struct BfloatKernels {
  // Returns the sum of a[i] * b[i], all finite. A term passes at most ceil(n /
  // 8) + 4 roundings to float, but one in the scalar twin, which adds in
  // doubles. Values below the least normal float may become 0.
  float (*Dot)(const Bfloat* a, const Bfloat* b, std::int64_t n);
};

// Returns the table of a supported level. The table of kAvx512 also needs BW
// and BF16; without them it is that of kAvx2.
const BfloatKernels& BfloatKernelsFor(KernelLevel level);

// Returns BfloatKernelsFor(ActiveKernelLevel()).
const BfloatKernels& ActiveBfloatKernels();

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_BFLOATS_H_

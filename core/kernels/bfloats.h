// Products of vectors kept as bfloat16, the upper half of a float: half the
// bytes, where what is measured need not be exact. One table of functions for
// each instruction set, as kernels.h, each with a scalar twin of the same
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
// bfloat16, of two equally near ones to the even one: off by at most 2^-8 of
// the float, or of the least normal one. All are finite and below 2^127 in
// size, the products as well.
void RoundToBfloats(const float* numbers, std::int64_t n, float factor,
                    Bfloat* bfloats);

struct BfloatKernels {
  // The sum of a[i] * b[i], all finite. A term passes at most ceil(n / 8) + 4
  // roundings to float, one in the scalar twin, which adds in doubles; what is
  // below the least normal float may be 0.
  float (*Dot)(const Bfloat* a, const Bfloat* b, std::int64_t n);
};

// The table of a supported level. That of kAvx512 needs BW and BF16 besides;
// where they are missing it is kAvx2's.
const BfloatKernels& BfloatKernelsFor(KernelLevel level);

// BfloatKernelsFor(ActiveKernelLevel()).
const BfloatKernels& ActiveBfloatKernels();

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_BFLOATS_H_

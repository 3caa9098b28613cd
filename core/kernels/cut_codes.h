// Rows cut into codes (codes.h), a block at a time. One table of functions for
// each instruction set, as kernels.h, each with a scalar twin.
//
// Thread-safe: all are pure functions of their arguments. None allocates.
// Pointers need no alignment.
#ifndef ATTENDANT_CORE_KERNELS_CUT_CODES_H_
#define ATTENDANT_CORE_KERNELS_CUT_CODES_H_

#include <cstdint>

#include "core/kernels/codes.h"

namespace attendant {

// Sums over the components of each row of a block, in units of its scale.
struct CutSums {
  float square_norms[kCodeRows];     // of what was cut
  float square_errors_8[kCodeRows];  // less what codes of 8 bits stand for
  float square_errors_4[kCodeRows];  // and those of 4
};

struct CutCodesKernels {
  // Cuts the rows of a block, [dim, 16], by the inverses of their scales, with
  // |component x inverse| <= 120: the code of c = component x inverse is 128
  // more than the whole number nearest to c; where that is in doubt, either. A
  // code of 8 bits stands for itself less 128, one of 4 bits for the middle of
  // those that have its high nibble. Writes both planes of the block, what is
  // past dim as 128, and overwrites the sums, whose terms pass at most dim + 4
  // roundings. Adds errors of 4 bits, times scales: errors[16 d + r] += that of
  // row r's component d. Rows of an inverse of 0 have the code 128.
  void (*Cut)(const float* rows, std::int64_t dim, const float* inverses,
              const float* scales, std::uint8_t* high_plane,
              std::uint8_t* low_plane, CutSums* sums, float* errors);
};

// The table of a supported level.
const CutCodesKernels& CutCodesKernelsFor(KernelLevel level);

// CutCodesKernelsFor(ActiveKernelLevel()).
const CutCodesKernels& ActiveCutCodesKernels();

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_CUT_CODES_H_

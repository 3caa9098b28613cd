// Quantises rows to codes (codes.h), a block at a time. One table of functions
// per instruction set, as in kernels.h, each with a scalar twin.
//
// Thread-safe: all are pure functions of their arguments. None allocates.
// Pointers need no alignment.
#ifndef ATTENDANT_CORE_KERNELS_CUT_CODES_H_
#define ATTENDANT_CORE_KERNELS_CUT_CODES_H_

#include <cstdint>

#include "core/kernels/codes.h"

namespace attendant {

// Sums over the components of each row of a block, in units of the row's scale.
struct CutSums {
  float square_norms[kCodeRows];     // of the components quantised
  float square_errors_8[kCodeRows];  // of their difference from 8-bit codes
  float square_errors_4[kCodeRows];  // and from 4-bit codes
};

struct CutCodesKernels {
  // Quantises the rows of a block, [dim, 16], by the inverses of their scales,
  // with |component x inverse| <= 120. The code of c = component x inverse is
  // 128 plus the integer nearest to c; if two are equally near within rounding,
  // either of them. An 8-bit code stands for itself minus 128, a 4-bit code for
  // the middle of the codes with its high nibble. Writes both planes of the
  // block, with code 128 beyond dim, and overwrites the sums, whose terms pass
  // at most dim + 4 roundings. Adds the 4-bit errors times scales: errors[16 d
  // + r] += the error of row r's component d. Rows with inverse 0 get code 128.
  void (*Cut)(const float* rows, std::int64_t dim, const float* inverses,
              const float* scales, std::uint8_t* high_plane,
              std::uint8_t* low_plane, CutSums* sums, float* errors);
};

// Returns the table of a supported level.
const CutCodesKernels& CutCodesKernelsFor(KernelLevel level);

// Returns CutCodesKernelsFor(ActiveKernelLevel()).
const CutCodesKernels& ActiveCutCodesKernels();

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_CUT_CODES_H_

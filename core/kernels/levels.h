// Declarations shared by the levels and the dispatcher. Internal.
#ifndef ATTENDANT_CORE_KERNELS_LEVELS_H_
#define ATTENDANT_CORE_KERNELS_LEVELS_H_

#include "core/kernels/codes.h"
#include "core/kernels/kernels.h"

namespace attendant {

// exp of a gap below this counts as 0: it is the least integer whose exp is a
// normal float, so that no level meets denormals.
inline constexpr float kMinGap = -87.0f;

// The square of a number below this is not a normal float.
inline constexpr float kMinSquared = 0x1p-63f;

// Implements Exps for levels without their own.
double ExpsByLibrary(const float* logits, std::int64_t n, double max,
                     double* exps);

extern const Kernels kScalarKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

extern const CodeKernels kScalarCodeKernels;
extern const CodeKernels kAvx2CodeKernels;
extern const CodeKernels kAvxVnniCodeKernels;
extern const CodeKernels kVnniCodeKernels;

// True if this processor has VNNI for AVX2 registers.
bool HasAvxVnni();

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_LEVELS_H_

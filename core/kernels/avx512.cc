// The table of AVX-512.
#include "core/kernels/avx512.h"

namespace attendant {

const Kernels kAvx512Kernels = {
    avx512::DotRows,       avx512::DotRowsAt,    avx512::DotRowsMulti,
    avx512::TanhDotRows,   avx512::Scale,        avx512::Max,
    avx512::AddMax,        avx512::CorrectMax,   avx512::SumExps,
    avx512::SumPowers,     avx512::Exps,         avx512::SelectAtLeast,
    avx512::Rank,          avx512::CountAtLeast, avx512::NormalLogSums,
    avx512::NormalSquares, avx512::ExpsPerKey,   avx512::DotChunks,
    avx512::Transform,     avx512::AddScaled,    avx512::AddScaledRows,
    avx512::PoolRows};

}  // namespace attendant

// The functions of the AVX-512 F, DQ and VL level, by the file that defines
// them; kernels.h documents them. Internal.
#ifndef ATTENDANT_CORE_KERNELS_AVX512_H_
#define ATTENDANT_CORE_KERNELS_AVX512_H_

#include <immintrin.h>

#include <cstdint>

#include "core/kernels/levels.h"

// The target attribute is on functions, not on files, so that no inline
// function from a header is compiled for instructions that the processor may
// lack.
#define ATTENDANT_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl")))
#define ATTENDANT_AVX512_INLINE ATTENDANT_AVX512 __attribute__((always_inline))
// For loops over a tile's sums: unrolled before any other optimisation, the
// sums stay in registers.
#define ATTENDANT_UNROLL _Pragma("GCC unroll 16")
// For loops whose loads must stay in order.
#define ATTENDANT_NO_UNROLL _Pragma("GCC unroll 1")

namespace attendant::avx512 {

inline constexpr int kWidth = 16;  // floats in a register
// Number of components after which sums are added up and restarted: one long
// sum would lose digits of late components.
inline constexpr std::int64_t kBlockDim = 64 * kWidth;

ATTENDANT_AVX512 inline __mmask16 FirstLanes(std::int64_t count) {
  return static_cast<__mmask16>((1u << count) - 1);
}

// dot_avx512.cc
ATTENDANT_AVX512 void DotRows(const float* query, const float* rows,
                              std::int64_t row_count, std::int64_t dim,
                              float* dots);
ATTENDANT_AVX512 void DotRowsAt(const float* query, const float* rows,
                                const std::int32_t* positions,
                                std::int64_t count, std::int64_t dim,
                                float* dots);
ATTENDANT_AVX512 void DotRowsMulti(const float* queries,
                                   std::int64_t query_count, const float* rows,
                                   std::int64_t row_count, std::int64_t dim,
                                   float* dots);
ATTENDANT_AVX512 void DotChunks(const float* a, const float* b, std::int64_t n,
                                float* sums);

// dot_turned_avx512.cc: computes DotRowsMulti of the first rows. Returns the
// number of these rows, 0 where it does not pay.
ATTENDANT_AVX512 std::int64_t DotTurned(const float* queries,
                                        std::int64_t query_count,
                                        const float* rows,
                                        std::int64_t row_count,
                                        std::int64_t dim, float* dots);

// exps_avx512.cc
ATTENDANT_AVX512 void TanhDotRows(const float* query,
                                  const float* output_weight, const float* rows,
                                  std::int64_t row_count, std::int64_t dim,
                                  float* dots);
ATTENDANT_AVX512 ExpSums SumExps(const float* logits, std::int64_t n, float max,
                                 float* exps);
ATTENDANT_AVX512 void SumPowers(const float* numbers, std::int64_t n,
                                double* sums);
ATTENDANT_AVX512 double Exps(const float* logits, std::int64_t n, double max,
                             double* exps);
ATTENDANT_AVX512 void NormalLogSums(const NormalLists& lists,
                                    const float* scores, float unit,
                                    float spread, std::int64_t list_count,
                                    float* log_sums);
ATTENDANT_AVX512 double NormalSquares(const NormalLists& lists,
                                      const float* scores, float unit,
                                      const float* log_sums,
                                      const float* weights, float max,
                                      std::int64_t list_count,
                                      float* log_squares);
ATTENDANT_AVX512 void ExpsPerKey(const float* log_sums, const float* log_counts,
                                 std::int64_t list_count, float power,
                                 float max, float* of_key);

// order_avx512.cc
ATTENDANT_AVX512 float Max(const float* numbers, std::int64_t n);
ATTENDANT_AVX512 float AddMax(const float* terms, std::int64_t n,
                              float* numbers);
ATTENDANT_AVX512 float CorrectMax(const float* scales, float factor,
                                  float shift, std::int64_t n, float* logits);
ATTENDANT_AVX512 bool Scale(const float* numbers, std::int64_t n, float factor,
                            float* scaled);
ATTENDANT_AVX512 std::int64_t SelectAtLeast(const float* numbers,
                                            std::int64_t n, float threshold,
                                            std::int32_t* positions);
ATTENDANT_AVX512 void Rank(const std::uint32_t* numbers, std::int64_t n,
                           std::uint32_t* ranks);
ATTENDANT_AVX512 std::int64_t CountAtLeast(const float* numbers, std::int64_t n,
                                           float threshold);

// sums_avx512.cc
ATTENDANT_AVX512 void Transform(float* vector, std::int64_t size,
                                std::int64_t row_count);
ATTENDANT_AVX512 void AddScaled(double factor, const float* row,
                                std::int64_t dim, double* sum);
ATTENDANT_AVX512 void AddScaledRows(const double* factors,
                                    const float* const* rows, std::int64_t n,
                                    std::int64_t dim, double* sum);
ATTENDANT_AVX512 void PoolRows(const float* weights, std::int64_t query_count,
                               const float* rows, std::int64_t row_count,
                               std::int64_t dim, float* sums);

}  // namespace attendant::avx512

#endif  // ATTENDANT_CORE_KERNELS_AVX512_H_

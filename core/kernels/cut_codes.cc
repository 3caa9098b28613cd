// The target attribute is on functions, not on the file, so that no inline
// function from a header is compiled for instructions that the processor may
// lack.
#include "core/kernels/cut_codes.h"

#include <immintrin.h>

#define ATTENDANT_AVX2 __attribute__((target("avx2,fma")))
#define ATTENDANT_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl")))
#define ATTENDANT_UNROLL _Pragma("GCC unroll 8")

namespace attendant {
namespace {

constexpr std::int64_t kLine = 64;  // bytes of a step of a block
constexpr int kDims = kCodeDims;
// Includes 1/2, so that truncation rounds to the nearest.
constexpr float kMiddle = 128.5f;
// Middle of the codes that share a high nibble, minus 128.
constexpr float kNibbleMiddle = 120.5f;

// Returns the position of component j's nibble in the four bytes of a row's
// step.
constexpr int ShiftOf(int j) { return 8 * (j % 4) + 4 * (j / 4); }

void CutScalar(const float* rows, std::int64_t dim, const float* inverses,
               const float* scales, std::uint8_t* high_plane,
               std::uint8_t* low_plane, CutSums* sums, float* errors) {
  *sums = {};
  for (std::int64_t t = 0; t < CodeStepCount(dim); ++t) {
    for (std::int64_t r = 0; r < kCodeRows; ++r) {
      std::uint32_t high = 0;
      std::uint32_t low = 0;
      for (int j = 0; j < kDims; ++j) {
        const std::int64_t d = kDims * t + j;
        std::uint32_t code = 128;
        if (d < dim) {
          const float component = rows[d * kCodeRows + r] * inverses[r];
          code = static_cast<std::uint32_t>(component + kMiddle);
          const float of_8 = component - (static_cast<float>(code) - 128);
          const float of_4 =
              component - (static_cast<float>(code & 0xf0) - kNibbleMiddle);
          sums->square_norms[r] += component * component;
          sums->square_errors_8[r] += of_8 * of_8;
          sums->square_errors_4[r] += of_4 * of_4;
          errors[d * kCodeRows + r] += of_4 * scales[r];
        }
        high |= (code >> 4) << ShiftOf(j);
        low |= (code & 15) << ShiftOf(j);
      }
      for (int byte = 0; byte < 4; ++byte) {
        const std::int64_t at = kLine * t + 4 * r + byte;
        high_plane[at] = static_cast<std::uint8_t>(high >> (8 * byte));
        low_plane[at] = static_cast<std::uint8_t>(low >> (8 * byte));
      }
    }
  }
}

ATTENDANT_AVX2 void CutAvx2(const float* rows, std::int64_t dim,
                            const float* inverses, const float* scales,
                            std::uint8_t* high_plane, std::uint8_t* low_plane,
                            CutSums* sums, float* errors) {
  constexpr std::int64_t kWidth = 8;
  const __m256i nibble = _mm256_set1_epi32(15);
  for (std::int64_t r = 0; r < kCodeRows; r += kWidth) {
    const __m256 inverse = _mm256_loadu_ps(inverses + r);
    const __m256 scale = _mm256_loadu_ps(scales + r);
    __m256 square_norms = _mm256_setzero_ps();
    __m256 square_errors_8 = _mm256_setzero_ps();
    __m256 square_errors_4 = _mm256_setzero_ps();
    for (std::int64_t t = 0; t < CodeStepCount(dim); ++t) {
      __m256i high = _mm256_setzero_si256();
      __m256i low = _mm256_setzero_si256();
      ATTENDANT_UNROLL
      for (int j = 0; j < kDims; ++j) {
        const std::int64_t d = kDims * t + j;
        __m256i code = _mm256_set1_epi32(128);
        if (d < dim) {
          const std::int64_t at = d * kCodeRows + r;
          const __m256 component =
              _mm256_mul_ps(_mm256_loadu_ps(rows + at), inverse);
          code = _mm256_cvttps_epi32(
              _mm256_add_ps(component, _mm256_set1_ps(kMiddle)));
          const __m256 of_8 = _mm256_sub_ps(
              component,
              _mm256_sub_ps(_mm256_cvtepi32_ps(code), _mm256_set1_ps(128)));
          const __m256 of_4 = _mm256_sub_ps(
              component, _mm256_sub_ps(_mm256_cvtepi32_ps(_mm256_and_si256(
                                           code, _mm256_set1_epi32(0xf0))),
                                       _mm256_set1_ps(kNibbleMiddle)));
          square_norms = _mm256_fmadd_ps(component, component, square_norms);
          square_errors_8 = _mm256_fmadd_ps(of_8, of_8, square_errors_8);
          square_errors_4 = _mm256_fmadd_ps(of_4, of_4, square_errors_4);
          _mm256_storeu_ps(
              errors + at,
              _mm256_fmadd_ps(of_4, scale, _mm256_loadu_ps(errors + at)));
        }
        high = _mm256_or_si256(
            high, _mm256_slli_epi32(_mm256_srli_epi32(code, 4), ShiftOf(j)));
        low = _mm256_or_si256(
            low, _mm256_slli_epi32(_mm256_and_si256(code, nibble), ShiftOf(j)));
      }
      const std::int64_t at = kLine * t + 4 * r;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(high_plane + at), high);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(low_plane + at), low);
    }
    _mm256_storeu_ps(sums->square_norms + r, square_norms);
    _mm256_storeu_ps(sums->square_errors_8 + r, square_errors_8);
    _mm256_storeu_ps(sums->square_errors_4 + r, square_errors_4);
  }
}

ATTENDANT_AVX512 void CutAvx512(const float* rows, std::int64_t dim,
                                const float* inverses, const float* scales,
                                std::uint8_t* high_plane,
                                std::uint8_t* low_plane, CutSums* sums,
                                float* errors) {
  const __m512 inverse = _mm512_loadu_ps(inverses);
  const __m512 scale = _mm512_loadu_ps(scales);
  const __m512i nibble = _mm512_set1_epi32(15);
  __m512 square_norms = _mm512_setzero_ps();
  __m512 square_errors_8 = _mm512_setzero_ps();
  __m512 square_errors_4 = _mm512_setzero_ps();
  for (std::int64_t t = 0; t < CodeStepCount(dim); ++t) {
    __m512i high = _mm512_setzero_si512();
    __m512i low = _mm512_setzero_si512();
    ATTENDANT_UNROLL
    for (int j = 0; j < kDims; ++j) {
      const std::int64_t d = kDims * t + j;
      __m512i code = _mm512_set1_epi32(128);
      if (d < dim) {
        const std::int64_t at = d * kCodeRows;
        const __m512 component =
            _mm512_mul_ps(_mm512_loadu_ps(rows + at), inverse);
        code = _mm512_cvttps_epi32(
            _mm512_add_ps(component, _mm512_set1_ps(kMiddle)));
        const __m512 of_8 = _mm512_sub_ps(
            component,
            _mm512_sub_ps(_mm512_cvtepi32_ps(code), _mm512_set1_ps(128)));
        const __m512 of_4 = _mm512_sub_ps(
            component, _mm512_sub_ps(_mm512_cvtepi32_ps(_mm512_and_si512(
                                         code, _mm512_set1_epi32(0xf0))),
                                     _mm512_set1_ps(kNibbleMiddle)));
        square_norms = _mm512_fmadd_ps(component, component, square_norms);
        square_errors_8 = _mm512_fmadd_ps(of_8, of_8, square_errors_8);
        square_errors_4 = _mm512_fmadd_ps(of_4, of_4, square_errors_4);
        _mm512_storeu_ps(
            errors + at,
            _mm512_fmadd_ps(of_4, scale, _mm512_loadu_ps(errors + at)));
      }
      high = _mm512_or_si512(
          high, _mm512_slli_epi32(_mm512_srli_epi32(code, 4), ShiftOf(j)));
      low = _mm512_or_si512(
          low, _mm512_slli_epi32(_mm512_and_si512(code, nibble), ShiftOf(j)));
    }
    _mm512_storeu_si512(high_plane + kLine * t, high);
    _mm512_storeu_si512(low_plane + kLine * t, low);
  }
  _mm512_storeu_ps(sums->square_norms, square_norms);
  _mm512_storeu_ps(sums->square_errors_8, square_errors_8);
  _mm512_storeu_ps(sums->square_errors_4, square_errors_4);
}

constexpr CutCodesKernels kScalar = {CutScalar};
constexpr CutCodesKernels kAvx2 = {CutAvx2};
constexpr CutCodesKernels kAvx512 = {CutAvx512};

}  // namespace

const CutCodesKernels& CutCodesKernelsFor(KernelLevel level) {
  switch (level) {
    case KernelLevel::kAvx512:
      return kAvx512;
    case KernelLevel::kAvx2:
      return kAvx2;
    case KernelLevel::kScalar:
      break;
  }
  return kScalar;
}

const CutCodesKernels& ActiveCutCodesKernels() {
  return CutCodesKernelsFor(ActiveKernelLevel());
}

}  // namespace attendant

// The target attribute is on functions, not on the file, so that no inline
// function from a header is compiled for instructions that the processor may
// lack.
#include "core/kernels/weigh_codes.h"

#include <immintrin.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "core/kernels/codes.h"

#define ATTENDANT_AVX2 __attribute__((target("avx2,fma")))
#define ATTENDANT_VNNI \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define ATTENDANT_UNROLL _Pragma("GCC unroll 8")

namespace attendant {
namespace {

constexpr int kPlaneBits = kCodeWeightPlaneBits;
// Bytes of a step of a block.
constexpr std::int64_t kLine = 64;
// Adjacent components of a row.
constexpr int kSide = 4;

void Weigh4Scalar(const std::uint32_t* weights, int, const std::int32_t* blocks,
                  std::int64_t block_count, const std::uint8_t* high_plane,
                  std::int64_t step_count, std::int64_t* sums) {
  std::fill_n(sums, step_count * kCodeDims, std::int64_t{0});
  for (std::int64_t b = 0; b < block_count; ++b) {
    const std::uint8_t* block =
        high_plane + blocks[b] * CodePlaneBytes(step_count);
    for (std::int64_t t = 0; t < step_count; ++t) {
      for (std::int64_t r = 0; r < kCodeRows; ++r) {
        const auto weight = std::int64_t{weights[b * kCodeRows + r]};
        for (int j = 0; j < kSide; ++j) {
          const std::uint8_t byte = block[kLine * t + kSide * r + j];
          sums[kCodeDims * t + j] += weight * (byte & 15);
          sums[kCodeDims * t + kSide + j] += weight * (byte >> 4);
        }
      }
    }
  }
}

// The vector twins transpose the 4 rows by 4 components of each 16 bytes, so
// that the bytes that are added up belong to one component. A block's weights,
// those of 4 rows in each 4 bytes, are therefore stored 4 times side by side,
// by plane.
template <int kPlanes>
struct WeightBytes {
  alignas(64) std::uint8_t bytes[kMaxWeighedBlocks][kPlanes][kLine];
};

template <int kPlanes>
void Spread(const std::uint32_t* weights, std::int64_t block_count,
            WeightBytes<kPlanes>& spread) {
  constexpr std::uint32_t kMask = (1u << kPlaneBits) - 1;
  for (std::int64_t b = 0; b < block_count; ++b) {
    for (int p = 0; p < kPlanes; ++p) {
      std::uint8_t* bytes = spread.bytes[b][p];
      for (int r = 0; r < kCodeRows; ++r) {
        const auto part = static_cast<std::uint8_t>(
            weights[b * kCodeRows + r] >> (kPlaneBits * p) & kMask);
        for (int j = 0; j < kSide; ++j) {
          bytes[16 * (r / 4) + 4 * j + r % 4] = part;
        }
      }
    }
  }
}

// Joins the sums of the planes of one component.
template <int kPlanes>
std::int64_t Join(const std::int32_t (&planes)[kPlanes][kSide], int j) {
  std::int64_t sum = 0;
  for (int p = kPlanes - 1; p >= 0; --p) {
    sum = (sum << kPlaneBits) + planes[p][j];
  }
  return sum;
}

// A plane's sum is at most 64 x 16 x 15 x 127, far below 2^31; a 16-bit sum of
// 2 products is at most 2 x 15 x 127.
template <int kPlanes>
ATTENDANT_AVX2 void WeighAvx2(const std::uint32_t* weights,
                              const std::int32_t* blocks,
                              std::int64_t block_count,
                              const std::uint8_t* high_plane,
                              std::int64_t step_count, std::int64_t* sums) {
  const std::int64_t block_bytes = CodePlaneBytes(step_count);
  WeightBytes<kPlanes> spread;
  Spread(weights, block_count, spread);
  const __m256i nibbles = _mm256_set1_epi8(0x0f);
  const __m256i turn =
      _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0,
                       4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m256i ones = _mm256_set1_epi16(1);
  for (std::int64_t t = 0; t < step_count; ++t) {
    __m256i first[kPlanes];
    __m256i second[kPlanes];
    ATTENDANT_UNROLL
    for (int p = 0; p < kPlanes; ++p) {
      first[p] = second[p] = _mm256_setzero_si256();
    }
    for (std::int64_t b = 0; b < block_count; ++b) {
      const std::uint8_t* line =
          high_plane + blocks[b] * block_bytes + kLine * t;
      ATTENDANT_UNROLL
      for (int half = 0; half < 2; ++half) {
        const __m256i codes = _mm256_shuffle_epi8(
            _mm256_loadu_si256(
                reinterpret_cast<const __m256i*>(line + 32 * half)),
            turn);
        const __m256i low = _mm256_and_si256(codes, nibbles);
        const __m256i high =
            _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibbles);
        ATTENDANT_UNROLL
        for (int p = 0; p < kPlanes; ++p) {
          const __m256i weight = _mm256_load_si256(
              reinterpret_cast<const __m256i*>(spread.bytes[b][p] + 32 * half));
          first[p] = _mm256_add_epi32(
              first[p],
              _mm256_madd_epi16(_mm256_maddubs_epi16(low, weight), ones));
          second[p] = _mm256_add_epi32(
              second[p],
              _mm256_madd_epi16(_mm256_maddubs_epi16(high, weight), ones));
        }
      }
    }
    std::int32_t of_first[kPlanes][kSide];
    std::int32_t of_second[kPlanes][kSide];
    ATTENDANT_UNROLL
    for (int p = 0; p < kPlanes; ++p) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(of_first[p]),
                       _mm_add_epi32(_mm256_castsi256_si128(first[p]),
                                     _mm256_extracti128_si256(first[p], 1)));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(of_second[p]),
                       _mm_add_epi32(_mm256_castsi256_si128(second[p]),
                                     _mm256_extracti128_si256(second[p], 1)));
    }
    for (int j = 0; j < kSide; ++j) {
      sums[kCodeDims * t + j] = Join(of_first, j);
      sums[kCodeDims * t + kSide + j] = Join(of_second, j);
    }
  }
}

// Returns the sum of the four quarters.
ATTENDANT_VNNI inline __m128i AddQuarters(__m512i sum) {
  const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(sum),
                                        _mm512_extracti64x4_epi64(sum, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half),
                       _mm256_extracti128_si256(half, 1));
}

// Weighs steps [t, t + kSteps) of all blocks, reading the weights once for
// them. Multiplies whole bytes instead of their high nibbles and subtracts the
// low nibbles at the end: nothing saturates here, and a sum is at most 64 x 16
// x 255 x 127.
template <int kSteps, int kPlanes>
ATTENDANT_VNNI inline void WeighSteps(const WeightBytes<kPlanes>& spread,
                                      const std::int32_t* blocks,
                                      std::int64_t block_count,
                                      const std::uint8_t* high_plane,
                                      std::int64_t block_bytes, std::int64_t t,
                                      std::int64_t* sums) {
  const __m512i nibbles = _mm512_set1_epi8(0x0f);
  const __m512i turn = _mm512_broadcast_i32x4(
      _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  __m512i first[kSteps][kPlanes];
  __m512i second[kSteps][kPlanes];
  ATTENDANT_UNROLL
  for (int s = 0; s < kSteps; ++s) {
    ATTENDANT_UNROLL
    for (int p = 0; p < kPlanes; ++p) {
      first[s][p] = second[s][p] = _mm512_setzero_si512();
    }
  }
  for (std::int64_t b = 0; b < block_count; ++b) {
    const std::uint8_t* line = high_plane + blocks[b] * block_bytes + kLine * t;
    __m512i weights[kPlanes];
    ATTENDANT_UNROLL
    for (int p = 0; p < kPlanes; ++p) {
      weights[p] = _mm512_load_si512(spread.bytes[b][p]);
    }
    ATTENDANT_UNROLL
    for (int s = 0; s < kSteps; ++s) {
      const __m512i codes =
          _mm512_shuffle_epi8(_mm512_loadu_si512(line + kLine * s), turn);
      const __m512i low = _mm512_and_si512(codes, nibbles);
      ATTENDANT_UNROLL
      for (int p = 0; p < kPlanes; ++p) {
        first[s][p] = _mm512_dpbusd_epi32(first[s][p], low, weights[p]);
        second[s][p] = _mm512_dpbusd_epi32(second[s][p], codes, weights[p]);
      }
    }
  }
  ATTENDANT_UNROLL
  for (int s = 0; s < kSteps; ++s) {
    std::int32_t of_first[kPlanes][kSide];
    std::int32_t of_second[kPlanes][kSide];
    ATTENDANT_UNROLL
    for (int p = 0; p < kPlanes; ++p) {
      const __m128i low = AddQuarters(first[s][p]);
      const __m128i both = AddQuarters(second[s][p]);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(of_first[p]), low);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(of_second[p]),
                       _mm_srli_epi32(_mm_sub_epi32(both, low), 4));
    }
    for (int j = 0; j < kSide; ++j) {
      sums[kCodeDims * (t + s) + j] = Join(of_first, j);
      sums[kCodeDims * (t + s) + kSide + j] = Join(of_second, j);
    }
  }
}

template <int kPlanes>
ATTENDANT_VNNI void WeighVnni(const std::uint32_t* weights,
                              const std::int32_t* blocks,
                              std::int64_t block_count,
                              const std::uint8_t* high_plane,
                              std::int64_t step_count, std::int64_t* sums) {
  const std::int64_t block_bytes = CodePlaneBytes(step_count);
  WeightBytes<kPlanes> spread;
  // As Spread: each 4 rows' bytes, 4 times.
  const __m512i four_times =
      _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  const __m512i plane_mask = _mm512_set1_epi32((1 << kPlaneBits) - 1);
  for (std::int64_t b = 0; b < block_count; ++b) {
    const __m512i of_block = _mm512_loadu_si512(weights + b * kCodeRows);
    ATTENDANT_UNROLL
    for (int p = 0; p < kPlanes; ++p) {
      const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_and_si512(
          _mm512_srli_epi32(of_block, static_cast<unsigned>(kPlaneBits * p)),
          plane_mask));
      _mm512_store_si512(
          spread.bytes[b][p],
          _mm512_permutexvar_epi32(four_times, _mm512_castsi128_si512(bytes)));
    }
  }
  std::int64_t t = 0;
  for (; t + 2 <= step_count; t += 2) {
    WeighSteps<2>(spread, blocks, block_count, high_plane, block_bytes, t,
                  sums);
  }
  if (t < step_count) {
    WeighSteps<1>(spread, blocks, block_count, high_plane, block_bytes, t,
                  sums);
  }
}

// Indexed by the number of planes - 1.
using Weigh = void (*)(const std::uint32_t*, const std::int32_t*, std::int64_t,
                       const std::uint8_t*, std::int64_t, std::int64_t*);
constexpr Weigh kWeighAvx2[] = {WeighAvx2<1>, WeighAvx2<2>, WeighAvx2<3>};
constexpr Weigh kWeighVnni[] = {WeighVnni<1>, WeighVnni<2>, WeighVnni<3>};
static_assert(std::size(kWeighVnni) == kCodeWeightPlanes);

template <const Weigh (&kWeigh)[kCodeWeightPlanes]>
void Weigh4By(const std::uint32_t* weights, int plane_count,
              const std::int32_t* blocks, std::int64_t block_count,
              const std::uint8_t* high_plane, std::int64_t step_count,
              std::int64_t* sums) {
  kWeigh[plane_count - 1](weights, blocks, block_count, high_plane, step_count,
                          sums);
}

double SumScalar(const float* numbers, std::int64_t n) {
  return std::accumulate(numbers, numbers + n, 0.0);
}

WeightSums ScaleWeightsScalar(const float* numbers, const float* scales,
                              std::int64_t n, float* weights) {
  WeightSums sums;
  for (std::int64_t i = 0; i < n; ++i) {
    const float weight = numbers[i] * scales[i];
    weights[i] = weight;
    sums.greatest = std::max(sums.greatest, weight);
    sums.sum += weight;
    sums.square_sum += double{weight} * weight;
  }
  return sums;
}

void RoundWeightsScalar(const float* weights, std::int64_t n, float factor,
                        std::uint32_t* rounded) {
  for (std::int64_t i = 0; i < n; ++i) {
    rounded[i] = static_cast<std::uint32_t>(
        static_cast<std::int32_t>(weights[i] * factor + 0.5f));
  }
}

// The scalar twins handle the numbers beyond the last full register.
constexpr std::int64_t kFloats256 = 8;

ATTENDANT_AVX2 double SumAvx2(const float* numbers, std::int64_t n) {
  __m256 sum = _mm256_setzero_ps();
  const std::int64_t whole = n / kFloats256 * kFloats256;
  for (std::int64_t i = 0; i < whole; i += kFloats256) {
    sum = _mm256_add_ps(sum, _mm256_loadu_ps(numbers + i));
  }
  alignas(32) float lanes[kFloats256];
  _mm256_store_ps(lanes, sum);
  return SumScalar(lanes, kFloats256) + SumScalar(numbers + whole, n - whole);
}

ATTENDANT_AVX2 WeightSums ScaleWeightsAvx2(const float* numbers,
                                           const float* scales, std::int64_t n,
                                           float* weights) {
  __m256 greatest = _mm256_setzero_ps();
  __m256d sum = _mm256_setzero_pd();
  __m256d square_sum = _mm256_setzero_pd();
  const std::int64_t whole = n / kFloats256 * kFloats256;
  for (std::int64_t i = 0; i < whole; i += kFloats256) {
    const __m256 weight = _mm256_mul_ps(_mm256_loadu_ps(numbers + i),
                                        _mm256_loadu_ps(scales + i));
    _mm256_storeu_ps(weights + i, weight);
    greatest = _mm256_max_ps(greatest, weight);
    for (const __m128 half :
         {_mm256_castps256_ps128(weight), _mm256_extractf128_ps(weight, 1)}) {
      const __m256d four = _mm256_cvtps_pd(half);
      sum = _mm256_add_pd(sum, four);
      square_sum = _mm256_fmadd_pd(four, four, square_sum);
    }
  }
  WeightSums sums = ScaleWeightsScalar(numbers + whole, scales + whole,
                                       n - whole, weights + whole);
  alignas(32) float lanes[kFloats256];
  _mm256_store_ps(lanes, greatest);
  sums.greatest = std::max(sums.greatest, *std::max_element(lanes, lanes + 8));
  alignas(32) double of_sum[4];
  alignas(32) double of_squares[4];
  _mm256_store_pd(of_sum, sum);
  _mm256_store_pd(of_squares, square_sum);
  for (int i = 0; i < 4; ++i) {
    sums.sum += of_sum[i];
    sums.square_sum += of_squares[i];
  }
  return sums;
}

ATTENDANT_AVX2 void RoundWeightsAvx2(const float* weights, std::int64_t n,
                                     float factor, std::uint32_t* rounded) {
  const __m256 factors = _mm256_set1_ps(factor);
  const __m256 halves = _mm256_set1_ps(0.5f);
  const std::int64_t whole = n / kFloats256 * kFloats256;
  for (std::int64_t i = 0; i < whole; i += kFloats256) {
    const __m256i number = _mm256_cvttps_epi32(
        _mm256_fmadd_ps(_mm256_loadu_ps(weights + i), factors, halves));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(rounded + i), number);
  }
  RoundWeightsScalar(weights + whole, n - whole, factor, rounded + whole);
}

constexpr std::int64_t kFloats512 = 16;

// Returns a mask of the next numbers of n, from i on.
ATTENDANT_VNNI inline __mmask16 LanesAt(std::int64_t i, std::int64_t n) {
  return n - i >= kFloats512 ? static_cast<__mmask16>(0xffff)
                             : static_cast<__mmask16>((1u << (n - i)) - 1);
}

ATTENDANT_VNNI double SumAvx512(const float* numbers, std::int64_t n) {
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < n; i += kFloats512) {
    sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(LanesAt(i, n), numbers + i));
  }
  return _mm512_reduce_add_ps(sum);
}

ATTENDANT_VNNI WeightSums ScaleWeightsAvx512(const float* numbers,
                                             const float* scales,
                                             std::int64_t n, float* weights) {
  __m512 greatest = _mm512_setzero_ps();
  __m512d sums[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
  __m512d squares[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
  for (std::int64_t i = 0; i < n; i += kFloats512) {
    const __mmask16 lanes = LanesAt(i, n);
    const __m512 weight =
        _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, numbers + i),
                      _mm512_maskz_loadu_ps(lanes, scales + i));
    _mm512_mask_storeu_ps(weights + i, lanes, weight);
    greatest = _mm512_max_ps(greatest, weight);
    const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(weight));
    const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(weight, 1));
    sums[0] = _mm512_add_pd(sums[0], low);
    sums[1] = _mm512_add_pd(sums[1], high);
    squares[0] = _mm512_fmadd_pd(low, low, squares[0]);
    squares[1] = _mm512_fmadd_pd(high, high, squares[1]);
  }
  return {_mm512_reduce_max_ps(greatest),
          _mm512_reduce_add_pd(_mm512_add_pd(sums[0], sums[1])),
          _mm512_reduce_add_pd(_mm512_add_pd(squares[0], squares[1]))};
}

ATTENDANT_VNNI void RoundWeightsAvx512(const float* weights, std::int64_t n,
                                       float factor, std::uint32_t* rounded) {
  const __m512 factors = _mm512_set1_ps(factor);
  const __m512 halves = _mm512_set1_ps(0.5f);
  for (std::int64_t i = 0; i < n; i += kFloats512) {
    const __mmask16 lanes = LanesAt(i, n);
    const __m512i number = _mm512_cvttps_epi32(_mm512_fmadd_ps(
        _mm512_maskz_loadu_ps(lanes, weights + i), factors, halves));
    _mm512_mask_storeu_epi32(rounded + i, lanes, number);
  }
}

constexpr WeighCodesKernels kScalar = {SumScalar, ScaleWeightsScalar,
                                       RoundWeightsScalar, Weigh4Scalar};
constexpr WeighCodesKernels kAvx2 = {SumAvx2, ScaleWeightsAvx2,
                                     RoundWeightsAvx2, Weigh4By<kWeighAvx2>};
constexpr WeighCodesKernels kVnni = {SumAvx512, ScaleWeightsAvx512,
                                     RoundWeightsAvx512, Weigh4By<kWeighVnni>};

}  // namespace

const WeighCodesKernels& WeighCodesKernelsFor(KernelLevel level) {
  switch (level) {
    case KernelLevel::kAvx512:
      return __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512vnni")
                 ? kVnni
                 : kAvx2;
    case KernelLevel::kAvx2:
      return kAvx2;
    case KernelLevel::kScalar:
      break;
  }
  return kScalar;
}

const WeighCodesKernels& ActiveWeighCodesKernels() {
  return WeighCodesKernelsFor(ActiveKernelLevel());
}

}  // namespace attendant

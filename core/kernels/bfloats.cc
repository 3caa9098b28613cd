// The target attribute is on functions, not on the file, so that no inline
// function from a header is compiled for instructions that the processor may
// lack.
#include "core/kernels/bfloats.h"

#include <immintrin.h>

#include <bit>

#define ATTENDANT_AVX2 __attribute__((target("avx2,fma")))
#define ATTENDANT_BF16 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace attendant {
namespace {

float Widen(Bfloat number) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(number) << 16);
}

float DotScalar(const Bfloat* a, const Bfloat* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += double{Widen(a[i])} * Widen(b[i]);
  return static_cast<float>(sum);
}

// A register's bfloats as floats, at odd and at even positions.
struct Pair {
  __m256 odd, even;
};

ATTENDANT_AVX2 inline Pair WidenPairs(const Bfloat* from) {
  const __m256i bits =
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  // A bfloat's bits are the upper half of its float's bits.
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000));
  return {_mm256_castsi256_ps(_mm256_and_si256(bits, upper)),
          _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16))};
}

ATTENDANT_AVX2 float DotAvx2(const Bfloat* a, const Bfloat* b, std::int64_t n) {
  constexpr std::int64_t kWidth = 16;
  __m256 odd = _mm256_setzero_ps();
  __m256 even = _mm256_setzero_ps();
  const auto add = [&](const Bfloat* from_a, const Bfloat* from_b)
                       ATTENDANT_AVX2 {
                         const Pair pair_a = WidenPairs(from_a);
                         const Pair pair_b = WidenPairs(from_b);
                         odd = _mm256_fmadd_ps(pair_a.odd, pair_b.odd, odd);
                         even = _mm256_fmadd_ps(pair_a.even, pair_b.even, even);
                       };
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) add(a + i, b + i);
  if (i < n) {
    Bfloat last_a[kWidth] = {};
    Bfloat last_b[kWidth] = {};
    for (std::int64_t j = 0; i + j < n; ++j) {
      last_a[j] = a[i + j];
      last_b[j] = b[i + j];
    }
    add(last_a, last_b);
  }
  const __m256 sums = _mm256_add_ps(odd, even);
  __m128 sum =
      _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

ATTENDANT_BF16 inline __m512 AddProducts(__m512 sum, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

ATTENDANT_BF16 float DotBf16(const Bfloat* a, const Bfloat* b, std::int64_t n) {
  constexpr std::int64_t kWidth = 32;
  // Two sums, because each addition waits for the one before it.
  __m512 first = _mm512_setzero_ps();
  __m512 second = _mm512_setzero_ps();
  std::int64_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    first = AddProducts(first, _mm512_loadu_si512(a + i),
                        _mm512_loadu_si512(b + i));
    second = AddProducts(second, _mm512_loadu_si512(a + i + kWidth),
                         _mm512_loadu_si512(b + i + kWidth));
  }
  for (; i < n; i += kWidth) {
    const __mmask32 mask =
        n - i >= kWidth ? ~__mmask32{0} : (__mmask32{1} << (n - i)) - 1;
    first = AddProducts(first, _mm512_maskz_loadu_epi16(mask, a + i),
                        _mm512_maskz_loadu_epi16(mask, b + i));
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(first, second));
}

constexpr BfloatKernels kScalar = {DotScalar};
constexpr BfloatKernels kAvx2 = {DotAvx2};
constexpr BfloatKernels kBf16 = {DotBf16};

}  // namespace

void RoundToBfloats(const float* numbers, std::int64_t n, float factor,
                    Bfloat* bfloats) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(numbers[i] * factor);
    // Rounds half up in the last bit kept, except that a tie goes to even.
    bfloats[i] = static_cast<Bfloat>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

const BfloatKernels& BfloatKernelsFor(KernelLevel level) {
  switch (level) {
    case KernelLevel::kAvx512:
      return __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512bf16")
                 ? kBf16
                 : kAvx2;
    case KernelLevel::kAvx2:
      return kAvx2;
    case KernelLevel::kScalar:
      break;
  }
  return kScalar;
}

const BfloatKernels& ActiveBfloatKernels() {
  static const BfloatKernels& kernels = BfloatKernelsFor(ActiveKernelLevel());
  return kernels;
}

}  // namespace attendant

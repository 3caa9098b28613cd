#include "core/kernels/codes.h"

#include <cpuid.h>

#include "core/kernels/levels.h"

namespace attendant {
namespace {

std::int32_t Code8(std::uint8_t high, std::uint8_t low) {
  return 16 * high + low;
}

// Returns the nibble of a row's component d in a block's plane.
std::uint8_t Nibble(const std::uint8_t* plane, std::int64_t row,
                    std::int64_t d) {
  const std::uint8_t byte = plane[64 * (d / 8) + 4 * row + d % 4];
  return d % 8 < 4 ? byte & 15 : byte >> 4;
}

std::int32_t LowOf(const CodeQuery& query, std::int64_t d) {
  return query.low == nullptr ? 0 : query.low[d];
}

// The scalar twins: the header's formulas, a row at a time.
void Logits8(const CodeQuery* queries, std::int64_t query_count,
             const std::uint8_t* high_plane, const std::uint8_t* low_plane,
             const float* scales, std::int64_t block_count, std::int64_t,
             std::int64_t step_count, std::int64_t stride, float* logits) {
  const std::int64_t block_bytes = CodePlaneBytes(step_count);
  for (std::int64_t q = 0; q < query_count; ++q) {
    const CodeQuery& query = queries[q];
    for (std::int64_t r = 0; r < block_count * kCodeRows; ++r) {
      const std::int64_t block = r / kCodeRows * block_bytes;
      std::int32_t high = 0;
      std::int32_t low = 0;
      for (std::int64_t d = 0; d < step_count * kCodeDims; ++d) {
        const std::int32_t code =
            Code8(Nibble(high_plane + block, r % kCodeRows, d),
                  Nibble(low_plane + block, r % kCodeRows, d)) -
            128;
        high += query.high[d] * code;
        low += LowOf(query, d) * code;
      }
      const float dot =
          static_cast<float>(high) * 256 + static_cast<float>(low);
      logits[q * stride + r] = dot * scales[r] * query.unit;
    }
  }
}

void Logits4(const CodeQuery* queries, std::int64_t query_count,
             const std::uint8_t* high_plane, const float* scales,
             std::int64_t block_count, std::int64_t, std::int64_t step_count,
             std::int64_t stride, float* logits) {
  const std::int64_t block_bytes = CodePlaneBytes(step_count);
  for (std::int64_t q = 0; q < query_count; ++q) {
    const CodeQuery& query = queries[q];
    for (std::int64_t r = 0; r < block_count * kCodeRows; ++r) {
      const std::uint8_t* block = high_plane + r / kCodeRows * block_bytes;
      std::int32_t high = 0;
      std::int32_t low = 0;
      for (std::int64_t d = 0; d < step_count * kCodeDims; ++d) {
        const std::int32_t nibble = Nibble(block, r % kCodeRows, d);
        high += query.high[d] * nibble;
        low += LowOf(query, d) * nibble;
      }
      high = 32 * high - 241 * query.high_sum;
      if (query.low != nullptr) low = 32 * low - 241 * query.low_sum;
      const float twice =
          static_cast<float>(high) * 256 + static_cast<float>(low);
      logits[q * stride + r] = twice * 0.5f * scales[r] * query.unit;
    }
  }
}

void Logits4At(const CodeQuery& query, const std::uint8_t* high_plane,
               const float* scales, const std::int32_t* blocks,
               std::int64_t count, std::int64_t step_count, float* logits) {
  for (std::int64_t i = 0; i < count; ++i) {
    Logits4(&query, 1, high_plane + blocks[i] * CodePlaneBytes(step_count),
            scales + blocks[i] * kCodeRows, 1, 1, step_count, kCodeRows,
            logits + i * kCodeRows);
  }
}

}  // namespace

const CodeKernels kScalarCodeKernels = {Logits8, Logits4, Logits4At};

bool HasAvxVnni() {
  // Not all compilers' __builtin_cpu_supports know AVX-VNNI.
  unsigned a = 0, b = 0, c = 0, d = 0;
  return IsSupported(KernelLevel::kAvx2) &&
         __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}

const CodeKernels& CodeKernelsFor(KernelLevel level) {
  if (level == KernelLevel::kScalar) return kScalarCodeKernels;
  if (level == KernelLevel::kAvx512 && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vnni")) {
    return kVnniCodeKernels;
  }
  static const bool has_avx_vnni = HasAvxVnni();
  return has_avx_vnni ? kAvxVnniCodeKernels : kAvx2CodeKernels;
}

const CodeKernels& ActiveCodeKernels() {
  static const CodeKernels& kernels = CodeKernelsFor(ActiveKernelLevel());
  return kernels;
}

}  // namespace attendant

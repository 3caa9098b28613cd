// Logits from codes in each table, compared with the machine's limits: reading
// the same bytes, and multiply-adds without memory access.
#include <benchmark/benchmark.h>
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/aligned_buffer.h"
#include "core/kernels/codes.h"
#include "core/kernels/levels.h"

namespace attendant {
namespace {

constexpr std::int64_t kDim = 128;
constexpr std::int64_t kSteps = CodeStepCount(kDim);
// Blocks per call: as in a scan, so that logits stay in the cache.
constexpr std::int64_t kSingleBlocks = 256;
constexpr std::int64_t kManyBlocks = 32;

AlignedBuffer<std::uint8_t> RandomBytes(std::int64_t size) {
  AlignedBuffer<std::uint8_t> bytes(static_cast<std::size_t>(size));
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(random() >> 56);
  }
  return bytes;
}

// Arguments: rows, queries, bits of a query.
template <int kBits>
void Logits(benchmark::State& state, const CodeKernels* kernels) {
  const std::int64_t row_count = state.range(0);
  const std::int64_t query_count = state.range(1);
  const std::int64_t block_count = row_count / kCodeRows;
  const std::int64_t block_bytes = CodePlaneBytes(kSteps);
  const auto high = RandomBytes(block_count * block_bytes);
  const auto low = RandomBytes(kBits == 8 ? block_count * block_bytes : 0);
  const std::vector<float> scales(static_cast<std::size_t>(row_count), 0.01f);
  std::vector<std::int8_t> components(
      static_cast<std::size_t>(query_count * kDim * 2), 3);
  std::vector<CodeQuery> queries;
  for (std::int64_t q = 0; q < query_count; ++q) {
    const std::int8_t* planes = components.data() + 2 * q * kDim;
    queries.push_back({planes, state.range(2) == 16 ? planes + kDim : nullptr,
                       3 * kDim, 3 * kDim, 1});
  }
  const std::int64_t chunk = query_count == 1 ? kSingleBlocks : kManyBlocks;
  const std::int64_t stride = chunk * kCodeRows;
  std::vector<float> logits(static_cast<std::size_t>(query_count * stride));
  for (auto _ : state) {
    for (std::int64_t b = 0; b < block_count; b += chunk) {
      const std::int64_t count = std::min(chunk, block_count - b);
      const float* chunk_scales = scales.data() + b * kCodeRows;
      const std::uint8_t* chunk_high = high.data() + b * block_bytes;
      if constexpr (kBits == 8) {
        kernels->Logits8(queries.data(), query_count, chunk_high,
                         low.data() + b * block_bytes, chunk_scales, count,
                         count, kSteps, stride, logits.data());
      } else {
        kernels->Logits4(queries.data(), query_count, chunk_high, chunk_scales,
                         count, count, kSteps, stride, logits.data());
      }
      benchmark::ClobberMemory();
    }
  }
  state.SetBytesProcessed(state.iterations() * row_count * kDim * kBits / 8);
  const auto pairs =
      static_cast<double>(state.iterations() * row_count * query_count);
  // Counts components; a query of 16 bits needs two products for each.
  state.counters["MAC/s"] = benchmark::Counter(
      pairs * static_cast<double>(kDim), benchmark::Counter::kIsRate);
  state.counters["s/query"] = benchmark::Counter(
      static_cast<double>(state.iterations() * query_count),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// Argument: bytes.
__attribute__((target("avx2"))) void Read(benchmark::State& state) {
  const auto bytes = RandomBytes(state.range(0));
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kAhead = 8192;
  for (auto _ : state) {
    __m256i sums[8] = {};
    for (std::size_t i = 0; i + 4 * kLine <= bytes.size(); i += 4 * kLine) {
#pragma GCC unroll 8
      for (std::size_t j = 0; j < 8; ++j) {
        const std::uint8_t* from = bytes.data() + i + 32 * j;
        if (j % 2 == 0) {
          _mm_prefetch(reinterpret_cast<const char*>(from) + kAhead,
                       _MM_HINT_T0);
        }
        sums[j] = _mm256_xor_si256(
            sums[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
      }
    }
    for (const __m256i& sum : sums) benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// Enough independent sums to hide the latency of an addition.
constexpr int kSums = 16;
constexpr std::int64_t kRounds = 4096;

__attribute__((target("avx512f,avx512vnni"))) void PeakBytes(
    benchmark::State& state) {
  __m512i a = _mm512_set1_epi8(1);
  __m512i sums[kSums] = {};
  for (auto _ : state) {
    for (std::int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kSums; ++j) {
        sums[j] = _mm512_dpbusd_epi32(sums[j], a, a);
      }
      asm volatile("" : "+v"(a));
    }
  }
  for (const __m512i& sum : sums) benchmark::DoNotOptimize(sum);
  state.counters["MAC/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * kRounds * kSums * 64),
      benchmark::Counter::kIsRate);
}

__attribute__((target("avx512f,avx512bf16"))) void PeakBfloats(
    benchmark::State& state) {
  auto a = (__m512bh)_mm512_setzero_si512();
  __m512 sums[kSums] = {};
  for (auto _ : state) {
    for (std::int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kSums; ++j) {
        sums[j] = _mm512_dpbf16_ps(sums[j], a, a);
      }
      asm volatile("" : "+v"(a));
    }
  }
  for (const __m512& sum : sums) benchmark::DoNotOptimize(sum);
  state.counters["MAC/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * kRounds * kSums * 32),
      benchmark::Counter::kIsRate);
}

__attribute__((target("avx512f"))) void PeakFloats(benchmark::State& state) {
  __m512 a = _mm512_set1_ps(0.5f);
  __m512 sums[kSums] = {};
  for (auto _ : state) {
    for (std::int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kSums; ++j) {
        sums[j] = _mm512_fmadd_ps(sums[j], a, a);
      }
      asm volatile("" : "+v"(a));
    }
  }
  for (const __m512& sum : sums) benchmark::DoNotOptimize(sum);
  state.counters["MAC/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * kRounds * kSums * 16),
      benchmark::Counter::kIsRate);
}

bool RegisterAll() {
  struct Table {
    const char* name;
    const CodeKernels* kernels;
    bool is_supported;
  };
  for (const Table& table :
       {Table{"scalar", &kScalarCodeKernels, true},
        Table{"avx2", &kAvx2CodeKernels, IsSupported(KernelLevel::kAvx2)},
        Table{"avx_vnni", &kAvxVnniCodeKernels, HasAvxVnni()},
        Table{"avx512", &CodeKernelsFor(KernelLevel::kAvx512),
              IsSupported(KernelLevel::kAvx512)}}) {
    if (!table.is_supported) continue;
    const auto add = [&table](absl::string_view kernel, auto run) {
      return benchmark::RegisterBenchmark(
          absl::StrCat(kernel, "/", table.name).c_str(), run, table.kernels);
    };
    // Sizes within the L2 cache, and beyond it.
    for (const std::int64_t rows : {8192, 1000000}) {
      if (table.kernels == &kScalarCodeKernels && rows > 8192) continue;
      for (const std::int64_t queries : {1, 16, 64}) {
        for (const std::int64_t query_bits : {16, 8}) {
          add("Logits8", Logits<8>)->Args({rows, queries, query_bits});
          add("Logits4", Logits<4>)->Args({rows, queries, query_bits});
        }
      }
    }
  }
  if (IsSupported(KernelLevel::kAvx2)) {
    benchmark::RegisterBenchmark("Read", Read)->Arg(1 << 20)->Arg(128000000);
  }
  if (IsSupported(KernelLevel::kAvx512)) {
    benchmark::RegisterBenchmark("PeakFloats", PeakFloats);
    if (__builtin_cpu_supports("avx512vnni")) {
      benchmark::RegisterBenchmark("PeakBytes", PeakBytes);
    }
    if (__builtin_cpu_supports("avx512bf16")) {
      benchmark::RegisterBenchmark("PeakBfloats", PeakBfloats);
    }
  }
  return true;
}

const bool kRegistered = RegisterAll();

}  // namespace
}  // namespace attendant

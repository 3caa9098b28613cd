// Speed of the inner loops at each level that this processor supports.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/aligned_buffer.h"
#include "core/kernels/bfloats.h"
#include "core/kernels/codes.h"
#include "core/kernels/cut_codes.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

constexpr std::int64_t kDim = 128;

AlignedBuffer<float> RandomFloats(std::size_t size) {
  AlignedBuffer<float> floats(size);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < size; ++i) floats[i] = normal(random);
  return floats;
}

void DotRows(benchmark::State& state, KernelLevel level) {
  const std::int64_t row_count = state.range(0);
  const auto query = RandomFloats(kDim);
  const auto rows = RandomFloats(static_cast<std::size_t>(row_count * kDim));
  std::vector<float> dots(static_cast<std::size_t>(row_count));
  for (auto _ : state) {
    KernelsFor(level).DotRows(query.data(), rows.data(), row_count, kDim,
                              dots.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * row_count * kDim *
                          static_cast<std::int64_t>(sizeof(float)));
}

// Arguments: rows, queries. Processes rows in chunks, as scans do, so that the
// products stay in the cache.
void DotRowsMulti(benchmark::State& state, KernelLevel level) {
  constexpr std::int64_t kChunkRows = 256;
  const std::int64_t row_count = state.range(0);
  const std::int64_t query_count = state.range(1);
  const auto queries =
      RandomFloats(static_cast<std::size_t>(query_count * kDim));
  const auto rows = RandomFloats(static_cast<std::size_t>(row_count * kDim));
  std::vector<float> dots(static_cast<std::size_t>(query_count * kChunkRows));
  for (auto _ : state) {
    for (std::int64_t begin = 0; begin < row_count; begin += kChunkRows) {
      KernelsFor(level).DotRowsMulti(
          queries.data(), query_count, rows.data() + begin * kDim,
          std::min(kChunkRows, row_count - begin), kDim, dots.data());
      benchmark::ClobberMemory();
    }
  }
  state.counters["MAC/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * query_count * row_count * kDim),
      benchmark::Counter::kIsRate);
}

// Returns the next row of a random access order: a generator's step that visits
// all 2^n rows.
std::size_t NextRow(std::size_t row, std::int64_t row_count) {
  return (row * 1664525 + 1013904223) & static_cast<std::size_t>(row_count - 1);
}

// Products of one row with scattered rows, as when a graph is built, with
// bfloats or floats. Argument: rows, a power of 2.
template <typename Number, typename Dot>
void DotAnywhere(benchmark::State& state, const AlignedBuffer<Number>& rows,
                 Dot dot) {
  const std::int64_t row_count = state.range(0);
  std::size_t row = 1;
  for (auto _ : state) {
    row = NextRow(row, row_count);
    benchmark::DoNotOptimize(dot(rows.data(), rows.data() + row * kDim));
  }
  state.SetBytesProcessed(state.iterations() * kDim *
                          static_cast<std::int64_t>(sizeof(Number)));
}

void DotOfFloats(benchmark::State& state, KernelLevel level) {
  const auto rows =
      RandomFloats(static_cast<std::size_t>(state.range(0) * kDim));
  DotAnywhere(state, rows, [level](const float* a, const float* b) {
    float dot = 0;
    KernelsFor(level).DotRows(a, b, 1, kDim, &dot);
    return dot;
  });
}

void DotOfBfloats(benchmark::State& state, KernelLevel level) {
  const auto floats =
      RandomFloats(static_cast<std::size_t>(state.range(0) * kDim));
  AlignedBuffer<Bfloat> rows(floats.size());
  RoundToBfloats(floats.data(), static_cast<std::int64_t>(floats.size()), 1,
                 rows.data());
  DotAnywhere(state, rows, [level](const Bfloat* a, const Bfloat* b) {
    return BfloatKernelsFor(level).Dot(a, b, kDim);
  });
}

void TanhDotRows(benchmark::State& state, KernelLevel level) {
  const std::int64_t row_count = state.range(0);
  const auto query = RandomFloats(kDim);
  const auto output_weight = RandomFloats(kDim);
  const auto rows = RandomFloats(static_cast<std::size_t>(row_count * kDim));
  std::vector<float> dots(static_cast<std::size_t>(row_count));
  for (auto _ : state) {
    KernelsFor(level).TanhDotRows(query.data(), output_weight.data(),
                                  rows.data(), row_count, kDim, dots.data());
    benchmark::ClobberMemory();
  }
  // Items are tanh evaluations.
  state.SetItemsProcessed(state.iterations() * row_count * kDim);
}

void SumExps(benchmark::State& state, KernelLevel level) {
  const std::int64_t n = state.range(0);
  const auto logits = RandomFloats(static_cast<std::size_t>(n));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        KernelsFor(level).SumExps(logits.data(), n, 6, nullptr));
  }
  state.SetItemsProcessed(state.iterations() * n);
}

void SumPowers(benchmark::State& state, KernelLevel level) {
  const std::int64_t n = state.range(0);
  AlignedBuffer<float> exps = RandomFloats(static_cast<std::size_t>(n));
  for (float& number : exps.span()) number = std::exp(-std::abs(number));
  double sums[kPowers];
  for (auto _ : state) {
    KernelsFor(level).SumPowers(exps.data(), n, sums);
    benchmark::DoNotOptimize(sums);
  }
  state.SetItemsProcessed(state.iterations() * n);
}

// Items are components.
void CutCodes(benchmark::State& state, KernelLevel level) {
  const std::int64_t dim = state.range(0);
  const auto count = static_cast<std::size_t>(dim * kCodeRows);
  const auto rows = RandomFloats(count);
  const std::vector<float> inverses(kCodeRows, 10);
  const std::vector<float> scales(kCodeRows, 0.1f);
  std::vector<float> errors(count);
  const auto bytes =
      static_cast<std::size_t>(CodePlaneBytes(CodeStepCount(dim)));
  std::vector<std::uint8_t> high(bytes);
  std::vector<std::uint8_t> low(bytes);
  CutSums sums;
  for (auto _ : state) {
    CutCodesKernelsFor(level).Cut(rows.data(), dim, inverses.data(),
                                  scales.data(), high.data(), low.data(), &sums,
                                  errors.data());
    benchmark::DoNotOptimize(sums);
  }
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(count));
}

bool RegisterAll() {
  for (const KernelLevel level :
       {KernelLevel::kScalar, KernelLevel::kAvx2, KernelLevel::kAvx512}) {
    if (!IsSupported(level)) continue;
    const auto add = [level](absl::string_view kernel, auto run) {
      return benchmark::RegisterBenchmark(
          absl::StrCat(kernel, "/", KernelLevelName(level)).c_str(), run,
          level);
    };
    // Sizes within the L2 cache, and beyond it.
    add("DotRows", DotRows)->Arg(1000)->Arg(100000);
    add("DotRowsMulti", DotRowsMulti)
        ->Args({1024, 12})
        ->Args({1024, 16})
        ->Args({1024, 64})
        ->Args({1000000, 4})
        ->Args({1000000, 16})
        ->Args({1000000, 64});
    add("DotOfFloats", DotOfFloats)->Arg(1024)->Arg(1 << 18);
    add("DotOfBfloats", DotOfBfloats)->Arg(1024)->Arg(1 << 18);
    add("TanhDotRows", TanhDotRows)->Arg(1000);
    add("SumExps", SumExps)->Arg(1024);
    add("SumPowers", SumPowers)->Arg(1024);
    add("CutCodes", CutCodes)->Arg(128);
  }
  return true;
}

const bool kRegistered = RegisterAll();

}  // namespace
}  // namespace attendant

// Speed of the inner loops at each level this processor has.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/aligned_buffer.h"
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

void DotRowsMulti(benchmark::State& state, KernelLevel level) {
  constexpr std::int64_t kQueries = 48;
  const std::int64_t row_count = state.range(0);
  const auto queries = RandomFloats(kQueries * kDim);
  const auto rows = RandomFloats(static_cast<std::size_t>(row_count * kDim));
  std::vector<float> dots(static_cast<std::size_t>(kQueries * row_count));
  for (auto _ : state) {
    KernelsFor(level).DotRowsMulti(queries.data(), kQueries, rows.data(),
                                   row_count, kDim, dots.data());
    benchmark::ClobberMemory();
  }
  state.counters["flop/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * kQueries * row_count * kDim * 2),
      benchmark::Counter::kIsRate);
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
  // Of tanhs.
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

bool RegisterAll() {
  for (const KernelLevel level :
       {KernelLevel::kScalar, KernelLevel::kAvx2, KernelLevel::kAvx512}) {
    if (!IsSupported(level)) continue;
    const auto add = [level](absl::string_view kernel, auto run) {
      return benchmark::RegisterBenchmark(
          absl::StrCat(kernel, "/", KernelLevelName(level)).c_str(), run,
          level);
    };
    // In the second cache, and beyond it.
    add("DotRows", DotRows)->Arg(1000)->Arg(100000);
    add("DotRowsMulti", DotRowsMulti)->Arg(1264);
    add("TanhDotRows", TanhDotRows)->Arg(1000);
    add("SumExps", SumExps)->Arg(1024);
  }
  return true;
}

const bool kRegistered = RegisterAll();

}  // namespace
}  // namespace attendant

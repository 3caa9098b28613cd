// Time and memory of attention over sequences, as a function of the tokens of
// Contextualize and the events of RankCandidates.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "bench/peak_memory.h"
#include "core/attention/sequences/contextualize.h"
#include "core/attention/sequences/rank_candidates.h"

namespace attendant {
namespace {

constexpr std::int64_t kCandidates = 100;

Matrix RandomMatrix(std::int64_t rows, std::int64_t columns, float deviation) {
  Matrix matrix = {rows, columns, {}};
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, deviation);
  matrix.data.resize(static_cast<std::size_t>(rows * columns));
  for (float& f : matrix.data) f = normal(random);
  return matrix;
}

// Returns a model from d_model to d_model with heads of 64.
AttentionModel RandomModel(std::int64_t dim) {
  const float deviation = 1 / std::sqrt(static_cast<float>(dim));
  const Projection projection = {RandomMatrix(dim, dim, deviation), {}};
  MultiHeadProjections heads;
  heads.head_count = dim / 64;
  heads.query = projection;
  heads.key = projection;
  heads.value = projection;
  heads.output = projection;
  return {heads};
}

void Report(benchmark::State& state, std::int64_t scored_count,
            std::int64_t scratch_bytes) {
  state.counters["pairs/s"] =
      benchmark::Counter(static_cast<double>(scored_count),
                         benchmark::Counter::kIsIterationInvariantRate);
  state.counters["scratch_MiB"] =
      static_cast<double>(scratch_bytes) / (1 << 20);
}

void RunContextualize(benchmark::State& state, const AttentionModel* model,
                      std::int64_t dim, bool causal) {
  const Matrix tokens = RandomMatrix(state.range(0), dim, 1);
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.causal = causal;
  if (model != nullptr) input.layers = {&model, 1};
  std::int64_t scored_count = 0;
  std::int64_t scratch_bytes = 0;
  for (auto _ : state) {
    const PeakMemory memory;
    const absl::StatusOr<SequenceContext> context = Contextualize(input);
    if (!context.ok()) {
      state.SkipWithError(context.status().ToString().c_str());
      return;
    }
    const auto output_bytes =
        static_cast<std::int64_t>(context->outputs.data.size() * sizeof(float));
    scratch_bytes = std::max(scratch_bytes, memory.added() - output_bytes);
    scored_count = context->scored_count;
  }
  Report(state, scored_count, scratch_bytes);
}

void Contextualize64(benchmark::State& state) {
  RunContextualize(state, nullptr, 64, /*causal=*/false);
}

void ContextualizeCausal64(benchmark::State& state) {
  RunContextualize(state, nullptr, 64, /*causal=*/true);
}

void ContextualizeModel512(benchmark::State& state) {
  const AttentionModel model = RandomModel(512);
  RunContextualize(state, &model, 512, /*causal=*/false);
}

void Rank64(benchmark::State& state) {
  const Matrix candidates = RandomMatrix(kCandidates, 64, 1);
  const Matrix events = RandomMatrix(state.range(0), 64, 1);
  RankInput input;
  input.candidates = candidates.view();
  input.keys = events.view();
  input.values = events.view();
  input.attribution_count = state.range(1);
  std::int64_t scored_count = 0;
  std::int64_t scratch_bytes = 0;
  for (auto _ : state) {
    const PeakMemory memory;
    const absl::StatusOr<RankedInterests> ranked = RankCandidates(input);
    if (!ranked.ok()) {
      state.SkipWithError(ranked.status().ToString().c_str());
      return;
    }
    scratch_bytes = std::max(scratch_bytes, memory.added());
    scored_count = ranked->scored_count;
  }
  Report(state, scored_count, scratch_bytes);
}

BENCHMARK(Contextualize64)
    ->RangeMultiplier(2)
    ->Range(2048, 32768)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(ContextualizeCausal64)
    ->Arg(32768)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(ContextualizeModel512)
    ->RangeMultiplier(2)
    ->Range(2048, 8192)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
// 100 candidates; arguments: events, and events named with each candidate.
BENCHMARK(Rank64)
    ->Args({10000, 3})
    ->Args({100000, 3})
    ->Args({1000000, 3})
    ->Args({1000000, 0})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attendant

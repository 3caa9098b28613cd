// Exact attention and its approximations: error of the outputs, time and peak
// memory by number of tokens. One row per method; arguments: tokens, and
// whether similar tokens are adjacent.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "bench/peak_memory.h"
#include "core/attention/sequences/contextualize.h"

namespace attendant {
namespace {

constexpr std::int64_t kDim = 64;
constexpr double kTemperature = 0.05;
// Similar tokens per cluster.
constexpr std::int64_t kClusterSize = 32;
// Distance of a token from its cluster's centre, as a share of its norm.
constexpr float kSpread = 0.5f;

// Returns tokens of norm 1 in clusters, with a cosine of about 0.8 within a
// cluster and about 0 between clusters. Clusters are scattered over the
// sequence, or are contiguous runs.
Matrix Tokens(std::int64_t count, bool in_runs) {
  // A generator that the approximations do not use.
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<std::int64_t> cluster_of(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    cluster_of[i] = i / kClusterSize;
  }
  if (!in_runs) std::ranges::shuffle(cluster_of, random);
  std::vector<float> centres(
      static_cast<std::size_t>((count / kClusterSize + 1) * kDim));
  for (float& component : centres) component = normal(random);
  Matrix tokens = {count, kDim, {}};
  for (const std::int64_t cluster : cluster_of) {
    std::vector<float> token(kDim);
    double square = 0;
    for (std::int64_t d = 0; d < kDim; ++d) {
      float& component = token[d];
      component = centres[cluster * kDim + d] + kSpread * normal(random);
      square += double{component} * component;
    }
    for (const float component : token) {
      tokens.data.push_back(static_cast<float>(component / std::sqrt(square)));
    }
  }
  return tokens;
}

ContextualizeInput InputOf(const Matrix& tokens) {
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.score_kind = ScoreKind::kCosine;
  input.temperature = kTemperature;
  return input;
}

// |got - want| / |want| in the Frobenius norm.
double RelativeError(const Matrix& got, const Matrix& want) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < want.data.size(); ++i) {
    const double difference = double{got.data[i]} - want.data[i];
    error += difference * difference;
    norm += double{want.data[i]} * want.data[i];
  }
  return std::sqrt(error / norm);
}

const Matrix& ExactOutputs(std::int64_t count, bool in_runs) {
  static std::map<std::pair<std::int64_t, bool>, Matrix> known;
  Matrix& outputs = known[{count, in_runs}];
  if (outputs.data.empty()) {
    const Matrix tokens = Tokens(count, in_runs);
    outputs = Contextualize(InputOf(tokens))->outputs;
  }
  return outputs;
}

void Run(benchmark::State& state, const Approximation& approximation) {
  const std::int64_t count = state.range(0);
  const bool in_runs = state.range(1) != 0;
  const Matrix& exact = ExactOutputs(count, in_runs);
  const Matrix tokens = Tokens(count, in_runs);
  ContextualizeInput input = InputOf(tokens);
  input.approximation = approximation;
  for (auto _ : state) {
    const PeakMemory memory;
    const absl::StatusOr<SequenceContext> context = Contextualize(input);
    if (!context.ok()) {
      state.SkipWithError(context.status().ToString().c_str());
      return;
    }
    state.counters["error"] = RelativeError(context->outputs, exact);
    state.counters["pairs"] = static_cast<double>(context->scored_count);
    // Includes the outputs, 256 bytes per token.
    state.counters["MiB"] = static_cast<double>(memory.added()) / (1 << 20);
  }
}

void Register(const char* name, const Approximation& approximation) {
  benchmark::RegisterBenchmark(
      name,
      [approximation](benchmark::State& state) { Run(state, approximation); })
      ->ArgNames({"tokens", "in_runs"})
      ->ArgsProduct({{1000, 2000, 4000, 8000, 16000, 32000}, {0, 1}})
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

const bool kRegistered = [] {
  Register("exact", {});
  Register("lsh_1_round", LshAttentionOptions{.round_count = 1});
  Register("lsh_4_rounds", LshAttentionOptions{.round_count = 4});
  Register("lsh_16_rounds", LshAttentionOptions{.round_count = 16});
  Register("linformer_means_256", LinformerOptions{});
  Register("linformer_random_256",
           LinformerOptions{.kind = ReductionKind::kRandom});
  return true;
}();

}  // namespace
}  // namespace attendant

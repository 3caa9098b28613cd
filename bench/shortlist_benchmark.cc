// Speed and recall of the indexes on 100,000 keys of 128 dimensions: 2,000
// Gaussian clusters with standard deviation 1 for centres and for keys within a
// cluster, normalised. Queries come from the same clusters.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "core/attention/softmax/state.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/kinds/flat_index.h"

namespace attendant {
namespace {

constexpr std::int64_t kDim = 128;
constexpr std::int64_t kKeyCount = 100000;
constexpr std::int64_t kClusterCount = 2000;
constexpr std::int64_t kQueryCount = 500;
constexpr std::int64_t kShortlistCount = 100;

class NoIds : public IdResolver {
 public:
  absl::string_view IdOf(std::int32_t, RowIndex) const override { return {}; }
};

struct Data {
  std::vector<float> keys;
  std::vector<float> queries;
  std::vector<std::span<const float>> key_spans;

  Data() : centres(kClusterCount * kDim) {
    for (float& component : centres) component = normal(random);
    keys = Draw(kKeyCount);
    queries = Draw(kQueryCount);
    for (std::int64_t r = 0; r < kKeyCount; ++r) {
      key_spans.emplace_back(keys.data() + r * kDim, kDim);
    }
  }

  std::vector<float> Draw(std::int64_t count) {
    std::vector<float> rows(static_cast<std::size_t>(count * kDim));
    for (std::int64_t r = 0; r < count; ++r) {
      const auto cluster = static_cast<std::int64_t>(random() % kClusterCount);
      float* row = rows.data() + r * kDim;
      for (std::int64_t d = 0; d < kDim; ++d) {
        row[d] = centres[cluster * kDim + d] + normal(random);
      }
      const double norm = Norm({row, kDim});
      for (std::int64_t d = 0; d < kDim; ++d) {
        row[d] = static_cast<float>(row[d] / norm);
      }
    }
    return rows;
  }

  std::mt19937 random{7};
  std::normal_distribution<float> normal;
  std::vector<float> centres;
};

Data& TheData() {
  static Data data;
  return data;
}

ScanQuery QueryOf(std::int64_t i) {
  ScanQuery query;
  query.query = {TheData().queries.data() + i * kDim, kDim};
  query.logit_factor = LogitFactor(ScoreKind::kDot, kDim, 0.05);
  query.row_end = kKeyCount;
  return query;
}

std::vector<Candidate> Shortlist(const KeyIndex& index,
                                 const ScanQuery& query) {
  static const NoIds ids;
  AttentionState attention(kShortlistCount, &ids);
  if (!index.Scan(query, attention).ok()) std::abort();
  return attention.top().Sorted();
}

const FlatIndex& Flat() {
  static const auto index = [] {
    auto flat = std::make_unique<FlatIndex>(kDim, kKeyCount);
    for (const auto key : TheData().key_spans) flat->Append(key);
    return flat;
  }();
  return *index;
}

const IvfIndex& Ivf() {
  static const auto index = *IvfIndex::Build(TheData().key_spans, kDim,
                                             ScoreKind::kDot, IvfOptions());
  return *index;
}

// Returns the share of the exact best `count` that the index finds.
double Recall(std::size_t count) {
  std::int64_t found = 0;
  for (std::int64_t q = 0; q < kQueryCount; ++q) {
    std::set<RowIndex> exact;
    for (const Candidate& c : Shortlist(Flat(), QueryOf(q))) {
      if (exact.size() < count) exact.insert(c.row);
    }
    for (const Candidate& c : Shortlist(Ivf(), QueryOf(q))) {
      found += static_cast<std::int64_t>(exact.count(c.row));
    }
  }
  return static_cast<double>(found) /
         static_cast<double>(kQueryCount * static_cast<std::int64_t>(count));
}

void FlatScan(benchmark::State& state) {
  std::int64_t q = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(Shortlist(Flat(), QueryOf(q++ % kQueryCount)));
  }
}
BENCHMARK(FlatScan)->Unit(benchmark::kMicrosecond);

void IvfScan(benchmark::State& state) {
  const IvfIndex& ivf = Ivf();
  std::int64_t q = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(Shortlist(ivf, QueryOf(q++ % kQueryCount)));
  }
  static const double recall_10 = Recall(10);
  static const double recall_100 = Recall(100);
  state.counters["recall@10"] = recall_10;
  state.counters["recall@100"] = recall_100;
  state.counters["lists"] = static_cast<double>(ivf.list_count());
  state.counters["probes"] = static_cast<double>(ivf.probe_count());
  state.counters["calibrated"] = ivf.measured_recall();
}
BENCHMARK(IvfScan)->Unit(benchmark::kMicrosecond);

// Arguments: keys, threads.
void IvfBuild(benchmark::State& state) {
  const std::int64_t key_count = state.range(0);
  Data& data = TheData();
  std::vector<float> more;
  std::vector<std::span<const float>> keys = data.key_spans;
  if (key_count > kKeyCount) {
    more = data.Draw(key_count - kKeyCount);
    for (std::size_t begin = 0; begin < more.size(); begin += kDim) {
      keys.emplace_back(more.data() + begin, kDim);
    }
  }
  IvfOptions options;
  options.thread_count = static_cast<int>(state.range(1));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        IvfIndex::Build(keys, kDim, ScoreKind::kDot, options));
  }
}
BENCHMARK(IvfBuild)
    ->Args({kKeyCount, 1})
    ->Args({1000000, 1})
    ->Args({1000000, 2})
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
}  // namespace attendant

// Cost of masks: attention over 1,000,000 items of 128 dimensions through an
// IVF index, with filters that pass a share of the items, and with a deny list
// of 100,000 ids. Keys are 20,000 Gaussian clusters with standard deviation 1
// for centres and for keys within a cluster, normalised; queries come from the
// same distribution. What a filter passes is independent of the keys, except
// for "near" and "far", which pass items of the queries' own clusters, or only
// items of other clusters.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/catalog/filter/parse_filter.h"
#include "core/catalog/query/attend.h"
#include "core/shortlist/ivf/ivf_index.h"

namespace attendant {
namespace {

constexpr std::int64_t kDim = 128;
constexpr std::int64_t kItemCount = 1000000;
constexpr std::int64_t kClusterCount = 20000;
// Queries come from clusters with numbers below this.
constexpr std::int64_t kQueryClusterCount = 2000;
constexpr std::int64_t kQueryCount = 25;
constexpr std::int64_t kDenyCount = 100000;

CatalogSchema Schema() {
  CatalogSchema schema;
  schema.key_fields.push_back({.name = "vec", .dim = kDim});
  schema.attributes = {{"draw", AttributeType::kInt64},
                       {"cluster", AttributeType::kInt64},
                       {"price", AttributeType::kDouble},
                       {"color", AttributeType::kString},
                       {"tags", AttributeType::kStringList}};
  return schema;
}

struct Catalog {
  Snapshot snapshot;
  std::vector<std::vector<float>> queries;
  std::vector<ItemId> deny_list;

  Catalog() {
    std::mt19937_64 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> centres(kClusterCount * kDim);
    for (float& component : centres) component = normal(random);
    const auto draw = [&](std::int64_t cluster, float* key) {
      for (std::int64_t d = 0; d < kDim; ++d) {
        key[d] = centres[cluster * kDim + d] + normal(random);
      }
      const double norm = Norm({key, kDim});
      for (std::int64_t d = 0; d < kDim; ++d) {
        key[d] = static_cast<float>(key[d] / norm);
      }
    };
    // A random order of 0 .. items - 1, so that exactly the requested share is
    // below a limit.
    std::vector<std::int64_t> draws(kItemCount);
    for (std::int64_t i = 0; i < kItemCount; ++i) {
      draws[i] = i;
    }
    std::ranges::shuffle(draws, random);
    auto rows = std::make_shared<RowTable>(0, kItemCount);
    std::vector<float> keys(kItemCount * kDim);
    std::vector<std::span<const float>> spans;
    for (std::int64_t i = 0; i < kItemCount; ++i) {
      const auto cluster = static_cast<std::int64_t>(random() % kClusterCount);
      float* key = keys.data() + i * kDim;
      draw(cluster, key);
      spans.emplace_back(key, kDim);
      std::vector<std::string> tags;
      for (int t = 0; t < 3; ++t) {
        tags.push_back(absl::StrCat("tag", random() % 30));
      }
      const std::string id = absl::StrCat("item-of-a-shop-", i);
      rows->Append(id, {},
                   {{0, draws[i]},
                    {1, cluster},
                    {2, static_cast<double>(random() % 1000)},
                    {3, absl::StrCat("color", random() % 10)},
                    {4, std::move(tags)}});
      if (i % (kItemCount / kDenyCount) == 0) deny_list.push_back(id);
    }
    std::ranges::shuffle(deny_list, random);
    // Copies the ids so that they lie in memory in this order, as a request's
    // do.
    deny_list = std::vector<ItemId>(deny_list.begin(), deny_list.end());
    auto index = IvfIndex::Build(spans, kDim, ScoreKind::kDot, IvfOptions());
    if (!index.ok()) std::abort();
    auto segment = std::make_shared<Segment>();
    segment->rows = std::move(rows);
    segment->indexes.push_back(*std::move(index));
    snapshot.schema = std::make_shared<CatalogSchema>(Schema());
    segment->head_indexes.resize(1);
    snapshot.encoders.resize(1);
    snapshot.models.resize(1);
    snapshot.wanted_indexes = {IndexKind::kIvf};
    SegmentView view;
    view.segment = std::move(segment);
    view.row_end = kItemCount;
    view.live_count = kItemCount;
    view.live_key_counts = {kItemCount};
    snapshot.segments.push_back(std::move(view));
    for (std::int64_t q = 0; q < kQueryCount; ++q) {
      queries.emplace_back(kDim);
      draw(static_cast<std::int64_t>(random() % kQueryClusterCount),
           queries.back().data());
    }
  }
};

const Catalog& TheCatalog() {
  static const Catalog catalog;
  return catalog;
}

AttendQuery QueryOf(std::int64_t q, const std::string& filter) {
  AttendQuery query;
  query.query = TheCatalog().queries[q];
  query.temperature = 0.05;
  query.result_count = 100;
  query.omit_pooled_value = true;
  if (!filter.empty()) query.filter = ParseFilter(filter, Schema()).value();
  return query;
}

AttendAnswer Ask(const AttendQuery& query) {
  return Attend(TheCatalog().snapshot, query, Interrupt()).value();
}

// Returns the share of the exact shortlists that is found, and the rows scored
// for that.
std::pair<double, double> Recall(const std::string& filter) {
  std::int64_t found = 0;
  std::int64_t wanted = 0;
  std::int64_t scored = 0;
  for (std::int64_t q = 0; q < kQueryCount; ++q) {
    AttendQuery query = QueryOf(q, filter);
    const AttendAnswer answer = Ask(query);
    scored += answer.scored_count;
    query.scan_mode = ScanMode::kExact;
    std::set<RowIndex> exact;
    for (const AttendedItem& item : Ask(query).items) {
      exact.insert(item.address.row);
    }
    wanted += static_cast<std::int64_t>(exact.size());
    for (const AttendedItem& item : answer.items) {
      found += static_cast<std::int64_t>(exact.count(item.address.row));
    }
  }
  return {wanted == 0
              ? 1
              : static_cast<double>(found) / static_cast<double>(wanted),
          static_cast<double>(scored) / kQueryCount};
}

void Filtered(benchmark::State& state, const std::string& filter) {
  TheCatalog();
  std::vector<AttendQuery> queries;
  for (std::int64_t q = 0; q < kQueryCount; ++q) {
    queries.push_back(QueryOf(q, filter));
  }
  std::size_t q = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(Ask(queries[q++ % kQueryCount]));
  }
  const auto [recall, scored] = Recall(filter);
  state.counters["recall"] = recall;
  state.counters["scored"] = scored;
  state.counters["eligible"] =
      static_cast<double>(Ask(queries[0]).eligible_count);
}

void ExactFiltered(benchmark::State& state, const std::string& filter) {
  TheCatalog();
  AttendQuery query = QueryOf(0, filter);
  query.scan_mode = ScanMode::kExact;
  for (auto _ : state) benchmark::DoNotOptimize(Ask(query));
}

// Asks without the list; Denied asks the same query with it.
void NotDenied(benchmark::State& state) {
  const AttendQuery query = QueryOf(0, "");
  for (auto _ : state) benchmark::DoNotOptimize(Ask(query));
}

void Denied(benchmark::State& state) {
  AttendQuery query = QueryOf(0, "");
  query.deny_list = TheCatalog().deny_list;
  for (auto _ : state) benchmark::DoNotOptimize(Ask(query));
}

void Allowed(benchmark::State& state) {
  AttendQuery query = QueryOf(0, "");
  query.allow_list = TheCatalog().deny_list;
  for (auto _ : state) benchmark::DoNotOptimize(Ask(query));
}

const std::pair<const char*, const char*> kFilters[] = {
    {"all", ""},
    {"half", "draw < 500000"},
    {"tenth", "draw < 100000"},
    {"hundredth", "draw < 10000"},
    {"thousandth", "draw < 1000"},
    {"one", "draw = 5"},
    {"none", "draw < 0"},
    {"near", "cluster < 2000"},
    {"far", "cluster >= 18000"},
    {"color", "color = \"color3\""},
    {"tag", "tags:\"tag7\""},
    {"three", "price < 500 AND (color = \"color3\" OR color > \"color7\")"},
};

const bool kRegistered = [] {
  for (const auto& [name, filter] : kFilters) {
    benchmark::RegisterBenchmark(absl::StrCat("Attend/", name).c_str(),
                                 Filtered, std::string(filter))
        ->Unit(benchmark::kMicrosecond);
  }
  for (const auto& [name, filter] : kFilters) {
    benchmark::RegisterBenchmark(absl::StrCat("Exact/", name).c_str(),
                                 ExactFiltered, std::string(filter))
        ->Unit(benchmark::kMicrosecond);
  }
  return true;
}();
BENCHMARK(NotDenied)->Unit(benchmark::kMicrosecond);
BENCHMARK(Denied)->Unit(benchmark::kMicrosecond);
BENCHMARK(Allowed)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace attendant

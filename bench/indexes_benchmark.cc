// All indexes in one table: recall@100, memory, build time, and time of one
// query on one core. Keys are a mixture of 2,000 Gaussian clusters in 128
// dimensions with standard deviation 1 for centres and for keys within a
// cluster, normalised; then the same with norms from 1 to 10; then with queries
// from another mixture. Queries are never keys. All indexes of a set are built
// first, on one thread, and then answer in turn, so that disturbances affect
// all of them; times are medians of the rounds.
//
//   indexes_benchmark [--json FILE] [keys, default 100000] [rounds, default 5]
//       [data, one of the names below]
//
// bench/indexes.py runs it.
#include <faiss/IndexLSH.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/attention/softmax/state.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/kinds/flat_index.h"
#include "core/shortlist/kinds/hnsw_index.h"
#include "core/shortlist/kinds/lsh_index.h"
#include "core/shortlist/kinds/pq_index.h"
#include "core/storage/files/unlinked_files.h"

namespace attendant {
namespace {

constexpr std::int64_t kDim = 128;
constexpr std::int64_t kClusterCount = 2000;
constexpr std::int64_t kQueryCount = 300;
constexpr std::int64_t kShortlistCount = 100;

class NoIds : public IdResolver {
 public:
  absl::string_view IdOf(std::int32_t, RowIndex) const override { return {}; }
};

struct Data {
  std::string name;
  std::vector<float> keys;
  std::vector<float> queries;
  std::vector<std::span<const float>> key_spans;

  std::int64_t key_count() const {
    return static_cast<std::int64_t>(key_spans.size());
  }
};

class Mixture {
 public:
  explicit Mixture(unsigned seed) : random_(seed) {
    centres_.resize(kClusterCount * kDim);
    for (float& component : centres_) component = normal_(random_);
  }
  // Draws rows of norm 1, or of norms spread evenly over [1, norm_spread].
  std::vector<float> Draw(std::int64_t count, float norm_spread = 1) {
    std::uniform_real_distribution<float> norms(1, norm_spread);
    std::vector<float> rows(static_cast<std::size_t>(count * kDim));
    for (std::int64_t r = 0; r < count; ++r) {
      const std::size_t centre = random_() % kClusterCount * kDim;
      float* row = rows.data() + r * kDim;
      for (std::size_t d = 0; d < kDim; ++d) {
        row[d] = centres_[centre + d] + normal_(random_);
      }
      const double wanted = norm_spread > 1 ? norms(random_) : 1;
      const double norm = Norm({row, kDim});
      for (std::size_t d = 0; d < kDim; ++d) {
        row[d] = static_cast<float>(row[d] * wanted / norm);
      }
    }
    return rows;
  }

 private:
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
  std::vector<float> centres_;
};

Data MakeData(const std::string& name, std::int64_t key_count) {
  Mixture mixture(7);
  Data data;
  data.name = name;
  data.keys = mixture.Draw(key_count, name == "norms" ? 10 : 1);
  data.queries = name == "elsewhere" ? Mixture(8).Draw(kQueryCount)
                                     : mixture.Draw(kQueryCount);
  for (std::int64_t r = 0; r < key_count; ++r) {
    data.key_spans.emplace_back(data.keys.data() + r * kDim, kDim);
  }
  return data;
}

double SecondsOf(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

using Shortlists = std::vector<std::vector<RowIndex>>;

struct Run {
  Shortlists shortlists;
  double microseconds = 0;  // per query
  double scored_share = 0;  // share of keys scored
};

Run RunQueries(const Data& data, const KeyIndex& index,
               const ScanGoals& goals) {
  static const NoIds ids;
  Run run;
  std::int64_t scored = 0;
  const double seconds = SecondsOf([&] {
    for (std::int64_t q = 0; q < kQueryCount; ++q) {
      ScanQuery query;
      query.query = {data.queries.data() + q * kDim, kDim};
      query.row_end = static_cast<RowIndex>(data.key_count());
      query.goals = goals;
      AttentionState state(kShortlistCount, &ids);
      const auto stats = index.Scan(query, state);
      if (!stats.ok()) std::abort();
      scored += stats->scored_count;
      std::vector<RowIndex>& rows = run.shortlists.emplace_back();
      for (const Candidate& c : state.top().Sorted()) rows.push_back(c.row);
    }
  });
  run.microseconds = 1e6 * seconds / kQueryCount;
  run.scored_share = static_cast<double>(scored) / kQueryCount /
                     static_cast<double>(data.key_count());
  return run;
}

double RecallOf(const Shortlists& shortlists, const Shortlists& exact) {
  std::int64_t found = 0, wanted = 0;
  for (std::size_t q = 0; q < exact.size(); ++q) {
    const std::set<RowIndex> best(exact[q].begin(), exact[q].end());
    wanted += static_cast<std::int64_t>(best.size());
    for (const RowIndex row : shortlists[q]) {
      found += static_cast<std::int64_t>(best.count(row));
    }
  }
  return static_cast<double>(found) / static_cast<double>(wanted);
}

// An index, and its search effort.
struct Contender {
  std::string index;
  std::string goal;
  double bytes = 0;  // per key
  double build_seconds = 0;
  std::function<Run()> answer;
  std::vector<double> microseconds = {};  // by round
  double recall = 0;
  double scored_share = 0;
};

using Contenders = std::vector<Contender>;
using Builder = std::function<std::unique_ptr<KeyIndex>(const Data&)>;

void Add(const Data& data, const char* name, const Builder& build,
         Contenders& contenders) {
  std::shared_ptr<KeyIndex> index;
  const double build_seconds = SecondsOf([&] { index = build(data); });
  const double bytes = static_cast<double>(index->memory_bytes()) /
                       static_cast<double>(data.key_count());
  const bool is_exact = index->kind() == IndexKind::kFlat;
  // First as the index itself chooses when built; then by the fastest settings
  // for a recall.
  for (const auto& [goal, goals] :
       {std::pair("as built",
                  ScanGoals{.probe_count = index->tuning().probe_count}),
        std::pair("0.95", ScanGoals{.recall = 0.95}),
        std::pair("0.99", ScanGoals{.recall = 0.99})}) {
    contenders.push_back({.index = name,
                          .goal = is_exact ? "exact" : goal,
                          .bytes = bytes,
                          .build_seconds = build_seconds,
                          .answer = [&data, index, goals = goals] {
                            return RunQueries(data, *index, goals);
                          }});
    if (is_exact) break;
  }
}

template <typename T>
std::unique_ptr<KeyIndex> Must(absl::StatusOr<std::unique_ptr<T>> index) {
  if (!index.ok()) {
    std::fprintf(stderr, "%s\n", index.status().ToString().c_str());
    std::abort();
  }
  return *std::move(index);
}

std::unique_ptr<FlatIndex> BuildFlat(const Data& data) {
  auto flat = std::make_unique<FlatIndex>(kDim, data.key_count());
  for (const auto key : data.key_spans) flat->Append(key);
  return flat;
}

constexpr int kLshBits = 256;
constexpr std::int64_t kRescored = 20 * kShortlistCount;

// Answers of FAISS's LSH as they are or, given the keys, with its best
// kRescored rescored.
Run RunFaissLsh(const Data& data, const faiss::IndexLSH& index,
                const FlatIndex* keys) {
  const std::int64_t count = keys != nullptr ? kRescored : kShortlistCount;
  Run run;
  run.scored_share = 1;
  run.shortlists.resize(kQueryCount);
  std::vector<float> distances(static_cast<std::size_t>(count));
  std::vector<std::int64_t> labels(static_cast<std::size_t>(count));
  const double seconds = SecondsOf([&] {
    for (std::int64_t q = 0; q < kQueryCount; ++q) {
      const float* query = data.queries.data() + q * kDim;
      index.search(1, query, count, distances.data(), labels.data());
      std::vector<std::pair<float, RowIndex>> scored;
      for (const std::int64_t label : labels) {
        if (label < 0) continue;
        const auto row = static_cast<RowIndex>(label);
        float similarity = 0;
        if (keys != nullptr) {
          const auto key = keys->Key(row);
          for (std::size_t d = 0; d < kDim; ++d) {
            similarity += key[d] * query[d];
          }
        }
        scored.emplace_back(-similarity, row);
      }
      if (keys != nullptr) std::ranges::sort(scored);
      scored.resize(std::min(scored.size(), std::size_t{kShortlistCount}));
      for (const auto& [_, row] : scored) {
        run.shortlists[q].push_back(row);
      }
    }
  });
  run.microseconds = 1e6 * seconds / kQueryCount;
  return run;
}

// FAISS's own LSH: signs of random projections, compared exhaustively by
// Hamming distance.
void AddFaissLsh(const Data& data, Contenders& contenders) {
  omp_set_num_threads(1);
  const auto index = std::make_shared<faiss::IndexLSH>(kDim, kLshBits);
  const double build_seconds = SecondsOf([&] {
    index->train(data.key_count(), data.keys.data());
    index->add(data.key_count(), data.keys.data());
  });
  const std::shared_ptr<FlatIndex> keys = BuildFlat(data);
  contenders.push_back({.index = "FAISS IndexLSH",
                        .goal = "256 bits",
                        .bytes = kLshBits / 8,
                        .build_seconds = build_seconds,
                        .answer = [&data, index] {
                          return RunFaissLsh(data, *index, nullptr);
                        }});
  contenders.push_back({.index = "FAISS IndexLSH",
                        .goal = "2,000 rescored",
                        .bytes = kLshBits / 8 + 4.0 * kDim,
                        .build_seconds = build_seconds,
                        .answer = [&data, index, keys] {
                          return RunFaissLsh(data, *index, keys.get());
                        }});
}

Contenders MakeContenders(const Data& data) {
  Contenders contenders;
  Add(data, "FLAT", BuildFlat, contenders);
  Add(
      data, "IVF",
      [](const Data& d) {
        return Must(IvfIndex::Build(d.key_spans, kDim, ScoreKind::kDot, {}));
      },
      contenders);
  Add(
      data, "HNSW",
      [](const Data& d) {
        return Must(HnswIndex::Build(d.key_spans, kDim, ScoreKind::kDot, {}));
      },
      contenders);
  Add(
      data, "LSH",
      [](const Data& d) {
        return Must(LshIndex::Build(d.key_spans, kDim, ScoreKind::kDot, {}));
      },
      contenders);
  Add(
      data, "PQ",
      [](const Data& d) {
        return Must(PqIndex::Build(d.key_spans, kDim, ScoreKind::kDot, {}));
      },
      contenders);
  // As with a catalog's keys_on_disk; bytes are those in memory.
  UnlinkedFiles files(std::filesystem::temp_directory_path() /
                      "attendant-indexes-benchmark");
  Add(
      data, "IVF, keys on disk",
      [&files](const Data& d) {
        return Must(IvfIndex::Build(d.key_spans, kDim, ScoreKind::kDot,
                                    {.key_files = &files}));
      },
      contenders);
  Add(
      data, "PQ, keys on disk",
      [&files](const Data& d) {
        return Must(PqIndex::Build(d.key_spans, kDim, ScoreKind::kDot,
                                   {.key_files = &files}));
      },
      contenders);
  AddFaissLsh(data, contenders);
  return contenders;
}

void MeasureAll(const Data& data, int round_count, nlohmann::json& rows) {
  Contenders contenders = MakeContenders(data);
  const Shortlists exact = contenders.front().answer().shortlists;
  for (int round = 0; round < round_count; ++round) {
    for (Contender& contender : contenders) {
      const Run run = contender.answer();
      contender.microseconds.push_back(run.microseconds);
      contender.recall = RecallOf(run.shortlists, exact);
      contender.scored_share = run.scored_share;
    }
  }
  for (const Contender& contender : contenders) {
    std::vector<double> sorted = contender.microseconds;
    std::ranges::sort(sorted);
    std::printf("| %s | %s | %s | %.3f | %.0f | %.3f | %.0f | %.1f |\n",
                data.name.c_str(), contender.index.c_str(),
                contender.goal.c_str(), contender.recall,
                sorted[sorted.size() / 2], contender.scored_share,
                contender.bytes, contender.build_seconds);
    rows.push_back({{"data", data.name},
                    {"keys", data.key_count()},
                    {"index", contender.index},
                    {"goal", contender.goal},
                    {"recall", contender.recall},
                    {"microseconds", contender.microseconds},
                    {"scored_share", contender.scored_share},
                    {"bytes", contender.bytes},
                    {"build_seconds", contender.build_seconds}});
  }
  std::fflush(stdout);
}

int Main(std::vector<std::string> arguments) {
  std::string json_path;
  if (arguments.size() >= 2 && arguments[0] == "--json") {
    json_path = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  arguments.resize(3);
  const std::int64_t key_count =
      arguments[0].empty() ? 100000 : std::atoll(arguments[0].c_str());
  const int round_count =
      arguments[1].empty() ? 5 : std::atoi(arguments[1].c_str());
  if (key_count < 1 || round_count < 1) {
    std::fprintf(stderr, "want counts of keys and of rounds\n");
    return 1;
  }
  std::printf(
      "| data | index | goal | recall@100 | us a query | scored | bytes a key "
      "| build s |\n|---|---|---|---|---|---|---|---|\n");
  nlohmann::json rows = nlohmann::json::array();
  for (const char* name : {"mixture", "norms", "elsewhere"}) {
    if (!arguments[2].empty() && arguments[2] != name) continue;
    MeasureAll(MakeData(name, key_count), round_count, rows);
  }
  if (!json_path.empty()) std::ofstream(json_path) << rows.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  return attendant::Main({argv + 1, argv + argc});
}

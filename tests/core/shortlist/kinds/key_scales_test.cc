// Keys and queries so large or small that their squares overflow or underflow,
// but whose logits are ordinary.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/softmax/score.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/kinds/hnsw_index.h"
#include "core/shortlist/kinds/lsh_index.h"
#include "core/shortlist/kinds/pq_index.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr std::int64_t kScaledKeys = 300;
constexpr std::int64_t kScaledDim = 7;
constexpr std::int64_t kScaledBest = 10;
constexpr double kGreatestLogit = 5;
// Products of floats, and their exps.
constexpr double kScaledRounding = 1e-4;

struct ScaledTruth {
  double log_partition = 0;
  std::vector<double> logits;  // descending
};

ScaledTruth ScaledTruthOf(const KeyTable& table, std::span<const float> query,
                          double factor) {
  ScaledTruth truth;
  double sum = 0;
  for (const std::span<const float> key : table.keys) {
    double product = 0;
    for (std::size_t d = 0; d < key.size(); ++d) {
      product += double{query[d]} * key[d];
    }
    truth.logits.push_back(factor * product);
    sum += std::exp(truth.logits.back());
  }
  std::sort(truth.logits.rbegin(), truth.logits.rend());
  truth.log_partition = std::log(sum);
  return truth;
}

void ExpectTrue(const KeyIndex& index, const ScanQuery& query,
                const ScaledTruth& truth) {
  AttentionState state(kScaledBest, &kNoIds);
  ASSERT_OK_AND_ASSIGN(const ScanStats stats, index.Scan(query, state));
  ASSERT_GT(state.partition().count, 0);
  const double log_partition = *state.partition().LogPartition();
  EXPECT_TRUE(std::isfinite(log_partition));
  EXPECT_TRUE(std::isfinite(*state.partition().Entropy()));
  EXPECT_TRUE(std::isfinite(state.partition().EffectiveCount()));
  if (stats.exact) {
    EXPECT_NEAR(log_partition, truth.log_partition, kScaledRounding);
  }
  if (stats.certified) {
    EXPECT_LE(stats.log_lower, truth.log_partition);
    EXPECT_GE(stats.log_upper, truth.log_partition);
  }
  const std::vector<Candidate> top = state.top().Sorted();
  if (stats.complete) {
    EXPECT_EQ(top.size(), static_cast<std::size_t>(kScaledBest));
  }
  if (!stats.results_exact) return;
  for (std::size_t i = 0; i < top.size(); ++i) {
    EXPECT_NEAR(top[i].logit, truth.logits[i], kScaledRounding);
  }
}

std::vector<std::pair<std::string, std::unique_ptr<KeyIndex>>> IndexesOf(
    const KeyTable& table) {
  std::vector<std::pair<std::string, std::unique_ptr<KeyIndex>>> indexes;
  const auto add = [&](const char* name, auto built) {
    ASSERT_OK(built);
    indexes.emplace_back(name, *std::move(built));
  };
  const ScoreKind kind = ScoreKind::kDot;
  add("IVF", IvfIndex::Build(table.keys, kScaledDim, kind, {.list_count = 30}));
  add("HNSW", HnswIndex::Build(table.keys, kScaledDim, kind, {}));
  add("LSH", LshIndex::Build(table.keys, kScaledDim, kind, {}));
  add("PQ", PqIndex::Build(table.keys, kScaledDim, kind, {}));
  return indexes;
}

// Keys of about the given size, and queries of all sizes that give such logits.
void ExpectTrueFor(float size, float query_size) {
  SCOPED_TRACE(absl::StrCat("keys of ", size, ", query of ", query_size));
  KeyTable table = ClusteredKeys(kScaledKeys, kScaledDim, 20, 5);
  for (float& component : table.floats) component *= size;
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> vector(kScaledDim);
  for (float& component : vector) component = query_size * normal(random);
  const double greatest = [&] {
    const ScaledTruth at_one = ScaledTruthOf(table, vector, 1);
    return std::max(at_one.logits.front(), -at_one.logits.back());
  }();
  const double factor = greatest > 0 ? kGreatestLogit / greatest : 1;
  const ScaledTruth truth = ScaledTruthOf(table, vector, factor);
  for (const auto& [name, index] : IndexesOf(table)) {
    for (const ScanGoals& goals :
         {ScanGoals{}, ScanGoals{.recall = 1}, ScanGoals{.certified = true},
          ScanGoals{.mass_precision = 0.02}}) {
      SCOPED_TRACE(absl::StrCat(name, " recall ", goals.recall, " certified ",
                                goals.certified, " precision ",
                                goals.mass_precision));
      ScanQuery query;
      query.query = vector;
      query.logit_factor = factor;
      query.row_end = static_cast<RowIndex>(kScaledKeys);
      query.goals = goals;
      ExpectTrue(*index, query, truth);
    }
  }
}

TEST(KeyScalesTest, OrdinaryKeys) { ExpectTrueFor(1, 1); }
TEST(KeyScalesTest, GreatKeys) { ExpectTrueFor(1e25f, 1); }
TEST(KeyScalesTest, GreatKeysAndNoQuery) { ExpectTrueFor(1e25f, 0); }
TEST(KeyScalesTest, SmallKeys) { ExpectTrueFor(1e-20f, 1); }
TEST(KeyScalesTest, SmallKeysAndGreatQueries) { ExpectTrueFor(1e-20f, 1e15f); }
TEST(KeyScalesTest, GreatKeysAndSmallQueries) { ExpectTrueFor(1e19f, 1e-18f); }

}  // namespace
}  // namespace attendant

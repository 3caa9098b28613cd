// The groups from which keys may be drawn without scoring all of them, compared
// with the softmax in double precision.
#include "core/shortlist/scan/key_groups.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "core/base/bitmap.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/kinds/flat_index.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr std::int64_t kDim = 16;
constexpr std::int64_t kRows = 20000;
constexpr std::int64_t kKnown = 50;

struct Index {
  Index() : table(ClusteredKeys(kRows, kDim, 50, 4)) {
    ivf = *IvfIndex::Build(table.keys, kDim, ScoreKind::kCosine,
                           {.list_count = 320});
  }

  KeyTable table;
  std::unique_ptr<IvfIndex> ivf;
};

const Index& Keys() {
  static const Index* const index = new Index;
  return *index;
}

std::vector<float> QueryOf(std::int64_t q) {
  const auto key = Keys().table.keys[q * 97 % kRows];
  std::vector<float> query(key.begin(), key.end());
  std::mt19937_64 random(static_cast<std::uint64_t>(q));
  std::normal_distribution<float> normal(0, 0.3f);
  for (float& component : query) component += normal(random);
  const double norm = Norm(query);
  for (float& component : query) {
    component = static_cast<float>(component / norm);
  }
  return query;
}

// A query with its known keys and its groups, and the exact results of all
// rows.
struct Case {
  Case(std::int64_t q, double temperature, const Bitmap* allowed = nullptr,
       const Bitmap* excluded = nullptr)
      : vector(QueryOf(q)), scan(QueryFor(vector, kRows)) {
    scan.score_kind = ScoreKind::kCosine;
    scan.logit_factor = 1 / temperature;
    scan.allowed = allowed;
    scan.excluded = excluded;
    AttentionState state(kKnown, &kNoIds);
    EXPECT_OK(Keys().ivf->Scan(scan, state));
    known = state.top().Sorted();
    groups = Keys().ivf->GroupKeys(scan, known);
    logits.assign(kRows, -std::numeric_limits<double>::infinity());
    for (RowIndex row = 0; row < kRows; ++row) {
      if (allowed != nullptr && !allowed->Test(row)) continue;
      if (excluded != nullptr && excluded->Test(row)) continue;
      const auto key = Keys().table.keys[row];
      double product = 0;
      double square = 0;
      for (std::size_t d = 0; d < kDim; ++d) {
        product += double{key[d]} * vector[d];
        square += double{key[d]} * key[d];
      }
      logits[row] = product / std::sqrt(square) / temperature;
    }
  }

  // Weights of all rows, from known logits and by opening every group.
  std::vector<double> Weights() {
    std::vector<double> weights(kRows);
    for (const Candidate& candidate : known) {
      weights[candidate.row] = std::exp(double{candidate.logit});
    }
    std::vector<RowIndex> rows;
    std::vector<float> log_shares;
    for (std::size_t g = 0; g < groups->groups().size(); ++g) {
      const KeyGroup& group = groups->groups()[g];
      groups->Open(g, rows, log_shares);
      EXPECT_EQ(rows.size(), static_cast<std::size_t>(group.key_count));
      EXPECT_EQ(log_shares.size(), rows.size());
      double sum = 0;
      for (const float log_share : log_shares) sum += std::exp(log_share);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        double& weight = weights[rows[i]];
        EXPECT_EQ(weight, 0) << "row " << rows[i] << " comes twice";
        weight = std::exp(group.log_mass) * std::exp(log_shares[i]) / sum;
        EXPECT_GT(weight, 0);
      }
    }
    return weights;
  }

  // Total variation distance between the weights and the softmax.
  double Distance() {
    const std::vector<double> weights = Weights();
    double weight_sum = 0;
    double exp_sum = 0;
    for (std::size_t r = 0; r < weights.size(); ++r) {
      weight_sum += weights[r];
      exp_sum += std::exp(logits[r]);
    }
    double distance = 0;
    for (std::size_t r = 0; r < weights.size(); ++r) {
      distance +=
          std::abs(weights[r] / weight_sum - std::exp(logits[r]) / exp_sum) / 2;
    }
    return distance;
  }

  // The same distance as stated by the groups.
  double StatedDistance() const {
    double weight = 0;
    double known_weight = 0;
    for (const Candidate& candidate : known) {
      known_weight += std::exp(double{candidate.logit});
    }
    for (const KeyGroup& group : groups->groups()) {
      weight += std::exp(group.log_mass);
    }
    weight += known_weight;
    const double growth = 1 + std::exp(groups->log_shortfall()) / weight;
    return (known_weight * (1 - 1 / growth) +
            std::exp(groups->LogExcess(growth))) /
           weight;
  }

  std::vector<float> vector;
  ScanQuery scan;
  std::vector<Candidate> known;
  std::unique_ptr<KeyGroups> groups;
  std::vector<double> logits;
};

// Expects exactly the eligible rows to have a weight.
void ExpectSupport(Case& c) {
  ASSERT_NE(c.groups, nullptr);
  const std::vector<double> weights = c.Weights();
  for (std::size_t r = 0; r < weights.size(); ++r) {
    ASSERT_EQ(weights[r] > 0, std::isfinite(c.logits[r])) << "row " << r;
  }
}

TEST(KeyGroupsTest, EveryKeyHasAWeight) {
  Case c(1, 0.1);
  ExpectSupport(c);
  // The answer is known without scoring most lists.
  const Case again(1, 0.1);
  EXPECT_LT(again.groups->scored_count(), kRows * 3 / 4);
}

TEST(KeyGroupsTest, NearKeysWeighWhatTheySay) {
  Case c(2, 0.1);
  const std::vector<double> weights = c.Weights();
  std::vector<std::size_t> order(kRows);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return c.logits[a] > c.logits[b];
  });
  for (std::size_t i = 0; i < kKnown; ++i) {
    // Logits up to 10 are floats; applies if the known rows are the best.
    if (c.known[i].row != static_cast<RowIndex>(order[i])) continue;
    EXPECT_NEAR(std::log(weights[order[i]]), c.logits[order[i]], 1e-5);
  }
  // The residual of a key has components of about 1 / sqrt(2 x 16), its scale
  // is their greatest over 120 and an error is the scale over sqrt(12), which
  // the temperature makes 0.01.
  std::vector<double> errors;
  for (std::size_t i = kKnown; i < 300; ++i) {
    errors.push_back(
        std::abs(std::log(weights[order[i]]) - c.logits[order[i]]));
  }
  std::ranges::sort(errors);
  EXPECT_LT(errors[errors.size() / 2], 0.01);
}

// A mask that leaves some lists no keys, and others all.
Bitmap RowsOnOneSide() {
  Bitmap allowed(kRows);
  for (RowIndex row = 0; row < kRows; ++row) {
    if (Keys().table.keys[row][0] > 1) {
      allowed.Set(row);
    }
  }
  return allowed;
}

Bitmap RandomRows(unsigned one_in) {
  Bitmap rows(kRows);
  std::mt19937_64 random(8);
  for (RowIndex row = 0; row < kRows; ++row) {
    if (random() % one_in == 0) rows.Set(row);
  }
  return rows;
}

TEST(KeyGroupsTest, MaskedKeysHaveNoWeight) {
  const Bitmap side = RowsOnOneSide();
  const Bitmap fifth = RandomRows(5);
  const Bitmap few = RandomRows(100);
  for (std::int64_t q = 0; q < 5; ++q) {
    Case filtered(q, 0.2, &side);
    ExpectSupport(filtered);
    EXPECT_LT(filtered.groups->groups().size(), 320);
    // Many masked keys are counted list by list, a few individually.
    Case many_deleted(q, 0.2, nullptr, &fifth);
    ExpectSupport(many_deleted);
    Case few_deleted(q, 0.2, nullptr, &few);
    ExpectSupport(few_deleted);
    ScanQuery invisible = few_deleted.scan;
    invisible.excluded = nullptr;
    invisible.row_end = kRows - 3;
    const auto groups = Keys().ivf->GroupKeys(invisible, {});
    ASSERT_NE(groups, nullptr);
    std::int64_t count = 0;
    for (const KeyGroup& group : groups->groups()) count += group.key_count;
    EXPECT_EQ(count, kRows - 3);
  }
}

TEST(KeyGroupsTest, FewEligibleKeysAreScoredThemselves) {
  const Bitmap few = RandomRows(200);
  const Case c(1, 0.2, &few);
  EXPECT_EQ(c.groups, nullptr);
  const Bitmap none(kRows);
  const Case nothing(1, 0.2, &none);
  EXPECT_EQ(nothing.groups, nullptr);
}

TEST(KeyGroupsTest, WhatCodesCannotSayHasNoGroups) {
  Case c(1, 0.1);
  ScanQuery query = c.scan;
  query.exhaustive = true;
  EXPECT_EQ(Keys().ivf->GroupKeys(query, {}), nullptr);
  query = c.scan;
  query.score_kind = ScoreKind::kDot;
  EXPECT_EQ(Keys().ivf->GroupKeys(query, {}), nullptr);
  query = c.scan;
  query.logit_factor = 1e5;
  EXPECT_EQ(Keys().ivf->GroupKeys(query, {}), nullptr);
  EXPECT_EQ(FlatOf(Keys().table)->GroupKeys(c.scan, {}), nullptr);
}

TEST(KeyGroupsTest, OneQueryHasOneDistribution) {
  Case first(3, 0.1);
  Case between(4, 0.02);
  Case second(3, 0.1);
  // Groups are opened in another order.
  std::vector<RowIndex> rows;
  std::vector<float> log_shares;
  second.groups->Open(second.groups->groups().size() - 1, rows, log_shares);
  const std::vector<double> weights = first.Weights();
  const std::vector<double> again = second.Weights();
  EXPECT_EQ(std::memcmp(weights.data(), again.data(),
                        weights.size() * sizeof(double)),
            0);
  EXPECT_EQ(first.StatedDistance(), second.StatedDistance());
  EXPECT_NE(first.StatedDistance(), between.StatedDistance());
}

// Of 40 distances that each hold with 95 %, fewer than 34 hold once in 295
// times.
void ExpectDistancesHold(double temperature, const Bitmap* allowed,
                         const Bitmap* excluded) {
  constexpr std::int64_t kCount = 40;
  std::int64_t held = 0;
  double stated_sum = 0;
  for (std::int64_t q = 0; q < kCount; ++q) {
    Case c(q, temperature, allowed, excluded);
    ASSERT_NE(c.groups, nullptr);
    const double stated = c.StatedDistance();
    if (c.Distance() <= stated) ++held;
    stated_sum += stated;
  }
  EXPECT_GE(held, 34) << temperature;
  // A stated distance of 1 would always hold.
  EXPECT_LE(stated_sum / kCount, 0.2) << temperature;
}

TEST(KeyGroupsTest, StatedDistancesHold) {
  for (const double temperature : {0.5, 0.2, 0.1, 0.05, 0.02}) {
    ExpectDistancesHold(temperature, nullptr, nullptr);
  }
}

TEST(KeyGroupsTest, StatedDistancesHoldWhereKeysAreMasked) {
  const Bitmap side = RowsOnOneSide();
  const Bitmap fifth = RandomRows(5);
  for (const double temperature : {0.2, 0.05}) {
    ExpectDistancesHold(temperature, &side, nullptr);
    ExpectDistancesHold(temperature, nullptr, &fifth);
  }
}

}  // namespace
}  // namespace attendant

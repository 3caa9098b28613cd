// SAMPLE over a catalog with an index: which items are drawn, and what the
// answer states about the draw.
#include "core/catalog/query/draw_rows.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/catalog/filter/parse_filter.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/support/chi_square.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

class DrawRowsTest : public CatalogFixture {
 protected:
  static constexpr int kCount = 4000;
  static constexpr int kDim = 8;

  void Open() { Open(ClusteredItems()); }
  void Open(std::vector<Item> items) {
    disk_ = std::make_shared<FakeDisk>();
    CatalogSchema schema = OneFieldSchema(kDim, ScoreKind::kCosine);
    schema.key_fields[0].index_kind = IndexKind::kIvf;
    schema.attributes.push_back({"side", AttributeType::kBool});
    OpenCatalog(schema);
    for (Item& item : items) {
      item.attributes.push_back({0, item.keys[0][0] > 0});
    }
    Upsert(items);
    catalog_->AwaitIndexes();
    ASSERT_OK(catalog_->merge_status());
    ASSERT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
  }

  // Random items in groups, each around one of its members, so that a query
  // finds its best items in few lists.
  static std::vector<Item> ClusteredItems() {
    constexpr int kTogether = 50;
    constexpr float kSpread = 0.5f;
    std::vector<Item> items = RandomItems(kCount, kDim, 11);
    for (int i = 0; i < kCount; ++i) {
      const int centre = i / kTogether * kTogether;
      if (i == centre) continue;
      for (int d = 0; d < kDim; ++d) {
        float& component = items[i].keys[0][d];
        component = kSpread * component + items[centre].keys[0][d];
      }
    }
    return items;
  }

  static AttendQuery Query(std::int64_t count, std::int64_t seed) {
    AttendQuery query = VectorQuery(RandomItems(1, kDim, 12)[0].keys[0]);
    query.select_kind = SelectKind::kSample;
    query.omit_pooled_value = true;
    query.temperature = 0.2;
    query.result_count = count;
    query.shortlist_count = std::max<std::int64_t>(count, 100);
    query.seed = seed;
    return query;
  }

  using Weights = std::map<std::string, double>;

  // Weights of the distribution drawn from, obtained by drawing everything.
  Weights Drawn(AttendQuery query) {
    query.result_count = 10000;
    query.shortlist_count = 10000;
    const auto snapshot = catalog_->snapshot();
    Weights weights;
    const absl::StatusOr<DrawnRows> drawn = DrawAll(*snapshot, query);
    EXPECT_OK(drawn);
    if (!drawn.ok()) return weights;
    // Each draw's weight is its share of what the earlier draws left, which is
    // summed from the last draw.
    double log_left = 0;
    for (std::size_t d = 0; d < drawn->rows.size(); ++d) {
      const RowAddress row = drawn->rows[d];
      const double log_weight = drawn->slate.draws[d].log_weight;
      weights[std::string(snapshot->IdOf(row.segment, row.row))] =
          std::exp(log_left + log_weight);
      log_left += std::log1p(-std::exp(log_weight));
    }
    return weights;
  }

  // Softmax weights of all eligible items.
  Weights Softmax(AttendQuery query) {
    query.select_kind = SelectKind::kSoft;
    query.seed = std::nullopt;
    query.scan_mode = ScanMode::kExact;
    query.weight_scope = WeightScope::kCatalog;
    query.result_count = 10000;
    query.shortlist_count = 10000;
    Weights weights;
    const absl::StatusOr<AttendAnswer> answer = Ask(query);
    EXPECT_OK(answer);
    if (!answer.ok()) return weights;
    const std::vector<std::string> ids = IdsOf(*answer);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      weights[ids[i]] = answer->items[i].weight;
    }
    return weights;
  }

  // Draws everything with the knowledge of a query for few items: a shortlist
  // of everything would know every logit.
  absl::StatusOr<DrawnRows> DrawAll(const Snapshot& snapshot,
                                    const AttendQuery& query) {
    AttendQuery soft = query;
    soft.select_kind = SelectKind::kSoft;
    soft.seed = std::nullopt;
    soft.result_count = 100;
    soft.shortlist_count = 100;
    ATTENDANT_ASSIGN_OR_RETURN(const AttendAnswer answer,
                               Attend(snapshot, soft, Interrupt()));
    std::vector<Candidate> known;
    for (const AttendedItem& item : answer.items) {
      known.push_back({item.logit, item.similarity, item.address.segment,
                       item.address.row});
    }
    ATTENDANT_ASSIGN_OR_RETURN(const QueryPlan plan,
                               PlanQuery(snapshot, query, Interrupt()));
    return DrawRows(snapshot, plan, known, Interrupt());
  }

  static double DistanceOf(const Weights& a, const Weights& b) {
    double distance = 0;
    for (const auto& [id, weight] : a) {
      const auto found = b.find(id);
      distance += std::abs(weight - (found == b.end() ? 0 : found->second)) / 2;
    }
    return distance;
  }

  // Of 30 statements that each hold with 95 %, fewer than 25 hold once in 305
  // times.
  void ExpectStatedDistancesHold() {
    int held = 0;
    for (const double temperature : {0.5, 0.2, 0.1}) {
      for (const Item& other : RandomItems(10, kDim, 77)) {
        AttendQuery query = Query(10, 3);
        query.temperature = temperature;
        query.query = other.keys[0];
        ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
        const double distance = DistanceOf(Drawn(query), Softmax(query));
        EXPECT_GT(distance, 1e-6);  // otherwise it would be exact
        if (distance <= answer.slate->distance) ++held;
      }
    }
    EXPECT_GE(held, 25);
  }
};

// P-value of the outcomes' counts, with rare outcomes pooled.
double PValueOf(const std::map<std::string, double>& weights,
                const std::map<std::string, double>& counts, double total) {
  std::vector<double> probabilities = {0};
  std::vector<double> pooled = {0};
  for (const auto& [id, weight] : weights) {
    const auto found = counts.find(id);
    const double count = found == counts.end() ? 0 : found->second;
    if (weight * total < 5) {
      probabilities[0] += weight;
      pooled[0] += count;
    } else {
      probabilities.push_back(weight);
      pooled.push_back(count);
    }
  }
  return ChiSquarePValue(probabilities, pooled);
}

TEST_F(DrawRowsTest, ProbabilitiesSumToOneAndAreThoseOfEachDraw) {
  Open();
  const AttendQuery query = Query(10, 1);
  const Weights drawn = Drawn(query);
  ASSERT_EQ(drawn.size(), kCount);
  double sum = 0;
  for (const auto& [id, weight] : drawn) sum += weight;
  // Products of up to 4,000 factors.
  EXPECT_NEAR(sum, 1, 4000 * 0x1p-50);
  for (std::int64_t seed = 0; seed < 50; ++seed) {
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(Query(10, seed)));
    const std::vector<std::string> ids = IdsOf(answer);
    ASSERT_EQ(ids.size(), 10);
    double left = 1;
    double log_probability = 0;
    for (std::size_t d = 0; d < ids.size(); ++d) {
      const double weight = drawn.at(ids[d]);
      ASSERT_NEAR(*answer.items[d].log_weight, std::log(weight / left), 1e-9);
      const double log_inclusion =
          *answer.items[d].log_inclusion_given_threshold;
      ASSERT_NEAR(std::exp(log_inclusion),
                  1 - std::exp(-weight * std::exp(-*answer.slate->kappa)),
                  1e-9);
      log_probability += std::log(weight / left);
      left -= weight;
    }
    ASSERT_NEAR(answer.slate->log_probability, log_probability, 1e-8);
    // Most keys were not scored.
    EXPECT_LT(answer.scored_count, kCount);
    EXPECT_FALSE(answer.complete);
    EXPECT_EQ(answer.slate->scope, WeightScope::kCatalog);
  }
}

TEST_F(DrawRowsTest, DrawsComeAsOftenAsTheySay) {
  Open();
  constexpr int kSlates = 4000;
  const Weights drawn = Drawn(Query(1, 1));
  Weights first;
  Weights second;
  for (int seed = 0; seed < kSlates; ++seed) {
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(Query(2, seed)));
    const std::vector<std::string> ids = IdsOf(answer);
    ++first[ids[0]];
    ++second[ids[1]];
  }
  EXPECT_GT(PValueOf(drawn, first, kSlates), kMinPValue);
  // The second draw is y after some x: q_y sum over x of q_x / (1 - q_x).
  double odds = 0;
  for (const auto& [id, weight] : drawn) odds += weight / (1 - weight);
  Weights of_second;
  for (const auto& [id, weight] : drawn) {
    of_second[id] = weight * (odds - weight / (1 - weight));
  }
  EXPECT_GT(PValueOf(of_second, second, kSlates), kMinPValue);

  Weights counts;
  for (std::int64_t seed = 0; seed < 40; ++seed) {
    AttendQuery query = Query(100, seed);
    query.with_replacement = true;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    const std::vector<std::string> ids = IdsOf(answer);
    for (std::size_t d = 0; d < ids.size(); ++d) {
      ++counts[ids[d]];
      ASSERT_NEAR(*answer.items[d].log_weight, std::log(drawn.at(ids[d])),
                  1e-9);
    }
  }
  EXPECT_GT(PValueOf(drawn, counts, 4000), kMinPValue);
}

TEST_F(DrawRowsTest, FirstDrawsAreAsNearToTheSoftmaxAsStated) {
  Open();
  constexpr int kSlates = 2000;
  constexpr std::size_t kBins = 20;
  const Weights softmax = Softmax(Query(1, 1));
  // Bins of about equal probability, the heaviest items first.
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [id, weight] : softmax) order.push_back({-weight, id});
  std::ranges::sort(order);
  std::map<std::string, std::size_t> bins;
  std::vector<double> probabilities(kBins);
  double before = 0;
  for (const auto& [weight, id] : order) {
    const auto bin =
        std::min(kBins - 1, static_cast<std::size_t>(before * double{kBins}));
    bins[id] = bin;
    probabilities[bin] -= weight;
    before -= weight;
  }
  std::vector<double> counts(kBins);
  double distance = 0;
  for (int seed = 0; seed < kSlates; ++seed) {
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(Query(1, seed)));
    ++counts[bins.at(IdsOf(answer)[0])];
    distance = answer.slate->distance;
  }
  EXPECT_GT(distance, 0);
  EXPECT_LT(distance, 0.15);
  double statistic = 0;
  double least = 1;
  for (std::size_t b = 0; b < kBins; ++b) {
    const double want = kSlates * probabilities[b];
    statistic += (counts[b] - want) * (counts[b] - want) / want;
    least = std::min(least, probabilities[b]);
  }
  // Probabilities at this distance make the statistic a noncentral chi-square
  // variable; the sum of squares of their differences is at most 2 distance^2.
  // Four deviations above its mean.
  const double noncentrality = kSlates * 2 * distance * distance / least;
  const double degrees = kBins - 1;
  EXPECT_LT(statistic, degrees + noncentrality +
                           4 * std::sqrt(2 * (degrees + 2 * noncentrality)));
}

TEST_F(DrawRowsTest, StatedDistancesHold) {
  Open();
  ExpectStatedDistancesHold();
}

// Codes of equal keys err alike, so their errors don't average out: 200
// different keys, 20 times each.
TEST_F(DrawRowsTest, StatedDistancesHoldWhereKeysRepeat) {
  std::vector<Item> items = RandomItems(kCount, kDim, 11);
  for (std::size_t i = 200; i < items.size(); ++i) {
    items[i].keys = items[i % 200].keys;
  }
  Open(std::move(items));
  ExpectStatedDistancesHold();
}

TEST_F(DrawRowsTest, OnlyEligibleItemsAreDrawnWhereverTheyLie) {
  Open();
  // Deleted, replaced, new and denied items, and a filter.
  std::vector<std::string> deleted;
  for (int i = 0; i < kCount; i += 5) {
    deleted.push_back("item" + std::to_string(i));
  }
  Delete(deleted);
  std::vector<Item> added = RandomItems(20, kDim, 99);
  for (int i = 0; i < 20; ++i) {
    Item& item = added[i];
    item.id = i < 10 ? "new" + std::to_string(i) : "item" + std::to_string(i);
    item.attributes.push_back({0, true});
  }
  Upsert(added);
  AttendQuery query = Query(10, 1);
  ASSERT_OK_AND_ASSIGN(query.filter, ParseFilter("side = true", schema_));
  query.deny_list = {"new1", "item1"};
  const Weights softmax = Softmax(query);
  const Weights drawn = Drawn(query);
  ASSERT_EQ(drawn.size(), softmax.size());
  double sum = 0;
  for (const auto& [id, weight] : drawn) {
    EXPECT_TRUE(softmax.contains(id)) << id;
    sum += weight;
  }
  EXPECT_NEAR(sum, 1, 4000 * 0x1p-50);
  EXPECT_TRUE(drawn.contains("new0"));
  EXPECT_FALSE(drawn.contains("new1"));
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_LE(DistanceOf(drawn, softmax), answer.slate->distance);
  EXPECT_EQ(answer.eligible_count, static_cast<std::int64_t>(softmax.size()));
}

TEST_F(DrawRowsTest, SeedRepeatsADrawAndASmallerCountIsItsPrefix) {
  Open();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer long_answer, Ask(Query(10, 7)));
  const std::vector<std::string> ids = IdsOf(long_answer);
  for (const std::int64_t count : {1, 5, 10}) {
    // The shortlists are the same, and so are the distributions drawn from.
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(Query(count, 7)));
    EXPECT_EQ(IdsOf(answer), std::vector(ids.begin(), ids.begin() + count));
    EXPECT_NEAR(answer.slate->distance, long_answer.slate->distance, 1e-12);
  }
  ASSERT_OK_AND_ASSIGN(const AttendAnswer other, Ask(Query(10, 8)));
  EXPECT_NE(IdsOf(other), ids);
}

TEST_F(DrawRowsTest, WhatIsScoredWholeIsTheSoftmax) {
  Open();
  AttendQuery query = Query(10, 7);
  query.scan_mode = ScanMode::kIndex;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer by_index, Ask(query));
  EXPECT_GT(by_index.slate->distance, 0);
  const auto exact = [&](const AttendQuery& asked) {
    const absl::StatusOr<AttendAnswer> answer = Ask(asked);
    EXPECT_OK(answer);
    return answer.ok() && answer->slate->distance == 0;
  };
  query.scan_mode = ScanMode::kExact;
  EXPECT_TRUE(exact(query));
  query.scan_mode = ScanMode::kAuto;
  query.mass_method = MassMethod::kExact;
  EXPECT_TRUE(exact(query));
  query.mass_method = std::nullopt;
  query.weight_scope = WeightScope::kShortlist;
  EXPECT_TRUE(exact(query));
  // A few allowed items are all scored individually, in every segment.
  query.weight_scope = std::nullopt;
  query.allow_list.emplace();
  for (int i = 0; i < 30; ++i) {
    query.allow_list->push_back("item" + std::to_string(i));
  }
  EXPECT_TRUE(exact(query));
}

TEST_F(DrawRowsTest, AnIndexWithoutGroupsScoresEveryKey) {
  CatalogSchema schema = OneFieldSchema(kDim, ScoreKind::kCosine);
  schema.key_fields[0].index_kind = IndexKind::kFlat;
  OpenCatalog(schema);
  Upsert(RandomItems(300, kDim, 11));
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(Query(10, 1)));
  EXPECT_EQ(answer.slate->distance, 0);
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(answer.log_partition_interval->method, MassMethod::kExact);
}

TEST_F(DrawRowsTest, DrawingStopsWhenCancelled) {
  Open();
  const auto snapshot = catalog_->snapshot();
  const AttendQuery query = Query(10, 1);
  ASSERT_OK_AND_ASSIGN(const QueryPlan plan,
                       PlanQuery(*snapshot, query, Interrupt()));
  const std::atomic<bool> cancelled = true;
  Interrupt gone;
  gone.cancelled = &cancelled;
  EXPECT_THAT(DrawRows(*snapshot, plan, {}, gone).status(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
}

}  // namespace
}  // namespace attendant

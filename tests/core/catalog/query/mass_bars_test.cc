// What answers over an IVF index state about the catalog's attention, under the
// requirements of bench/mass: compared with exact sums in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/softmax/log_add.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/kinds/lsh_index.h"
#include "core/shortlist/kinds/pq_index.h"
#include "tests/core/catalog/catalog_fixture.h"

namespace attendant {
namespace {

constexpr int kDim = 16;
constexpr int kItems = 12000;
// Enough items that a sum to a precision is taken from codes.
constexpr int kManyItems = 24000;
constexpr int kClusters = 150;
constexpr int kQueryCount = 60;
// Logits are floats of about 1 / temperature in size.
constexpr double kTemperatures[] = {0.1, 0.05};
constexpr double kRounding = 0x1p-20 / 0.05;
// Of 120 statements that each hold with 95 %, fewer than 106 hold once in 1,000
// times.
constexpr int kAnswers = kQueryCount * 2;
constexpr int kMinHeld = 106;

// One query at one temperature, and its exact results.
struct Case {
  std::vector<float> query;
  double temperature = 1;
  std::vector<double> weights;  // by row
  std::vector<double> masses;   // mass of the best i + 1 rows
  double log_partition = 0;
  double entropy = 0;
  double effective_count = 0;

  double MassOf(const AttendAnswer& answer) const {
    double mass = 0;
    for (const AttendedItem& item : answer.items) {
      mass += weights[item.address.row];
    }
    return mass;
  }
  std::size_t SmallestSet(double mass) const {
    const auto found = std::lower_bound(masses.begin(), masses.end(), mass);
    return static_cast<std::size_t>(found - masses.begin()) + 1;
  }
};

// Items under an index, and queries like them.
struct Catalog {
  Catalog(IndexKind kind, int item_count)
      : Catalog(kind, item_count, item_count) {}
  // `distinct_count` of the keys are different.
  Catalog(IndexKind kind, int item_count, int distinct_count) {
    std::mt19937_64 random(5);
    std::normal_distribution<float> normal;
    std::vector<float> centres(kClusters * kDim);
    for (float& component : centres) component = normal(random);
    const auto draw = [&](int cluster) {
      std::vector<float> vector(kDim);
      for (int d = 0; d < kDim; ++d) {
        vector[d] = centres[cluster * kDim + d] + normal(random);
      }
      const double norm = Norm(vector);
      for (float& x : vector) x = static_cast<float>(x / norm);
      return vector;
    };
    auto rows = std::make_shared<RowTable>(0, item_count);
    std::vector<std::vector<float>> vectors;
    for (int i = 0; i < item_count; ++i) {
      vectors.push_back(i < distinct_count ? draw(i % kClusters)
                                           : vectors[i % distinct_count]);
      rows->Append(std::to_string(i), {}, {});
    }
    const std::vector<std::span<const float>> keys(vectors.begin(),
                                                   vectors.end());
    auto segment = std::make_shared<Segment>();
    segment->rows = std::move(rows);
    segment->indexes.push_back(Build(kind, keys));
    segment->head_indexes.resize(1);
    snapshot.schema = std::make_shared<CatalogSchema>(OneFieldSchema(kDim));
    snapshot.encoders.resize(1);
    snapshot.models.resize(1);
    snapshot.wanted_indexes = {kind};
    SegmentView view;
    view.segment = std::move(segment);
    view.row_end = item_count;
    view.live_count = item_count;
    view.live_key_counts = {item_count};
    snapshot.segments.push_back(std::move(view));
    for (int q = 0; q < kQueryCount; ++q) {
      for (const double temperature : kTemperatures) {
        Case& c = cases.emplace_back();
        c.query = draw(q);
        c.temperature = temperature;
        Solve(keys, c);
      }
    }
  }

  static std::unique_ptr<KeyIndex> Build(
      IndexKind kind, const std::vector<std::span<const float>>& keys) {
    switch (kind) {
      case IndexKind::kLsh:
        return LshIndex::Build(keys, kDim, ScoreKind::kDot, {}).value();
      case IndexKind::kPq:
        return PqIndex::Build(keys, kDim, ScoreKind::kDot, {}).value();
      default:
        return IvfIndex::Build(keys, kDim, ScoreKind::kDot, {}).value();
    }
  }

  static void Round(std::vector<float>& vector) {
    constexpr float kSteps = 16;
    for (float& x : vector) x = std::round(kSteps * x) / kSteps;
  }

  static void Solve(const std::vector<std::span<const float>>& keys, Case& c) {
    double sum = 0;
    for (const std::span<const float> key : keys) {
      double product = 0;
      for (std::size_t d = 0; d < kDim; ++d)
        product += double{c.query[d]} * key[d];
      c.weights.push_back(std::exp(product / c.temperature));
      sum += c.weights.back();
    }
    double square_sum = 0;
    for (double& weight : c.weights) {
      weight /= sum;
      c.entropy -= weight * std::log(weight);
      square_sum += weight * weight;
    }
    c.effective_count = 1 / square_sum;
    c.masses = c.weights;
    std::ranges::sort(c.masses, std::greater<>());
    std::partial_sum(c.masses.begin(), c.masses.end(), c.masses.begin());
    c.log_partition = std::log(sum);
  }

  AttendAnswer AskFor(const Case& c, AttendQuery query) const {
    query.query = c.query;
    query.temperature = c.temperature;
    query.omit_pooled_value = true;
    absl::StatusOr<AttendAnswer> answer = Attend(snapshot, query, Interrupt());
    EXPECT_OK(answer);
    return *std::move(answer);
  }

  Snapshot snapshot;
  std::vector<Case> cases;
};

const Catalog& Items() {
  static const Catalog* const catalog = new Catalog(IndexKind::kIvf, kItems);
  return *catalog;
}

const Catalog& ManyItems() {
  static const Catalog* const catalog =
      new Catalog(IndexKind::kIvf, kManyItems);
  return *catalog;
}

// Few distinct keys: equal keys err alike, and the codes hold all of them.
const Catalog& FewKeys() {
  static const Catalog* const catalog =
      new Catalog(IndexKind::kPq, kManyItems, 30);
  return *catalog;
}

// Summary of all cases' answers to `query`.
struct Tally {
  int held = 0;           // by log_partition_interval
  int returned_held = 0;  // by returned_mass
  int entropy_held = 0;
  int count_held = 0;  // by effective_item_count_interval
  int exact = 0;
  std::vector<double> errors;  // ascending
  std::vector<double> widths;
  std::vector<double> entropy_errors;
  std::vector<double> entropy_widths;
  std::vector<double> count_errors;  // of logs
  std::vector<double> count_widths;
};

bool Holds(const Interval& interval, double number, double slack) {
  return interval.lower_bound <= number + slack &&
         number - slack <= interval.upper_bound;
}

double Percentile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(
      share * static_cast<double>(sorted.size() - 1))];
}

Tally Count(const AttendQuery& query, double slack,
            const Catalog& catalog = Items()) {
  Tally tally;
  for (const Case& c : catalog.cases) {
    const AttendAnswer answer = catalog.AskFor(c, query);
    const Interval& interval = *answer.log_partition_interval;
    const double mass = c.MassOf(answer);
    if (interval.method == MassMethod::kExact) ++tally.exact;
    if (Holds(interval, c.log_partition, slack)) ++tally.held;
    const Interval& entropy = *answer.entropy_interval;
    const Interval& count = *answer.effective_item_count_interval;
    if (Holds(entropy, c.entropy, slack)) ++tally.entropy_held;
    if (Holds(count, c.effective_count, slack * c.effective_count)) {
      ++tally.count_held;
    }
    tally.entropy_errors.push_back(std::abs(*answer.entropy - c.entropy));
    tally.entropy_widths.push_back(entropy.upper_bound - entropy.lower_bound);
    tally.count_errors.push_back(
        std::abs(std::log(*answer.effective_item_count / c.effective_count)));
    tally.count_widths.push_back(
        std::log(count.upper_bound / count.lower_bound));
    if (answer.returned_mass.lower_bound <= mass * (1 + kRounding) &&
        mass * (1 - kRounding) <= answer.returned_mass.upper_bound) {
      ++tally.returned_held;
    }
    tally.errors.push_back(std::abs(*answer.log_partition - c.log_partition));
    tally.widths.push_back(interval.upper_bound - interval.lower_bound);
  }
  std::ranges::sort(tally.errors);
  for (std::vector<double>* numbers :
       {&tally.widths, &tally.entropy_errors, &tally.entropy_widths,
        &tally.count_errors, &tally.count_widths}) {
    std::sort(numbers->begin(), numbers->end());
  }
  return tally;
}

TEST(MassBarsTest, UnstatedPrecisionIsWhatIsSaid) {
  const Tally tally = Count({}, kRounding);
  EXPECT_GE(tally.held, kMinHeld);
  EXPECT_GE(tally.returned_held, kMinHeld);
  EXPECT_GE(tally.entropy_held, kMinHeld);
  EXPECT_GE(tally.count_held, kMinHeld);
  EXPECT_EQ(tally.exact, 0);
  EXPECT_LE(Percentile(tally.widths, 0.5), 4 * Percentile(tally.errors, 0.95));
  // Of the keys that were not scored only the lists are known.
  EXPECT_LE(Percentile(tally.entropy_errors, 0.95), 0.2);
  EXPECT_LE(Percentile(tally.count_errors, 0.95), 0.2);
}

TEST(MassBarsTest, StatedPrecisionIsReached) {
  for (const double precision : {0.1, 0.02, 0.002}) {
    SCOPED_TRACE(precision);
    AttendQuery query;
    query.mass_precision = precision;
    const Tally tally = Count(query, kRounding, ManyItems());
    EXPECT_GE(tally.held, kMinHeld);
    EXPECT_GE(tally.returned_held, kMinHeld);
    EXPECT_GE(tally.entropy_held, kMinHeld);
    EXPECT_GE(tally.count_held, kMinHeld);
    EXPECT_EQ(tally.exact, 0);
    EXPECT_LE(Percentile(tally.errors, 0.95), precision);
    EXPECT_LE(tally.errors.back(), 5 * precision);
    EXPECT_LE(Percentile(tally.entropy_widths, 0.5),
              4 * Percentile(tally.entropy_errors, 0.95));
    EXPECT_LE(Percentile(tally.count_widths, 0.5),
              4 * Percentile(tally.count_errors, 0.95));
  }
}

// What draws reveal about the sum of exps, they reveal about the logits too.
TEST(MassBarsTest, StatedPrecisionOfEqualKeysIsReached) {
  for (const double precision : {0.02, 0.001}) {
    AttendQuery query;
    query.mass_precision = precision;
    const Tally tally = Count(query, kRounding, FewKeys());
    EXPECT_GE(tally.held, kMinHeld);
    EXPECT_GE(tally.entropy_held, kMinHeld);
    EXPECT_GE(tally.count_held, kMinHeld);
    EXPECT_LT(tally.exact, kAnswers / 2);
  }
}

// Equal keys recur at equal distances: draws must not fall into step with them.
TEST(MassBarsTest, IntervalsHoldWhereKeysRecur) {
  const Catalog recurring(IndexKind::kPq, kManyItems, 1000);
  AttendQuery query;
  query.mass_precision = 0.02;
  const Tally tally = Count(query, kRounding, recurring);
  EXPECT_GE(tally.held, kMinHeld);
  EXPECT_GE(tally.returned_held, kMinHeld);
  EXPECT_GE(tally.entropy_held, kMinHeld);
  EXPECT_GE(tally.count_held, kMinHeld);
  EXPECT_EQ(tally.exact, 0);
}

// An index without lists can't estimate the mass, so a stated method reads its
// codes.
TEST(MassBarsTest, AStatedEstimateIsFromCodesWhereThereAreNoLists) {
  const Catalog hashed(IndexKind::kLsh, kManyItems);
  const Case& c = hashed.cases.front();
  AttendQuery query;
  query.scan_mode = ScanMode::kIndex;
  query.probe_count = 50;
  EXPECT_EQ(hashed.AskFor(c, query).returned_mass.method, MassMethod::kUnknown);
  query.mass_method = MassMethod::kEstimate;
  const AttendAnswer answer = hashed.AskFor(c, query);
  EXPECT_EQ(answer.log_partition_interval->method, MassMethod::kEstimate);
  EXPECT_NEAR(*answer.log_partition, c.log_partition, 0.02);
}

// Codes of keys that equal their lists' means have no error, so no precision is
// too small for them.
TEST(MassBarsTest, NoPrecisionIsTooSmall) {
  const Catalog means(IndexKind::kIvf, kManyItems, 8);
  for (const double precision : {1e-160, 1e-200, 1e-300}) {
    AttendQuery query;
    query.mass_precision = precision;
    for (const Catalog* catalog : {&means, &FewKeys(), &ManyItems()}) {
      const Case& c = catalog->cases.front();
      const AttendAnswer answer = catalog->AskFor(c, query);
      EXPECT_NEAR(*answer.log_partition, c.log_partition, kRounding);
      EXPECT_NEAR(*answer.entropy, c.entropy, kRounding);
    }
  }
}

TEST(MassBarsTest, BoundsNeverFail) {
  AttendQuery query;
  query.mass_method = MassMethod::kBound;
  // No slack: bounds account for rounding.
  const Tally tally = Count(query, 0);
  EXPECT_EQ(tally.held, kAnswers);
  EXPECT_EQ(tally.returned_held, kAnswers);
  EXPECT_EQ(tally.entropy_held, kAnswers);
  EXPECT_EQ(tally.count_held, kAnswers);
  EXPECT_LE(Percentile(tally.widths, 0.5), 1);
}

// The exactly scored part is nearly everything, so codes leave no slack for its
// rounding.
TEST(MassBarsTest, BoundsKnowHowExactLogitsAreRounded) {
  constexpr float kTimes = 4;
  Snapshot snapshot = Items().snapshot;
  auto index = std::make_shared<FlatIndex>(kDim, kQueryCount);
  auto rows = std::make_shared<RowTable>(0, kQueryCount);
  std::vector<std::vector<float>> keys;
  for (int i = 0; i < kQueryCount; ++i) {
    std::vector<float>& key = keys.emplace_back(Items().cases[2 * i].query);
    for (float& component : key) component *= kTimes;
    index->Append(key);
    rows->Append("growing " + std::to_string(i), {}, {});
  }
  auto segment = std::make_shared<Segment>();
  segment->rows = std::move(rows);
  segment->indexes.push_back(std::move(index));
  segment->head_indexes.resize(1);
  snapshot.segments.push_back({.segment = std::move(segment),
                               .row_end = kQueryCount,
                               .live_count = kQueryCount,
                               .live_key_counts = {kQueryCount}});
  AttendQuery query;
  query.omit_pooled_value = true;
  query.mass_method = MassMethod::kBound;
  for (const Case& c : Items().cases) {
    double log_partition = c.log_partition;
    for (const std::vector<float>& key : keys) {
      double product = 0;
      for (std::size_t d = 0; d < kDim; ++d) {
        product += double{c.query[d]} * key[d];
      }
      log_partition = LogAdd(log_partition, product / c.temperature);
    }
    query.query = c.query;
    query.temperature = c.temperature;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer,
                         Attend(snapshot, query, Interrupt()));
    const Interval& interval = *answer.log_partition_interval;
    EXPECT_EQ(interval.method, MassMethod::kBound);
    EXPECT_LE(interval.lower_bound, log_partition);
    EXPECT_GE(interval.upper_bound, log_partition);
    EXPECT_LE(interval.upper_bound - interval.lower_bound, 0.01);
  }
}

TEST(MassBarsTest, MinMassIsHeldByFewItemsMoreThanItTakes) {
  for (const double mass : {0.5, 0.8, 0.9, 0.95, 0.99}) {
    AttendQuery query;
    query.min_mass = mass;
    query.result_count = 3000;
    int held = 0;
    int exact = 0;
    int reachable = 0;
    std::vector<double> ratios;
    for (const Case& c : Items().cases) {
      const AttendAnswer answer = Items().AskFor(c, query);
      if (answer.returned_mass.method == MassMethod::kExact) ++exact;
      const std::size_t smallest = c.SmallestSet(mass);
      if (smallest > 3000) {
        EXPECT_EQ(answer.limit_reason, LimitReason::kResultCap);
        continue;
      }
      ++reachable;
      if (c.MassOf(answer) >= mass) ++held;
      ratios.push_back(static_cast<double>(answer.items.size()) /
                       static_cast<double>(smallest));
    }
    ASSERT_GE(reachable, kQueryCount) << mass;
    EXPECT_GE(held, kMinHeld * reachable / kAnswers) << mass;
    std::ranges::sort(ratios);
    EXPECT_LE(Percentile(ratios, 0.5), mass > 0.9 ? 1.25 : 1.1) << mass;
    // Answered from codes, not from all floats.
    EXPECT_LE(exact, kAnswers / 2) << mass;
  }
}

}  // namespace
}  // namespace attendant

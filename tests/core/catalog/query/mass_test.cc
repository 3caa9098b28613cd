// What an answer states about the catalog's attention when scans only estimate
// it.
#include "core/catalog/query/mass.h"

#include <cmath>
#include <limits>
#include <random>

#include "core/base/status.h"
#include "tests/core/catalog/catalog_fixture.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A scan of two logits of 0 that estimates the sum with this deviation.
HeadScan Guess(double deviation) {
  HeadScan scan;
  scan.partition = {.count = 2, .max = 0, .sum = 2, .sum_square = 2};
  scan.complete = scan.exact = scan.certified = false;
  scan.log_variance = 2 * std::log(deviation);
  return scan;
}

TEST(MassTest, SmallDeviationsAreNormal) {
  const PartitionError error = ErrorOf(Guess(0.002), false);
  EXPECT_EQ(error.method, MassMethod::kEstimate);
  // r = 0.001; the next term of its series is r^2 / 2.
  EXPECT_NEAR(error.above, 1.96e-3, 1e-6);
  EXPECT_EQ(error.below, -error.above);
  EXPECT_EQ(error.most(), error.above);
}

TEST(MassTest, EstimateCoversLogNormalErrorsOfAnySize) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  constexpr int kDraws = 4000;
  for (const double r : {0.01, 0.3, 1.0, 5.0}) {
    const double error = ErrorOf(Guess(2 * r), false).above;
    const double sigma = std::sqrt(std::log1p(r * r));
    int unbiased = 0;   // estimates whose mean is the sum
    int posterior = 0;  // sums whose mean is the estimate
    for (int i = 0; i < kDraws; ++i) {
      const double off = sigma * normal(random) - sigma * sigma / 2;
      unbiased += std::abs(off) <= error ? 1 : 0;
      posterior += std::abs(-off) <= error ? 1 : 0;
    }
    // 95 % less four deviations of a share of 4,000: 1.4 %.
    EXPECT_GE(unbiased, 0.936 * kDraws) << r;
    EXPECT_GE(posterior, 0.936 * kDraws) << r;
  }
  EXPECT_TRUE(std::isfinite(ErrorOf(Guess(1e300), false).above));
}

TEST(MassTest, MethodIsTheBestThatIsKnown) {
  HeadScan scan = Guess(0.5);
  scan.certified = true;
  scan.log_lower = std::log(1.9);
  scan.log_upper = std::log(4);
  const PartitionError bounds = ErrorOf(scan, true);
  EXPECT_EQ(bounds.method, MassMethod::kBound);
  EXPECT_NEAR(bounds.below, std::log(0.95), 1e-12);
  EXPECT_NEAR(bounds.above, std::log(2), 1e-12);
  // An estimate is no wider than the certain bounds.
  const PartitionError estimate = ErrorOf(scan, false);
  EXPECT_EQ(estimate.method, MassMethod::kEstimate);
  EXPECT_EQ(estimate.below, bounds.below);
  EXPECT_LT(estimate.above, bounds.above);
  scan.knows_mass = false;
  EXPECT_EQ(ErrorOf(scan, false).method, MassMethod::kBound);
  scan.certified = false;
  EXPECT_EQ(ErrorOf(scan, true).method, MassMethod::kUnknown);
  scan.exact = true;
  EXPECT_EQ(ErrorOf(scan, true).method, MassMethod::kExact);
  EXPECT_EQ(ErrorOf(scan, true).most(), 0);
}

TEST(MassTest, PartitionIsNoLessThanWhatWasScoredExactly) {
  const PartitionError wide = {MassMethod::kEstimate, -3, 3};
  const LogPartition guess = {0, std::log(2)};
  const PartitionError error = NotBelow(wide, guess, {0, std::log(1.5)});
  EXPECT_NEAR(error.below, std::log(0.75), 1e-12);
  EXPECT_EQ(error.above, 3);
  EXPECT_EQ(NotBelow(wide, guess, {0, std::log(2.5)}).below, 0);
  EXPECT_EQ(NotBelow(wide, guess, {}).below, -3);
  // Floats whose sum matches the stated one prove nothing.
  const PartitionError bounds = {MassMethod::kBound, -0.1, 0.1};
  EXPECT_EQ(NotBelow(bounds, guess, {0, std::log(2)}).below, -0.1);
}

TEST(MassTest, SharesComeWithTheirInterval) {
  const double root = std::log(2);
  const MassReader masses(
      {{0, std::log(10)}, {5, 0}, {}},
      {{MassMethod::kBound, -root, root}, {MassMethod::kExact, 0, 0}, {}},
      {1, 1, 1});
  const LogPartitions part = {{0, std::log(4)}, {5, std::log(0.5)}, {}};
  const Mass mass = masses.InHead(part, 0);
  EXPECT_EQ(mass.method, MassMethod::kBound);
  EXPECT_NEAR(mass.value, 0.4, 1e-12);
  EXPECT_NEAR(mass.lower_bound, 0.2, 1e-12);
  EXPECT_NEAR(mass.upper_bound, 0.8, 1e-12);
  EXPECT_EQ(masses.InHead({{0, std::log(8)}, {}, {}}, 0).upper_bound, 1);
  EXPECT_NEAR(masses.Greatest()[0].log_sum, std::log(20), 1e-12);
  // A head of unknown mass makes the mean unknown.
  EXPECT_EQ(masses.MeanOf(part).method, MassMethod::kUnknown);
  const MassReader two(
      {{0, std::log(10)}, {5, 0}},
      {{MassMethod::kBound, -root, root}, {MassMethod::kExact, 0, 0}}, {1, 1});
  const Mass mean = two.MeanOf({part[0], part[1]});
  EXPECT_EQ(mean.method, MassMethod::kEstimate);
  EXPECT_NEAR(mean.value, 0.45, 1e-12);
  EXPECT_NEAR(mean.lower_bound, 0.35, 1e-12);
  EXPECT_NEAR(mean.upper_bound, 0.65, 1e-12);
}

// An index that reports a preset estimate for the keys it scores.
class GuessingIndex : public KeyIndex {
 public:
  explicit GuessingIndex(std::shared_ptr<const KeyIndex> index)
      : index_(std::move(index)) {}

  IndexKind kind() const override { return IndexKind::kIvf; }
  std::int64_t dim() const override { return index_->dim(); }
  std::span<const float> Key(RowIndex row) const override {
    return index_->Key(row);
  }
  std::uint64_t Keyed(std::int64_t w, std::uint64_t rows) const override {
    return index_->Keyed(w, rows);
  }
  float inverse_norm(RowIndex row) const override {
    return index_->inverse_norm(row);
  }
  double max_norm() const override { return index_->max_norm(); }
  absl::StatusOr<ScanStats> Scan(const ScanQuery& query,
                                 AttentionState& state) const override {
    goals = query.goals;
    ++(query.exhaustive ? exhaustive_count : scan_count);
    ATTENDANT_ASSIGN_OR_RETURN(const ScanStats stats,
                               index_->Scan(query, state));
    if (query.exhaustive) return stats;
    ScanStats told = says;
    told.scored_count = stats.scored_count;
    return told;
  }
  MemoryParts memory() const override { return index_->memory(); }

  ScanStats says;
  mutable ScanGoals goals;  // goals of the last scan
  mutable int scan_count = 0;
  mutable int exhaustive_count = 0;

 private:
  const std::shared_ptr<const KeyIndex> index_;
};

class GuessedMassTest : public CatalogFixture {
 protected:
  // Item n < 9 weighs in proportion to n + 1 for the query {1}: the sum is 45.
  void SetUp() override {
    CatalogSchema schema = OneFieldSchema(1);
    // Not AUTO, which would be asked for more.
    schema.key_fields[0].index_kind = IndexKind::kIvf;
    OpenCatalog(schema);
    std::vector<Item> items;
    for (int n = 0; n < 9; ++n) {
      items.push_back(MakeItem("item" + std::to_string(n),
                               {static_cast<float>(std::log(n + 1.0))}));
    }
    Upsert(items);
    snapshot_ = *catalog_->snapshot();
    ASSERT_EQ(snapshot_.segments.size(), 1U);
    auto segment = std::make_shared<Segment>(*snapshot_.segments[0].segment);
    index_ = std::make_shared<GuessingIndex>(segment->indexes[0]);
    segment->indexes[0] = index_;
    snapshot_.segments[0].segment = std::move(segment);
  }

  static ScanStats Estimate(double deviation) {
    return {.knows_mass = true, .log_variance = 2 * std::log(deviation)};
  }
  static ScanStats Bounds(double lower, double upper) {
    return {.complete = true,
            .knows_mass = true,
            .log_variance = std::log(1e-6),
            .certified = true,
            .log_lower = std::log(lower),
            .log_upper = std::log(upper)};
  }

  absl::StatusOr<AttendAnswer> AskGuessing(const AttendQuery& query) {
    return Attend(snapshot_, query, Interrupt());
  }
  static AttendQuery TopTwo() {
    AttendQuery query = VectorQuery({1});
    query.result_count = 2;
    query.shortlist_count = 5;
    query.pool_scope = WeightScope::kShortlist;
    return query;
  }

  Snapshot snapshot_;
  std::shared_ptr<GuessingIndex> index_;
};

TEST_F(GuessedMassTest, EstimateSaysItsInterval) {
  index_->says = Estimate(0.45);  // 1 % of 45
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, AskGuessing(TopTwo()));
  EXPECT_NEAR(*answer.log_partition, std::log(45), 1e-6);
  EXPECT_EQ(answer.log_partition_interval->method, MassMethod::kEstimate);
  EXPECT_NEAR(answer.log_partition_interval->upper_bound, std::log(45) + 0.0196,
              1e-4);
  EXPECT_NEAR(answer.log_partition_interval->lower_bound, std::log(45) - 0.0196,
              1e-4);
  // 9 + 8 of 45.
  EXPECT_EQ(answer.returned_mass.method, MassMethod::kEstimate);
  EXPECT_NEAR(answer.returned_mass.value, 17.0 / 45, 1e-6);
  EXPECT_NEAR(answer.returned_mass.lower_bound, 17.0 / 45 * 0.9806, 1e-4);
  EXPECT_NEAR(answer.returned_mass.upper_bound, 17.0 / 45 * 1.0198, 1e-4);
  EXPECT_NEAR(answer.shortlist_mass.value, 35.0 / 45, 1e-6);
  EXPECT_FALSE(answer.complete);
  EXPECT_EQ(answer.entropy_interval->method, MassMethod::kEstimate);
  EXPECT_FALSE(answer.results_exact);
  EXPECT_EQ(index_->goals.mass_precision, 0);
}

TEST_F(GuessedMassTest, BoundSaysItsBounds) {
  index_->says = Bounds(40, 60);
  AttendQuery query = TopTwo();
  query.mass_method = MassMethod::kBound;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, AskGuessing(query));
  EXPECT_TRUE(index_->goals.certified);
  EXPECT_EQ(answer.log_partition_interval->method, MassMethod::kBound);
  EXPECT_NEAR(answer.log_partition_interval->lower_bound, std::log(40), 1e-9);
  EXPECT_NEAR(answer.log_partition_interval->upper_bound, std::log(60), 1e-9);
  EXPECT_EQ(answer.returned_mass.method, MassMethod::kBound);
  EXPECT_NEAR(answer.returned_mass.lower_bound, 17.0 / 60, 1e-6);
  EXPECT_NEAR(answer.returned_mass.upper_bound, 17.0 / 40, 1e-6);
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(answer.entropy_interval->method, MassMethod::kBound);
  // A query that this does not certify is scored exhaustively.
  index_->says = Estimate(1);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer exact, AskGuessing(query));
  EXPECT_EQ(exact.returned_mass.method, MassMethod::kExact);
}

TEST_F(GuessedMassTest, SegmentsAddTheirVariancesAndBounds) {
  // The same items once more, in a segment that is scored exactly: 90 in all.
  snapshot_.segments.push_back(catalog_->snapshot()->segments[0]);
  index_->says = Estimate(0.9);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, AskGuessing(TopTwo()));
  EXPECT_NEAR(*answer.log_partition, std::log(90), 1e-6);
  EXPECT_NEAR(answer.log_partition_interval->upper_bound, std::log(90) + 0.0196,
              1e-4);
  AttendQuery query = TopTwo();
  query.mass_method = MassMethod::kBound;
  index_->says = Bounds(40, 60);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer bound, AskGuessing(query));
  // The exact half adds 90 roundings of its logits, which are at most log 9,
  // and the roundings of sums.
  const double rounding = 90 * 0x1p-24 * std::log(9) + 0x1p-18;
  const Interval& interval = *bound.log_partition_interval;
  EXPECT_NEAR(interval.lower_bound, std::log(85), rounding);
  EXPECT_LT(interval.lower_bound, std::log(85));
  EXPECT_NEAR(interval.upper_bound, std::log(105), rounding);
}

TEST_F(GuessedMassTest, CatalogWeightsTakeWhatPrecisionTheRequestStates) {
  AttendQuery query = TopTwo();
  query.weight_scope = WeightScope::kCatalog;
  index_->says = Estimate(0.45);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, AskGuessing(query));
  EXPECT_EQ(index_->goals.mass_precision, 0.02);
  EXPECT_EQ(index_->exhaustive_count, 0);
  EXPECT_NEAR(answer.items[0].weight, 9.0 / 45, 1e-6);
  EXPECT_EQ(answer.returned_mass.method, MassMethod::kEstimate);
  // If the mass is unknown or less precise than asked for, every key is scored.
  query.mass_precision = 0.01;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer precise, AskGuessing(query));
  EXPECT_EQ(index_->exhaustive_count, 1);
  EXPECT_EQ(precise.returned_mass.method, MassMethod::kExact);
  EXPECT_EQ(precise.scored_count, 18);
  index_->says = ScanStats();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer unknown, AskGuessing(query));
  EXPECT_EQ(unknown.returned_mass.method, MassMethod::kExact);
  query.scan_mode = ScanMode::kIndex;
  EXPECT_THAT(AskGuessing(query),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("does not know the mass")));
}

TEST_F(GuessedMassTest, AStatedEstimateIsNeverUnknown) {
  AttendQuery query = TopTwo();
  index_->says = ScanStats();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer unstated, AskGuessing(query));
  EXPECT_EQ(unstated.returned_mass.method, MassMethod::kUnknown);
  query.mass_method = MassMethod::kEstimate;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer stated, AskGuessing(query));
  EXPECT_EQ(stated.returned_mass.method, MassMethod::kExact);
  EXPECT_EQ(index_->exhaustive_count, 1);
  query.scan_mode = ScanMode::kIndex;
  EXPECT_THAT(AskGuessing(query),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("does not know the mass")));
  // Without a stated precision any estimate is accepted.
  index_->says = Estimate(45);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer vague, AskGuessing(query));
  EXPECT_EQ(vague.returned_mass.method, MassMethod::kEstimate);
}

TEST_F(GuessedMassTest, AFailureTellsHowFarItCame) {
  AttendQuery query = TopTwo();
  query.mass_precision = 0.01;
  query.scan_mode = ScanMode::kIndex;
  index_->says = ScanStats();
  const Interrupt interrupt;
  AttendTrace trace;
  const AttendTask task = {&query, &interrupt, &trace};
  EXPECT_THAT(
      AttendTogether(snapshot_, {&task, 1}).front(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("mass")));
  EXPECT_EQ(trace.scans.size(), 1U);
  EXPECT_GT(trace.plan_duration, absl::ZeroDuration());
  EXPECT_GT(trace.scan_duration, absl::ZeroDuration());
  EXPECT_EQ(trace.answer_duration, absl::ZeroDuration());
}

TEST_F(GuessedMassTest, MinMassHoldsAtTheGreatestPartition) {
  // 9 + 8 + 7 + 6 = 30 of 45 is 0.667, but of 45.9 no more than 0.654.
  AttendQuery query = VectorQuery({1});
  query.min_mass = 0.66;
  query.omit_pooled_value = true;
  index_->says = Estimate(0.45);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer sure, AskGuessing(query));
  EXPECT_EQ(sure.items.size(), 5U);
  EXPECT_GE(sure.returned_mass.lower_bound, 0.66);
  EXPECT_EQ(sure.limit_reason, LimitReason::kNone);
  index_->says = Estimate(1e-6);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer known, AskGuessing(query));
  EXPECT_EQ(known.items.size(), 4U);
  query.result_count = 3;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer capped, AskGuessing(query));
  EXPECT_EQ(capped.limit_reason, LimitReason::kResultCap);
  // To return nearly all of the mass, nearly all of it must be known.
  query.min_mass = 0.99;
  ASSERT_OK(AskGuessing(query));
  EXPECT_NEAR(index_->goals.mass_precision, 0.0025, 1e-9);
}

TEST_F(GuessedMassTest, RecallOfOneIsProvenOrScoredWhole) {
  AttendQuery query = TopTwo();
  query.recall = 1;
  index_->says = Estimate(1);
  index_->says.results_exact = true;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer proven, AskGuessing(query));
  EXPECT_TRUE(proven.results_exact);
  EXPECT_EQ(index_->exhaustive_count, 0);
  EXPECT_EQ(index_->goals.recall, 1);
  index_->says.results_exact = false;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer whole, AskGuessing(query));
  EXPECT_TRUE(whole.results_exact);
  EXPECT_EQ(index_->exhaustive_count, 1);
}

TEST_F(GuessedMassTest, ExactMethodScoresEveryKey) {
  AttendQuery query = TopTwo();
  query.mass_method = MassMethod::kExact;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, AskGuessing(query));
  EXPECT_EQ(index_->exhaustive_count, 1);
  EXPECT_EQ(index_->scan_count, 0);
  EXPECT_EQ(answer.returned_mass.method, MassMethod::kExact);
  EXPECT_EQ(answer.log_partition_interval->method, MassMethod::kExact);
  EXPECT_EQ(answer.log_partition_interval->lower_bound, *answer.log_partition);
}

TEST_F(GuessedMassTest, GoalsOutOfRangeAreRefusedByName) {
  const auto refused = [&](auto spoil, const char* field) {
    AttendQuery query = TopTwo();
    spoil(query);
    EXPECT_THAT(AskGuessing(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                             ::testing::StartsWith(field)));
  };
  for (const double recall : {0.0, -1.0, 1.01, std::nan("")}) {
    refused([&](AttendQuery& query) { query.recall = recall; }, "recall");
  }
  for (const double precision : {0.0, -1.0, kInfinity, std::nan("")}) {
    refused([&](AttendQuery& query) { query.mass_precision = precision; },
            "mass_precision");
  }
  refused([](AttendQuery& query) { query.probe_count = 0; }, "probe_count");
  refused(
      [](AttendQuery& query) {
        query.probe_count = 8;
        query.recall = 0.9;
      },
      "probe_count");
  refused(
      [](AttendQuery& query) {
        query.probe_count = 8;
        query.scan_mode = ScanMode::kExact;
      },
      "probe_count: got 8, want nothing with scan_mode EXACT");
  refused(
      [](AttendQuery& query) {
        query.probe_count = 8;
        query.allow_list = {"a"};
      },
      "probe_count: got 8, want nothing with allow_list");
  refused([](AttendQuery& query) { query.mass_method = MassMethod::kUnknown; },
          "mass_method");
  refused(
      [](AttendQuery& query) {
        query = VectorQuery({1});
        query.activation_kind = ActivationKind::kSigmoid;
        query.mass_method = MassMethod::kBound;
      },
      "mass_method: got BOUND");
}

}  // namespace
}  // namespace attendant

// What a scan by codes promises: returned logits are exact, statements about
// the sums hold, and other queries in the pass change nothing.
#include "core/shortlist/passes/code_scan.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "core/attention/softmax/log_add.h"
#include "core/base/bitmap.h"
#include "core/base/interrupt.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/ivf/list_index.h"
#include "core/shortlist/passes/code_pass.h"
#include "core/shortlist/passes/list_scratch.h"
#include "core/shortlist/scan/dead_keys.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr std::int64_t kDim = 64;
// Enough rows that a proof reads some lists by 8 bits and the others by 4.
constexpr std::int64_t kRows = 24000;
constexpr std::int64_t kQueries = 24;
constexpr std::int64_t kK = 40;

// Keys of norm 1, or with norms spread tenfold.
struct Data {
  // If share < 1, each key is moved towards one of the first 240 so that this
  // share of the distance is left. `distinct` keys are different; the first 8
  // of these occur often.
  explicit Data(float norm_spread, float share = 1,
                std::int64_t distinct = kRows,
                ScoreKind score_kind = ScoreKind::kDot)
      : kind(score_kind) {
    table = ClusteredKeys(kRows + kQueries, kDim, 60, 8);
    for (std::int64_t r = distinct; r < kRows; ++r) {
      std::copy_n(table.floats.data() + r % 8 * kDim, kDim,
                  table.floats.data() + r * kDim);
    }
    for (std::int64_t i = 0; share < 1 && i < kRows + kQueries; ++i) {
      for (std::int64_t d = 0; d < kDim; ++d) {
        float& component = table.floats[i * kDim + d];
        component =
            share * component + (1 - share) * table.floats[i % 240 * kDim + d];
      }
    }
    std::mt19937_64 random(9);
    std::uniform_real_distribution<float> factor(1 / norm_spread, 1);
    for (std::int64_t r = 0; r < table.row_count(); ++r) {
      float* key = table.floats.data() + r * kDim;
      const double norm = Norm({key, static_cast<std::size_t>(kDim)});
      const double f = (norm_spread > 1 ? factor(random) : 1) / norm;
      for (std::int64_t d = 0; d < kDim; ++d) {
        key[d] = static_cast<float>(key[d] * f);
      }
    }
    auto built = IvfIndex::Build(
        std::span<const std::span<const float>>(table.keys).first(kRows), kDim,
        kind, {.list_count = 96, .target_recall = 0.95});
    index = *std::move(built);
  }

  std::span<const float> Query(std::int64_t q) const {
    return table.keys[kRows + q];
  }

  ScoreKind kind;
  KeyTable table;
  std::unique_ptr<IvfIndex> index;
};

const Data& Plain() {
  static const Data* const data = new Data(1);
  return *data;
}
const Data& Spread() {
  static const Data* const data = new Data(10);
  return *data;
}

ScanQuery QueryAt(const Data& data, std::int64_t q, double temperature) {
  ScanQuery query = QueryFor(data.Query(q), kRows);
  query.logit_factor = 1 / temperature;
  query.score_kind = data.kind;
  return query;
}

struct Answer {
  ScanStats stats;
  SoftmaxPartition partition;
  std::vector<Candidate> top;
};

Answer AnswerOf(const Data& data, const ScanQuery& query, std::int64_t k = kK) {
  AttentionState state(k, &kNoIds);
  const auto stats = data.index->Scan(query, state);
  EXPECT_OK(stats);
  return {*stats, state.partition(), state.top().Sorted()};
}

// In double precision, by plain loops.
double TrueLogPartition(const Data& data, const ScanQuery& query) {
  double max = -1e300;
  std::vector<double> logits;
  for (RowIndex row = 0; row < kRows; ++row) {
    if (query.allowed != nullptr && !query.allowed->Test(row)) continue;
    double sum = 0;
    for (std::size_t d = 0; d < kDim; ++d) {
      sum += double{query.query[d]} * data.table.keys[row][d];
    }
    logits.push_back(sum * query.logit_factor);
    max = std::max(max, logits.back());
  }
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - max);
  return max + std::log(sum);
}

class CodeScanTest : public ::testing::TestWithParam<bool> {
 protected:
  const Data& data() const { return GetParam() ? Spread() : Plain(); }
};

TEST_P(CodeScanTest, BoundsHoldAndTheBestAreProven) {
  for (const double temperature : {0.2, 0.1, 0.05, 0.02}) {
    for (std::int64_t q = 0; q < kQueries; ++q) {
      ScanQuery query = QueryAt(data(), q, temperature);
      query.goals.certified = true;
      const Answer answer = AnswerOf(data(), query);
      ASSERT_TRUE(answer.stats.certified);
      ASSERT_TRUE(answer.stats.complete);
      ASSERT_FALSE(answer.stats.exact);
      ASSERT_TRUE(answer.stats.results_exact);
      const double truth = TrueLogPartition(data(), query);
      EXPECT_LE(answer.stats.log_lower, truth);
      EXPECT_GE(answer.stats.log_upper, truth);
      if (temperature == 0.1) {
        EXPECT_LT(answer.stats.log_upper - answer.stats.log_lower, 0.5);
      }
      query.exhaustive = true;
      const Answer exact = AnswerOf(data(), query);
      ASSERT_TRUE(exact.stats.exact);
      ASSERT_EQ(RowsOf(answer.top), RowsOf(exact.top));
      for (std::size_t i = 0; i < exact.top.size(); ++i) {
        EXPECT_EQ(answer.top[i].logit, exact.top[i].logit);
        EXPECT_EQ(answer.top[i].similarity, exact.top[i].similarity);
      }
    }
  }
}

// Over all rows, and over what a mask leaves of them.
TEST_P(CodeScanTest, WithoutBoundsTheBestAreProvenToo) {
  Bitmap most(kRows);
  for (RowIndex row = 0; row < kRows; ++row) {
    if (row % 5 != 0) most.Set(row);
  }
  for (const Bitmap* allowed : {static_cast<const Bitmap*>(nullptr),
                                static_cast<const Bitmap*>(&most)}) {
    for (const double temperature : {0.2, 0.1, 0.05, 0.02}) {
      int covered = 0;
      double squares = 0;  // of errors, in deviations
      for (std::int64_t q = 0; q < kQueries; ++q) {
        ScanQuery query = QueryAt(data(), q, temperature);
        if (allowed != nullptr) {
          query.allowed = allowed;
          query.eligible_count = kRows / 5 * 4;
        }
        query.goals.recall = 1;
        const Answer answer = AnswerOf(data(), query);
        ASSERT_FALSE(answer.stats.certified);
        ASSERT_FALSE(answer.stats.exact);
        ASSERT_TRUE(answer.stats.results_exact);
        const double log_partition = *answer.partition.LogPartition();
        const double error =
            std::abs(log_partition - TrueLogPartition(data(), query));
        EXPECT_LE(error, 0.003) << temperature;
        const double deviation =
            std::exp(0.5 * LogAdd(answer.stats.log_variance,
                                  answer.stats.log_drawn_variance) -
                     log_partition);
        covered += error <= 1.96 * deviation ? 1 : 0;
        squares += std::pow(error / deviation, 2);
        query.exhaustive = true;
        const Answer exact = AnswerOf(data(), query);
        ASSERT_EQ(answer.partition.count, exact.partition.count);
        ASSERT_EQ(RowsOf(answer.top), RowsOf(exact.top));
        for (std::size_t i = 0; i < exact.top.size(); ++i) {
          EXPECT_EQ(answer.top[i].logit, exact.top[i].logit);
        }
      }
      // Of 24 intervals that hold 95 % each, fewer than 19 hold once in 1,000.
      EXPECT_GE(covered, 19) << temperature;
      // The intervals are not too wide either: root mean square errors were .53
      // to 1.1 deviations.
      EXPECT_GE(std::sqrt(squares / kQueries), 0.35) << temperature;
    }
  }
}

// Clusters are so tight that most lists can hold none of the best keys, and
// hardly any mass.
const Data& Tight() {
  static const Data* const data = new Data(1, 0.3f);
  return *data;
}
const Data& TightAndSpread() {
  static const Data* const data = new Data(2, 0.3f);
  return *data;
}
const Data& TightCosine() {
  static const Data* const data = new Data(10, 0.3f, kRows, ScoreKind::kCosine);
  return *data;
}

void ExpectProofsWithoutFarLists(const Data& data) {
  constexpr std::int64_t kListCount = 96;
  Bitmap gone(kRows);
  const std::unique_ptr<DeadKeys> dead = data.index->NoneDead();
  for (RowIndex row = 0; row < kRows; row += 7) {
    gone.Set(row);
    data.index->Kill(row, *dead);
  }
  for (const bool masked : {false, true}) {
    for (const double temperature : {0.1, 0.05, 0.02}) {
      int covered = 0;
      std::int64_t read = 0;
      for (std::int64_t q = 0; q < kQueries; ++q) {
        ScanQuery query = QueryAt(data, q, temperature);
        if (masked) {
          query.excluded = &gone;
          query.dead = dead.get();
          query.eligible_count = kRows - (kRows + 6) / 7;
        }
        query.exhaustive = true;
        const Answer exact = AnswerOf(data, query);
        query.exhaustive = false;
        query.goals.recall = 1;
        const Answer answer = AnswerOf(data, query);
        read += answer.stats.visited_list_count;
        ASSERT_TRUE(answer.stats.results_exact);
        ASSERT_TRUE(answer.stats.knows_mass);
        EXPECT_EQ(answer.stats.complete,
                  answer.stats.visited_list_count == kListCount);
        EXPECT_EQ(answer.stats.scored_count == exact.partition.count,
                  answer.stats.complete);
        ASSERT_EQ(answer.partition.count, exact.partition.count);
        ASSERT_EQ(RowsOf(answer.top), RowsOf(exact.top));
        for (std::size_t i = 0; i < exact.top.size(); ++i) {
          EXPECT_EQ(answer.top[i].logit, exact.top[i].logit);
        }
        const double log_partition = *answer.partition.LogPartition();
        const double error =
            std::abs(log_partition - *exact.partition.LogPartition());
        EXPECT_LE(error, 0.003) << temperature;
        const double deviation =
            std::exp(0.5 * answer.stats.log_variance - log_partition);
        covered += error <= 1.96 * deviation ? 1 : 0;
      }
      // Of 24 intervals that hold 95 % each, fewer than 19 hold once in 1,000.
      EXPECT_GE(covered, 19) << temperature;
      if (temperature < 0.1) {
        EXPECT_LT(read, kQueries * kListCount * 7 / 8) << temperature;
      }
    }
  }
}

// Over all rows, and beside dead ones.
TEST(FarListsTest, AProofNeedNotReadThem) {
  for (const Data* data : {&Tight(), &TightAndSpread(), &TightCosine()}) {
    ExpectProofsWithoutFarLists(*data);
  }
}

// A key of a list that is left out may be hardly lighter than the best, unless
// the k-th best bounds it, so k of 1 leaves out less.
TEST(FarListsTest, OneBestIsProvenToo) {
  for (const double temperature : {0.1, 0.05}) {
    for (std::int64_t q = 0; q < kQueries; ++q) {
      ScanQuery query = QueryAt(Tight(), q, temperature);
      query.exhaustive = true;
      const Answer exact = AnswerOf(Tight(), query, 1);
      query.exhaustive = false;
      query.goals.recall = 1;
      const Answer answer = AnswerOf(Tight(), query, 1);
      ASSERT_EQ(RowsOf(answer.top), RowsOf(exact.top));
      EXPECT_NEAR(*answer.partition.LogPartition(),
                  *exact.partition.LogPartition(), 0.003);
    }
  }
}

TEST(FarListsTest, FewerAreLeftOutForAStatedPrecision) {
  ScanQuery query = QueryAt(Tight(), 1, 0.1);
  query.goals.recall = 1;
  std::int64_t read = 0;
  for (const double precision : {0.1, 0.001, 0.0001, 0.00000001}) {
    query.goals.mass_precision = precision;
    const Answer answer = AnswerOf(Tight(), query);
    EXPECT_GE(answer.stats.visited_list_count, read);
    read = answer.stats.visited_list_count;
    if (answer.stats.far) {
      EXPECT_LE(answer.stats.far->log_most,
                *answer.partition.LogPartition() + std::log(precision));
    }
  }
  EXPECT_EQ(read, 96);
}

// Unless it is not known which keys of them are eligible.
TEST(FarListsTest, AreReadUnderAMask) {
  Bitmap most(kRows);
  for (RowIndex row = 0; row < kRows; ++row) {
    if (row % 5 != 0) most.Set(row);
  }
  ScanQuery query = QueryAt(Tight(), 1, 0.05);
  query.goals.recall = 1;
  ASSERT_FALSE(AnswerOf(Tight(), query).stats.complete);
  query.allowed = &most;
  query.eligible_count = kRows / 5 * 4;
  EXPECT_TRUE(AnswerOf(Tight(), query).stats.complete);
}

// For a query far from every key, thousands of keys lie about the margin of
// what is kept. Keys whose codes err upwards are kept; the others are left to
// codes, which understate their weight.
TEST_P(CodeScanTest, AProofIsNotBiasedByWhichKeysItKeeps) {
  constexpr int kDirections = 100;
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> direction(kDim);
  for (const double temperature : {0.2, 0.1, 0.05}) {
    int covered = 0;
    double sum = 0;  // of errors, in deviations
    for (int q = 0; q < kDirections; ++q) {
      for (float& component : direction) component = normal(random);
      const double norm = Norm(direction);
      ScanQuery query = QueryFor(direction, kRows);
      query.logit_factor = 1 / (temperature * norm);
      query.goals.recall = 1;
      const Answer answer = AnswerOf(data(), query);
      ASSERT_FALSE(answer.stats.exact);
      const double log_partition = *answer.partition.LogPartition();
      const double error = log_partition - TrueLogPartition(data(), query);
      const double deviation =
          std::exp(0.5 * answer.stats.log_variance - log_partition);
      covered += std::abs(error) <= 1.96 * deviation ? 1 : 0;
      sum += error / deviation;
    }
    // Of 100 intervals that hold 95 % each, fewer than 88 hold once in 1,000.
    EXPECT_GE(covered, 88) << temperature;
    // The errors of the different directions are independent: their mean is
    // within .33.
    EXPECT_LE(std::abs(sum / kDirections), 0.33) << temperature;
  }
}

TEST_P(CodeScanTest, AStatedPrecisionHolds) {
  for (const double temperature : {0.2, 0.1, 0.05, 0.02}) {
    std::vector<double> errors;
    int covered = 0;
    for (std::int64_t q = 0; q < kQueries; ++q) {
      ScanQuery query = QueryAt(data(), q, temperature);
      query.goals.mass_precision = 0.02;
      const Answer answer = AnswerOf(data(), query);
      ASSERT_TRUE(answer.stats.complete);
      ASSERT_TRUE(answer.stats.knows_mass);
      ASSERT_FALSE(answer.stats.exact);
      ASSERT_EQ(answer.stats.scored_count, kRows);
      errors.push_back(std::abs(*answer.partition.LogPartition() -
                                TrueLogPartition(data(), query)));
      const double deviation =
          std::exp(0.5 * LogAdd(answer.stats.log_variance,
                                answer.stats.log_drawn_variance) -
                   *answer.partition.LogPartition());
      covered += errors.back() <= 1.96 * deviation ? 1 : 0;
      // Otherwise all floats would be read.
      EXPECT_LE(1.96 * deviation, 0.02) << temperature;
    }
    // Of 24 intervals that hold 95 % each, fewer than 19 hold once in 1,000.
    EXPECT_GE(covered, 19) << temperature;
    std::ranges::sort(errors);
    EXPECT_LE(errors[kQueries * 95 / 100], 0.02) << temperature;
    EXPECT_LE(errors.back(), 0.1) << temperature;
  }
}

// 4 bits would need more draws than the maximum.
TEST_P(CodeScanTest, AFinePrecisionHolds) {
  for (const double temperature : {0.2, 0.1}) {
    std::vector<double> errors;
    for (std::int64_t q = 0; q < kQueries; ++q) {
      ScanQuery query = QueryAt(data(), q, temperature);
      query.goals.mass_precision = 0.0002;
      const Answer answer = AnswerOf(data(), query);
      ASSERT_FALSE(answer.stats.exact);
      const double log_partition = *answer.partition.LogPartition();
      errors.push_back(
          std::abs(log_partition - TrueLogPartition(data(), query)));
      EXPECT_LE(1.96 * std::exp(0.5 * LogAdd(answer.stats.log_variance,
                                             answer.stats.log_drawn_variance) -
                                log_partition),
                0.0002)
          << temperature;
    }
    std::ranges::sort(errors);
    EXPECT_LE(errors[kQueries * 95 / 100], 0.0002) << temperature;
  }
}

// What passes over all codes state about sums.
struct PassTally {
  int asked = 0;
  int held = 0;
  double square = 0;  // of deviations
  double least_variance = std::numeric_limits<double>::infinity();
  std::vector<double> errors;
};

// Counts over the queries and over means of two, with options for so many codes
// that only the necessary ones are read.
PassTally TallyOf(const Data& data, double temperature,
                  const CodePassOptions& options) {
  const InvertedLists& lists =
      static_cast<const ListIndex&>(*data.index).lists();
  PassTally tally;
  for (std::int64_t q = 0; q < kQueries; ++q) {
    for (std::int64_t other = q; other < kQueries; other += 3) {
      ScanQuery query = QueryAt(data, q, temperature);
      std::vector<float> mean(kDim);
      for (std::size_t d = 0; d < kDim; ++d) {
        mean[d] = 0.5f * (data.Query(q)[d] + data.Query(other)[d]);
      }
      const auto scale = static_cast<float>(1 / Norm(mean));
      for (float& component : mean) component *= scale;
      query.query = mean;
      CodePass pass;
      EXPECT_TRUE(pass.Start(query, lists, 0, true, options));
      EXPECT_EQ(pass.bits(), options.bits);
      const double max_scale = lists.codes.max_scale();
      tally.least_variance =
          std::min(tally.least_variance,
                   pass.coded().LogitVariancePerSquareScale(options.bits) *
                       max_scale * max_scale);
      ListVisit visit;
      visit.pass = &pass;
      ListVisit* const visits[] = {&visit};
      TakeOtherLists(lists, visits);
      AttentionState state(0, &kNoIds);
      ScanStats stats;
      EXPECT_OK(pass.Finish(true, state, stats));
      const double log_partition = *state.partition().LogPartition();
      const double deviation =
          std::exp(0.5 * LogAdd(stats.log_variance, stats.log_drawn_variance) -
                   log_partition);
      ++tally.asked;
      tally.errors.push_back(
          std::abs(log_partition - TrueLogPartition(data, query)));
      tally.held += tally.errors.back() <= 1.96 * deviation ? 1 : 0;
      tally.square += deviation * deviation;
    }
  }
  std::ranges::sort(tally.errors);
  return tally;
}

// Four deviations below 95 % of that many.
double LeastHeld(const PassTally& tally) {
  return 0.95 * tally.asked - 4 * std::sqrt(tally.asked * 0.95 * 0.05);
}

// If segments with equal keys shared draws, errors would not average out.
TEST_P(CodeScanTest, EachSegmentDrawsForItself) {
  const InvertedLists& lists =
      static_cast<const ListIndex&>(*data().index).lists();
  double sums[2];
  for (const std::int32_t segment : {0, 1}) {
    ScanQuery query = QueryAt(data(), 0, 0.05);
    query.segment = segment;
    CodePass pass;
    ASSERT_TRUE(pass.Start(query, lists, 0, true,
                           {.bits = CodeBits::k4, .precision = 0.02}));
    ListVisit visit;
    visit.pass = &pass;
    ListVisit* const visits[] = {&visit};
    TakeOtherLists(lists, visits);
    AttentionState state(0, &kNoIds);
    ScanStats stats;
    ASSERT_OK(pass.Finish(true, state, stats));
    sums[segment] = *state.partition().LogPartition();
  }
  EXPECT_NE(sums[0], sums[1]);
}

// Codes may err by a deviation where draws correct them: few keys are scored
// from floats, so much is left to codes.
TEST_P(CodeScanTest, DrawsCorrectWhatCodesOfASharpQueryErr) {
  constexpr double kTemperature = 0.02;
  constexpr double kPrecision = 0.05;
  const PassTally tally = TallyOf(
      data(), kTemperature,
      {.bits = CodeBits::k4, .rescore_count = 20, .precision = kPrecision});
  ASSERT_GT(tally.least_variance, 0.5);
  EXPECT_GE(tally.held, LeastHeld(tally));
  // The draws determine the error.
  EXPECT_GT(std::sqrt(tally.square / tally.asked), kPrecision / 50);
}

// With the options of a million keys.
TEST_P(CodeScanTest, AStatedPrecisionHoldsByFourBits) {
  constexpr double kPrecision = 0.02;
  for (const double temperature : {0.2, 0.05}) {
    SCOPED_TRACE(temperature);
    const PassTally tally = TallyOf(
        data(), temperature,
        {.bits = CodeBits::k4, .rescore_count = 1000, .precision = kPrecision});
    EXPECT_GE(tally.held, LeastHeld(tally));
    EXPECT_LE(tally.errors[tally.errors.size() * 95 / 100], kPrecision);
    EXPECT_LE(tally.errors.back(), 5 * kPrecision);
  }
}

// All draws may be of keys that occur often, and say nothing about the others,
// whose codes err as well.
TEST(CodeScanLimitTest, IntervalsKnowOfKeysThatWereNotDrawn) {
  const Data few(1, 1, 40);
  const PassTally tally =
      TallyOf(few, 0.1,
              {.bits = CodeBits::k4, .rescore_count = 1000, .precision = 0.02});
  EXPECT_GE(tally.held, LeastHeld(tally));
}

TEST_P(CodeScanTest, LogitsThatComeBackAreThoseOfAnExactScan) {
  for (std::int64_t q = 0; q < kQueries; ++q) {
    ScanQuery query = QueryAt(data(), q, 0.1);
    const Answer answer = AnswerOf(data(), query);
    EXPECT_LT(answer.stats.scored_count, kRows / 2);
    query.exhaustive = true;
    const Answer exact = AnswerOf(data(), query, kRows);
    std::vector<float> logits(kRows);
    for (const Candidate& candidate : exact.top) {
      logits[candidate.row] = candidate.logit;
    }
    ASSERT_EQ(answer.top.size(), kK);
    for (const Candidate& candidate : answer.top) {
      EXPECT_EQ(candidate.logit, logits[candidate.row]);
    }
  }
}

// Also if more results are asked for than the index was calibrated for.
TEST_P(CodeScanTest, RecallIsThatAskedFor) {
  for (const std::int64_t k : {100, 300, 1000}) {
    SCOPED_TRACE(k);
    double found = 0;
    for (const double recall : {0.5, 0.9, 0.99}) {
      const double before = found;
      found = 0;
      for (std::int64_t q = 0; q < kQueries; ++q) {
        ScanQuery query = QueryAt(data(), q, 0.1);
        query.goals.recall = recall;
        const Answer answer = AnswerOf(data(), query, k);
        query.exhaustive = true;
        const std::vector<RowIndex> best =
            RowsOf(AnswerOf(data(), query, k).top);
        const std::set<RowIndex> truth(best.begin(), best.end());
        for (const RowIndex row : RowsOf(answer.top)) found += truth.count(row);
      }
      found /= static_cast<double>(k * kQueries);
      // The queries differ from those that calibrated the index.
      EXPECT_GT(found, recall - 0.05);
      EXPECT_GE(found, before);
    }
  }
}

// Result of passes over 4-bit codes, over all queries: keys that were scored
// from floats, the best keys that were not, and intervals of log_partition that
// hold.
struct Lost {
  double kept = 0;
  double lost = 0;
  int held = 0;
};

Lost LostOf(const Data& data, double lost_count) {
  const InvertedLists& lists =
      static_cast<const ListIndex&>(*data.index).lists();
  Lost found;
  for (std::int64_t q = 0; q < kQueries; ++q) {
    const ScanQuery query = QueryAt(data, q, 0.1);
    CodePass pass;
    EXPECT_TRUE(pass.Start(query, lists, kK, true,
                           {.bits = CodeBits::k4, .lost_count = lost_count}));
    ListVisit visit;
    visit.pass = &pass;
    ListVisit* const visits[] = {&visit};
    TakeOtherLists(lists, visits);
    // Has room for every row scored from floats.
    AttentionState state(kRows, &kNoIds);
    ScanStats stats;
    EXPECT_OK(pass.Finish(true, state, stats));
    const std::vector<RowIndex> kept = RowsOf(state.top().Sorted());
    EXPECT_GE(kept.size(), kK);
    found.kept += static_cast<double>(kept.size());
    ScanQuery exact = query;
    exact.exhaustive = true;
    for (const RowIndex row : RowsOf(AnswerOf(data, exact).top)) {
      found.lost += std::ranges::count(kept, row) == 0 ? 1 : 0;
    }
    const double log_partition = *state.partition().LogPartition();
    const double error = log_partition - TrueLogPartition(data, query);
    const double deviation = std::exp(stats.log_variance / 2 - log_partition);
    found.held += std::abs(error) <= 1.96 * deviation ? 1 : 0;
  }
  return found;
}

// Floats are saved in return: at least a fifth of the allowed losses occur.
TEST_P(CodeScanTest, NoMoreIsLostToCodesThanMayBe) {
  double kept_before = 0;
  for (const double lost_count : {0.0, 0.5, 4.0}) {
    SCOPED_TRACE(lost_count);
    const Lost found = LostOf(data(), lost_count);
    const double may_be_lost = lost_count * kQueries;
    // Four deviations of as many independent losses, plus two.
    EXPECT_LE(found.lost, may_be_lost + 4 * std::sqrt(may_be_lost) + 2);
    EXPECT_GE(found.lost, lost_count < 4 ? 0 : may_be_lost / 5);
    // Of 24 intervals that hold 95 % each, fewer than 19 hold once in 1,000.
    EXPECT_GE(found.held, 19);
    if (lost_count > 0) {
      EXPECT_LT(found.kept, kept_before);
    }
    kept_before = found.kept;
  }
}

// A hundred keys around each centre, closer together than their codes err.
TEST(CodeScanLimitTest, NothingIsLostAmongKeysThatCodesHardlyTellApart) {
  static const Data* const data = new Data(1, 0.01f);
  const Lost all = LostOf(*data, 0);
  const Lost found = LostOf(*data, 4);
  EXPECT_EQ(found.kept, all.kept);
  EXPECT_EQ(found.lost, all.lost);
}

// The only visited list holds more of the best keys than half.
TEST(CodeScanRecallTest, WhatAListFindsBeyondTheRecallMayBeLost) {
  const Data& data = Plain();
  const Calibration& calibration = data.index->training()->calibration;
  ASSERT_GT(calibration.SpareRecall(0.5), 0.02);
  EXPECT_EQ(calibration.SpareRecall(1), 0);
  double found_of_list = 0;
  double found = 0;
  for (std::int64_t q = 0; q < kQueries; ++q) {
    ScanQuery query = QueryAt(data, q, 0.1);
    query.goals.recall = 0.5;
    const Answer asked = AnswerOf(data, query);
    query.goals.recall = 0;
    query.goals.probe_count = asked.stats.visited_list_count;
    const Answer of_list = AnswerOf(data, query);
    query.exhaustive = true;
    const std::vector<RowIndex> best = RowsOf(AnswerOf(data, query).top);
    for (const RowIndex row : best) {
      found += std::ranges::count(RowsOf(asked.top), row);
      found_of_list += std::ranges::count(RowsOf(of_list.top), row);
    }
  }
  EXPECT_LT(found, found_of_list);
  EXPECT_GE(found, 0.5 * kK * kQueries);
}

TEST_P(CodeScanTest, MasksAreKeptByACompletePass) {
  Bitmap allowed(kRows);
  for (RowIndex row = 0; row < kRows; row += 3) allowed.Set(row);
  for (std::int64_t q = 0; q < kQueries; ++q) {
    ScanQuery query = QueryAt(data(), q, 0.1);
    query.allowed = &allowed;
    query.goals.certified = true;
    const Answer answer = AnswerOf(data(), query);
    EXPECT_EQ(answer.stats.scored_count, (kRows + 2) / 3);
    const double truth = TrueLogPartition(data(), query);
    EXPECT_LE(answer.stats.log_lower, truth);
    EXPECT_GE(answer.stats.log_upper, truth);
    ASSERT_FALSE(answer.top.empty());
    for (const RowIndex row : RowsOf(answer.top)) EXPECT_EQ(row % 3, 0);
  }
}

// Expects answers together to equal those alone, to the bit.
void ExpectTogetherAsAlone(const Data& data,
                           const std::vector<ScanQuery>& queries) {
  std::vector<AttentionState> states;
  states.reserve(queries.size());
  std::vector<ScanTask> tasks;
  for (const ScanQuery& query : queries) {
    states.emplace_back(kK, &kNoIds);
    tasks.push_back({.query = &query, .state = &states.back()});
  }
  data.index->ScanTogether(tasks);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    ASSERT_OK(tasks[i].stats);
    const Answer alone = AnswerOf(data, queries[i]);
    const SoftmaxPartition& together = states[i].partition();
    EXPECT_EQ(together.count, alone.partition.count);
    EXPECT_EQ(together.max, alone.partition.max);
    EXPECT_EQ(together.sum, alone.partition.sum);
    EXPECT_EQ(together.sum_gap, alone.partition.sum_gap);
    EXPECT_EQ(together.sum_square, alone.partition.sum_square);
    EXPECT_EQ(tasks[i].stats->scored_count, alone.stats.scored_count);
    EXPECT_EQ(tasks[i].stats->log_variance, alone.stats.log_variance);
    EXPECT_EQ(tasks[i].stats->log_drawn_variance,
              alone.stats.log_drawn_variance);
    EXPECT_EQ(tasks[i].stats->log_lower, alone.stats.log_lower);
    EXPECT_EQ(tasks[i].stats->log_upper, alone.stats.log_upper);
    const std::vector<Candidate> top = states[i].top().Sorted();
    ASSERT_EQ(RowsOf(top), RowsOf(alone.top));
    for (std::size_t c = 0; c < top.size(); ++c) {
      EXPECT_EQ(top[c].logit, alone.top[c].logit);
    }
  }
}

TEST_P(CodeScanTest, TogetherIsAsAlone) {
  std::mt19937_64 random(12);
  Bitmap allowed(kRows);
  for (RowIndex row = 0; row < kRows; ++row) {
    if (random() % 2 == 0) allowed.Set(row);
  }
  // More queries than share one pass.
  std::vector<ScanQuery> queries;
  for (std::int64_t i = 0; i < 150; ++i) {
    ScanQuery& query = queries.emplace_back(
        QueryAt(data(), i % kQueries, i % 2 == 0 ? 0.1 : 0.02));
    switch (random() % 8) {
      case 0:
        query.goals.mass_precision = 0.02;
        break;
      case 1:
        query.goals.certified = true;
        break;
      case 2:
        query.goals.probe_count = 1 + static_cast<std::int64_t>(random() % 60);
        break;
      case 3:
        query.exhaustive = true;
        break;
      case 4:
        query.allowed = &allowed;
        break;
      case 5:
        query.goals.recall = 1;
        break;
      default:
        break;
    }
  }
  ExpectTogetherAsAlone(data(), queries);
}

// None of them passes over all keys, so they are scanned in smaller groups.
TEST_P(CodeScanTest, ManyThatVisitListsAreAsAlone) {
  std::vector<ScanQuery> queries;
  for (std::int64_t i = 0; i < 70; ++i) {
    ScanQuery& query = queries.emplace_back(QueryAt(data(), i % kQueries, 0.1));
    if (i % 2 == 0) {
      query.goals.probe_count = 1 + i % 4;
    } else {
      query.goals.recall = i % 4 == 1 ? 0.5 : 0.9;
    }
  }
  ExpectTogetherAsAlone(data(), queries);
}

// Each leaves out other lists.
TEST(FarListsTest, AreLeftOutTogetherAsAlone) {
  std::vector<ScanQuery> queries;
  for (std::int64_t i = 0; i < 150; ++i) {
    ScanQuery& query = queries.emplace_back(
        QueryAt(Tight(), i % kQueries, i % 3 == 0 ? 0.05 : 0.1));
    query.goals.recall = 1;
    // Shares the pass, and takes all lists.
    if (i % 16 == 5) query.logit_factor = 2;
    EXPECT_EQ(AnswerOf(Tight(), query).stats.complete, i % 16 == 5);
  }
  ExpectTogetherAsAlone(Tight(), queries);
}

INSTANTIATE_TEST_SUITE_P(NormsSpread, CodeScanTest, ::testing::Bool());

TEST(CodeScanStopTest, AnInterruptStopsItsQueryAlone) {
  const std::atomic<bool> cancelled = true;
  Interrupt interrupt;
  interrupt.cancelled = &cancelled;
  std::vector<ScanQuery> queries = {QueryAt(Plain(), 0, 0.1),
                                    QueryAt(Plain(), 1, 0.1),
                                    QueryAt(Plain(), 2, 0.1)};
  for (ScanQuery& query : queries) query.goals.mass_precision = 0.02;
  queries[1].interrupt = &interrupt;
  std::vector<AttentionState> states(3, AttentionState(kK, &kNoIds));
  std::vector<ScanTask> tasks;
  for (std::size_t i = 0; i < 3; ++i) {
    tasks.push_back({.query = &queries[i], .state = &states[i]});
  }
  Plain().index->ScanTogether(tasks);
  EXPECT_OK(tasks[0].stats);
  EXPECT_THAT(tasks[1].stats,
              StatusIs(absl::StatusCode::kCancelled, ::testing::_));
  EXPECT_OK(tasks[2].stats);
}

TEST(CodeScanLimitTest, WhereCodesSayTooLittleFloatsAreScored) {
  for (const double temperature : {1e-5, 1e-8}) {
    for (const ScanGoals& goals :
         {ScanGoals{.mass_precision = 0.02}, ScanGoals{.recall = 1},
          ScanGoals{.certified = true}}) {
      ScanQuery query = QueryAt(Plain(), 3, temperature);
      query.goals = goals;
      const Answer answer = AnswerOf(Plain(), query);
      EXPECT_TRUE(answer.stats.exact);
      EXPECT_NEAR(*answer.partition.LogPartition(),
                  TrueLogPartition(Plain(), query),
                  1e-5 * std::abs(*answer.partition.LogPartition()));
    }
  }
}

TEST(CodeScanLimitTest, ALogitBeyondAFloatIsTheCallersError) {
  ScanQuery query = QueryAt(Plain(), 3, 1e-39);
  AttentionState state(kK, &kNoIds);
  EXPECT_THAT(Plain().index->Scan(query, state),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
}

TEST(ListScratchTest, WhatManyKeysTookIsGivenBack) {
  const auto room = [] { return ListScratch::OfThread().pass(0).room(); };
  const auto scan = [](std::int64_t k) {
    AttentionState state(k, &kNoIds);
    ScanQuery query = QueryFor(Plain().Query(0), kRows);
    query.goals.probe_count = 90;
    ASSERT_OK(Plain().index->Scan(query, state));
    ASSERT_EQ(state.top().Sorted().size(), static_cast<std::size_t>(k));
  };
  scan(18000);
  EXPECT_EQ(room(), 0u);
  scan(kK);
  EXPECT_GT(room(), 0u);
}

TEST_P(CodeScanTest, WhatVisitsSomeListsIsNeverExact) {
  ScanQuery query = QueryAt(data(), 0, 0.1);
  query.goals.probe_count = 1;
  const Answer answer = AnswerOf(data(), query, 3000);
  EXPECT_LT(answer.stats.scored_count, 3000);
  EXPECT_FALSE(answer.stats.complete);
  EXPECT_FALSE(answer.stats.exact);
  EXPECT_FALSE(answer.stats.results_exact);
}

TEST_P(CodeScanTest, APrecisionProvesNoRecall) {
  ScanQuery query = QueryAt(data(), 0, 0.1);
  query.goals.mass_precision = 0.02;
  EXPECT_FALSE(AnswerOf(data(), query).stats.results_exact);
}

}  // namespace
}  // namespace attendant

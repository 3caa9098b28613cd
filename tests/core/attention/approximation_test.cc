// Approximate attention against plain loops in doubles, and against what it
// approximates where it must be the same.
#include "core/attention/approximation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/attention/contextualize.h"
#include "core/attention/lsh_buckets.h"
#include "core/attention/normal.h"
#include "core/attention/rank_candidates.h"
#include "core/attention/row_reduction.h"
#include "tests/support/multi_head_twin.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Matrix Normals(std::int64_t rows, std::int64_t dim, std::uint64_t seed) {
  Matrix matrix = {rows, dim, {}};
  for (std::int64_t i = 0; i < rows * dim; ++i) {
    matrix.data.push_back(NormalAt(seed, static_cast<std::uint64_t>(i)));
  }
  return matrix;
}

// argmax([x R; -x R]) by plain loops.
std::int32_t BucketTwin(const LshBuckets& hash, std::span<const float> row,
                        std::int64_t round) {
  std::int64_t best = 0;
  double greatest = -1;
  const std::int64_t half = hash.bucket_count() / 2;
  for (std::int64_t bucket = 0; bucket < hash.bucket_count(); ++bucket) {
    const float* direction = hash.direction(round, bucket % half);
    double dot = 0;
    for (std::size_t d = 0; d < row.size(); ++d) {
      dot += double{row[d]} * direction[d];
    }
    if (bucket >= half) dot = -dot;
    if (dot > greatest) {
      greatest = dot;
      best = bucket;
    }
  }
  return static_cast<std::int32_t>(best);
}

TEST(LshBucketsTest, TakeTheGreatestComponentOfEitherSign) {
  // 1,000 buckets are more than are projected on at a time.
  for (const std::int64_t bucket_count : {2, 6, 1000}) {
    const LshBuckets hash(5, bucket_count, 3, 7);
    const Matrix rows = Normals(40, 5, 3);
    std::int32_t buckets[3];
    for (std::int64_t i = 0; i < rows.row_count; ++i) {
      hash.Of(rows.view().Row(i).data(), buckets);
      for (std::int64_t round = 0; round < 3; ++round) {
        EXPECT_EQ(buckets[round], BucketTwin(hash, rows.view().Row(i), round));
      }
    }
  }
}

TEST(LshBucketsTest, AreOfDirections) {
  const LshBuckets hash(3, 16, 4, 1);
  const float row[] = {0.5f, -1, 2};
  const float longer[] = {1, -2, 4};
  const float opposite[] = {-0.5f, 1, -2};
  std::int32_t of_row[4], of_longer[4], of_opposite[4];
  hash.Of(row, of_row);
  hash.Of(longer, of_longer);
  hash.Of(opposite, of_opposite);
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(of_row[round], of_longer[round]);
    EXPECT_EQ((of_row[round] + 8) % 16, of_opposite[round]);
  }
}

TEST(NormalAtTest, HasMeanZeroAndVarianceOne) {
  double sum = 0, square = 0;
  constexpr int kCount = 100000;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double normal = NormalAt(5, i);
    sum += normal;
    square += normal * normal;
  }
  // Five standard errors: 1 / sqrt(n) and sqrt(2 / n).
  EXPECT_NEAR(sum / kCount, 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(square / kCount, 1, 5 * std::sqrt(2.0 / kCount));
}

// Queries and keys that share no bucket, by the definition; those without any
// common bucket are masked from none.
std::vector<bool> Unmet(const Matrix& queries, const Matrix& keys,
                        const LshOptions& options, bool causal) {
  const LshBuckets hash(queries.column_count, options.bucket_count,
                        options.round_count, options.seed);
  std::vector<bool> unmet;
  for (std::int64_t i = 0; i < queries.row_count; ++i) {
    std::vector<bool> row;
    for (std::int64_t j = 0; j < keys.row_count; ++j) {
      bool meets = false;
      for (std::int64_t round = 0; round < options.round_count; ++round) {
        meets |= BucketTwin(hash, queries.view().Row(i), round) ==
                 BucketTwin(hash, keys.view().Row(j), round);
      }
      row.push_back(!meets || (causal && j > i));
    }
    const bool none = std::all_of(row.begin(), row.end(),
                                  [](bool unmet_key) { return unmet_key; });
    for (std::int64_t j = 0; j < keys.row_count; ++j) {
      unmet.push_back(none ? causal && j > i
                           : row[static_cast<std::size_t>(j)]);
    }
  }
  return unmet;
}

TEST(LshAttentionTest, AttendsToTheUnionOfBucketsExactly) {
  const Matrix queries = Normals(70, 6, 1);
  const Matrix keys = Normals(150, 6, 2);
  for (const ScoreKind kind : {ScoreKind::kScaledDot, ScoreKind::kCosine}) {
    for (const bool causal : {false, true}) {
      for (const std::int64_t rounds : {1, 3}) {
        LshOptions options;
        options.bucket_count = 10;
        options.round_count = rounds;
        const std::vector<bool> unmet = Unmet(queries, keys, options, causal);
        const TwinAnswer twin = AttendTwin(
            queries.view(), keys.view(), keys.view(), kind, 0.5,
            [&](std::int64_t i, std::int64_t j) -> bool {
              return unmet[static_cast<std::size_t>(i * keys.row_count + j)];
            });
        ContextualizeInput input;
        input.sequence = queries.view();
        input.memory = keys.view();
        input.score_kind = kind;
        input.temperature = 0.5;
        input.causal = causal;
        input.include_weights = true;
        input.approximation = options;
        ASSERT_OK_AND_ASSIGN(const SequenceContext got, Contextualize(input));
        EXPECT_EQ(got.scored_count, twin.scored_count);
        for (std::int64_t i = 0; i < queries.row_count; ++i) {
          const auto row = static_cast<std::size_t>(i);
          for (std::int64_t d = 0; d < 6; ++d) {
            const auto at = static_cast<std::size_t>(i * 6 + d);
            EXPECT_NEAR(got.outputs.data[at], twin.outputs[at],
                        twin.tolerances[row]);
          }
          for (std::int64_t j = 0; j < keys.row_count; ++j) {
            const auto at = static_cast<std::size_t>(i * keys.row_count + j);
            // A weight is rounded to a float once more.
            EXPECT_NEAR(
                got.head_weights[0].data[at], twin.weights[at],
                twin.weights[at] * (twin.log_tolerances[row] + 0x1p-23));
          }
        }
      }
    }
  }
}

// Projections with positive entries only: of positive tokens, every vector of a
// head of one component is positive, and shares its one bucket with all.
AttentionModel PositiveModel() {
  const auto positive = [](std::int64_t rows, std::int64_t columns,
                           std::uint64_t seed) {
    Matrix matrix = Normals(rows, columns, seed);
    for (float& f : matrix.data) f = std::abs(f) + 0.1f;
    return matrix;
  };
  MultiHeadProjections heads;
  heads.head_count = 2;
  heads.query = {positive(2, 3, 11), {}};
  heads.key = {positive(2, 3, 12), {}};
  heads.value = Projection{positive(4, 3, 13), {1, 2, 3, 4}};
  heads.output = Projection{positive(5, 4, 14), {5, 4, 3, 2, 1}};
  return {heads};
}

TEST(LshAttentionTest, WhereAllShareABucketItIsExact) {
  Matrix tokens = Normals(40, 3, 21);
  for (float& f : tokens.data) f = std::abs(f);
  const AttentionModel model = PositiveModel();
  const AttentionModel* const layers[] = {&model};
  const std::int32_t padding[] = {3, 17};
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.layers = layers;
  input.padding_positions = padding;
  input.include_weights = true;
  ASSERT_OK_AND_ASSIGN(const SequenceContext exact, Contextualize(input));
  input.approximation = LshOptions{.bucket_count = 2, .round_count = 2};
  ASSERT_OK_AND_ASSIGN(const SequenceContext lsh, Contextualize(input));
  EXPECT_EQ(lsh.scored_count, exact.scored_count);
  for (std::size_t i = 0; i < exact.outputs.data.size(); ++i) {
    // Sums in another order: some forty terms of one sign, rounded as floats
    // here and there.
    EXPECT_NEAR(lsh.outputs.data[i], exact.outputs.data[i],
                200 * 0x1p-24 * std::abs(exact.outputs.data[i]));
  }
  for (std::size_t head = 0; head < 2; ++head) {
    for (std::int64_t i = 0; i < 40; ++i) {
      for (const std::int32_t j : padding) {
        EXPECT_EQ(
            lsh.head_weights[head].data[static_cast<std::size_t>(i * 40 + j)],
            0);
      }
    }
  }
}

TEST(LshAttentionTest, WhatAllIsMaskedFromGetsZeros) {
  const Matrix tokens = Normals(2, 3, 1);
  const std::int32_t padding[] = {0, 1};
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.padding_positions = padding;
  input.approximation = LshOptions{};
  ASSERT_OK_AND_ASSIGN(const SequenceContext got, Contextualize(input));
  EXPECT_EQ(got.scored_count, 0);
  EXPECT_THAT(got.outputs.data, ::testing::Each(0));
}

TEST(LshAttentionTest, RefusesWhatExactAttentionRefuses) {
  Matrix tokens = Normals(4, 2, 1);
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.approximation = LshOptions{};
  tokens.data[5] = std::nanf("");
  EXPECT_THAT(Contextualize(input),
              StatusIs(kInvalid, HasSubstr("sequence[2]")));
  tokens.data[5] = 3e38f;
  EXPECT_THAT(Contextualize(input), StatusIs(kInvalid, HasSubstr("logit")));
}

TEST(LinformerTest, RowsAreMeansOfSegments) {
  const Matrix rows = {5, 1, {1, 2, 3, 4, 5}};
  const std::int32_t positions[] = {4, 0, 1, 2, 3};
  ASSERT_OK_AND_ASSIGN(
      const Matrix reduced,
      ReduceRows(rows.view(), positions, LinformerOptions{.row_count = 2}, {}));
  // Of rows 4, 0 and of 1, 2, 3.
  EXPECT_THAT(reduced.data, ::testing::ElementsAre(3, 3));
}

TEST(LinformerTest, RandomRowsAreOneMatrixTimesTheRows) {
  const Matrix rows = Normals(30, 2, 4);
  std::vector<std::int32_t> positions(30);
  std::iota(positions.begin(), positions.end(), 0);
  const LinformerOptions options = {
      .row_count = 3, .kind = ReductionKind::kRandom, .seed = 9};
  ASSERT_OK_AND_ASSIGN(const Matrix reduced,
                       ReduceRows(rows.view(), positions, options, {}));
  for (std::int64_t r = 0; r < 3; ++r) {
    for (std::int64_t d = 0; d < 2; ++d) {
      double want = 0;
      for (std::int64_t i = 0; i < 30; ++i) {
        want += NormalAt(9, static_cast<std::uint64_t>(r * 30 + i)) /
                std::sqrt(3.0) * rows.data[static_cast<std::size_t>(2 * i + d)];
      }
      const float got = reduced.data[static_cast<std::size_t>(2 * r + d)];
      // Doubles, rounded to a float.
      EXPECT_NEAR(got, want, 0x1p-23 * std::abs(want) + 1e-12);
    }
  }
}

TEST(LinformerTest, AttendsToTheReducedRows) {
  const Matrix tokens = Normals(50, 4, 5);
  std::vector<std::int32_t> positions(50);
  std::iota(positions.begin(), positions.end(), 0);
  for (const ReductionKind kind :
       {ReductionKind::kSegmentMeans, ReductionKind::kRandom}) {
    const LinformerOptions options = {.row_count = 7, .kind = kind};
    ASSERT_OK_AND_ASSIGN(const Matrix reduced,
                         ReduceRows(tokens.view(), positions, options, {}));
    const TwinAnswer twin =
        AttendTwin(tokens.view(), reduced.view(), reduced.view(),
                   ScoreKind::kScaledDot, 1, NothingMasked);
    ContextualizeInput input;
    input.sequence = tokens.view();
    input.approximation = options;
    ASSERT_OK_AND_ASSIGN(const SequenceContext got, Contextualize(input));
    EXPECT_EQ(got.scored_count, 50 * 7);
    for (std::size_t i = 0; i < got.outputs.data.size(); ++i) {
      EXPECT_NEAR(got.outputs.data[i], twin.outputs[i], twin.tolerances[i / 4]);
    }
  }
}

TEST(LinformerTest, WithAsManyMeansAsTokensItIsExact) {
  const Matrix tokens = Normals(30, 4, 6);
  const std::int32_t padding[] = {0, 29};
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.padding_positions = padding;
  ASSERT_OK_AND_ASSIGN(const SequenceContext exact, Contextualize(input));
  input.approximation = LinformerOptions{};
  ASSERT_OK_AND_ASSIGN(const SequenceContext got, Contextualize(input));
  EXPECT_EQ(got.scored_count, exact.scored_count);
  // The same weights; both sum 28 products as floats, in another order, and
  // divide.
  float greatest = 0;
  for (const float f : tokens.data) greatest = std::max(greatest, std::abs(f));
  for (std::size_t i = 0; i < exact.outputs.data.size(); ++i) {
    EXPECT_NEAR(got.outputs.data[i], exact.outputs.data[i],
                2 * (28 + 2) * 0x1p-24 * greatest);
  }
}

TEST(LinformerTest, NamesTheTokenThatIsNotFinite) {
  Matrix tokens = Normals(40, 2, 1);
  tokens.data[2 * 31] = std::nanf("");
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.approximation = LinformerOptions{.row_count = 4};
  EXPECT_THAT(Contextualize(input),
              StatusIs(kInvalid, HasSubstr("sequence[31]")));
  // In the padding it is never looked at.
  const std::int32_t padding[] = {31};
  input.memory = tokens.view();
  const Matrix queries = Normals(3, 2, 2);
  input.sequence = queries.view();
  input.padding_positions = padding;
  EXPECT_OK(Contextualize(input));
}

TEST(LinformerTest, RefusesCombinationsThatOverflow) {
  const Matrix tokens = {8, 1, std::vector<float>(8, 3e38f)};
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.score_kind = ScoreKind::kCosine;
  input.approximation =
      LinformerOptions{.row_count = 1, .kind = ReductionKind::kRandom};
  EXPECT_THAT(Contextualize(input),
              StatusIs(kInvalid, HasSubstr("sequence: got vectors whose random "
                                           "combination overflows")));
}

TEST(ApproximationTest, RefusesWhatItCannotDo) {
  const Matrix tokens = Normals(4, 2, 1);
  ContextualizeInput input;
  input.sequence = tokens.view();
  const auto error = [&](const Approximation& approximation) {
    input.approximation = approximation;
    return Contextualize(input).status();
  };
  EXPECT_THAT(error(LshOptions{.bucket_count = 3}),
              StatusIs(kInvalid, HasSubstr("approximation.lsh.bucket_count")));
  EXPECT_THAT(error(LshOptions{.round_count = 0}),
              StatusIs(kInvalid, HasSubstr("approximation.lsh.round_count")));
  EXPECT_THAT(
      error(LinformerOptions{.row_count = 0}),
      StatusIs(kInvalid, HasSubstr("approximation.linformer.row_count")));
  input.include_weights = true;
  EXPECT_THAT(error(LinformerOptions{}),
              StatusIs(kInvalid, HasSubstr("include_weights")));
  input.include_weights = false;
  input.causal = true;
  EXPECT_THAT(error(LinformerOptions{}),
              StatusIs(kInvalid, HasSubstr("causal")));
  EXPECT_OK(error(LshOptions{}));
}

TEST(ApproximationTest, LimitsWhatIsHashedBy) {
  const Matrix tokens = Normals(2, 1024, 1);
  ContextualizeInput input;
  input.sequence = tokens.view();
  // 2^23 components: 4,096 / 2 directions of 1,024 in 4 rounds.
  input.approximation = LshOptions{.bucket_count = 4096, .round_count = 5};
  EXPECT_THAT(
      Contextualize(input),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("approximation.lsh.bucket_count: got 4096"),
                     HasSubstr("at most 3276 in 5 rounds"))));
  input.approximation = LshOptions{.bucket_count = 4098};
  EXPECT_THAT(Contextualize(input),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("approximation.lsh.bucket_count")));
  input.approximation = LshOptions{.round_count = kMaxLshRounds};
  EXPECT_OK(Contextualize(input));
}

TEST(ApproximationTest, TheDeadlineStopsIt) {
  const Matrix tokens = Normals(4, 2, 1);
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.interrupt.deadline = SteadyTime::min();
  for (const Approximation& approximation :
       {Approximation(LshOptions{}), Approximation(LinformerOptions{})}) {
    input.approximation = approximation;
    EXPECT_THAT(
        Contextualize(input),
        StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("deadline")));
  }
}

class RankApproximatelyTest : public ::testing::Test {
 protected:
  RankApproximatelyTest()
      : candidates_(Normals(9, 4, 1)), events_(Normals(40, 4, 2)) {
    for (int i = 0; i < 40; ++i) times_.push_back(absl::FromUnixSeconds(i));
    input_.candidates = candidates_.view();
    input_.keys = events_.view();
    input_.values = events_.view();
    input_.times = times_;
    input_.time = absl::FromUnixSeconds(29);
  }

  const Matrix candidates_;
  const Matrix events_;
  std::vector<absl::Time> times_;
  RankInput input_;
};

TEST_F(RankApproximatelyTest, LshNamesTheEventsThatItMet) {
  const LshOptions options = {.bucket_count = 4, .round_count = 2};
  const std::vector<bool> unmet = Unmet(candidates_, events_, options, false);
  // Whoever met none before the time attends to all before it.
  std::vector<bool> masked;
  for (std::int64_t i = 0; i < 9; ++i) {
    const auto row = static_cast<std::size_t>(40 * i);
    bool met = false;
    for (std::size_t j = 0; j < 30; ++j) met |= !unmet[row + j];
    for (std::size_t j = 0; j < 40; ++j) {
      masked.push_back(j >= 30 || (met && unmet[row + j]));
    }
  }
  const TwinAnswer twin = AttendTwin(
      candidates_.view(), events_.view(), events_.view(), ScoreKind::kScaledDot,
      1, [&](std::int64_t i, std::int64_t j) -> bool {
        return masked[static_cast<std::size_t>(40 * i + j)];
      });
  input_.approximation = options;
  input_.attribution_count = 40;
  ASSERT_OK_AND_ASSIGN(const RankedInterests ranked, RankCandidates(input_));
  EXPECT_EQ(ranked.future_event_count, 10);
  EXPECT_EQ(ranked.scored_count, twin.scored_count);
  for (std::size_t i = 0; i < 9; ++i) {
    double score = 0;
    for (std::size_t d = 0; d < 4; ++d) {
      const float got = ranked.interests.data[4 * i + d];
      EXPECT_NEAR(got, twin.outputs[4 * i + d], twin.tolerances[i]);
      score += double{candidates_.data[4 * i + d]} * got;
    }
    EXPECT_EQ(ranked.scores[i], score);
    const auto attended = std::count(
        masked.begin() + static_cast<std::ptrdiff_t>(40 * i),
        masked.begin() + static_cast<std::ptrdiff_t>(40 * i + 40), false);
    EXPECT_THAT(ranked.attributions[i],
                SizeIs(static_cast<std::size_t>(attended)));
    double last = 1;
    for (const EventWeight& event : ranked.attributions[i]) {
      const double want =
          twin.weights[40 * i + static_cast<std::size_t>(event.event)];
      EXPECT_NEAR(event.weight, want,
                  want * (twin.log_tolerances[i] + 0x1p-23));
      EXPECT_LE(event.weight, last);
      last = event.weight;
    }
  }
}

TEST_F(RankApproximatelyTest, LinformerRanksByReducedEvents) {
  // Those before the time; as many rows as events are the events.
  std::vector<std::int32_t> positions(30);
  std::iota(positions.begin(), positions.end(), 0);
  input_.attribution_count = 0;
  for (const std::int64_t row_count : {7, 30}) {
    const LinformerOptions options = {.row_count = row_count};
    ASSERT_OK_AND_ASSIGN(const Matrix reduced,
                         ReduceRows(events_.view(), positions, options, {}));
    const TwinAnswer twin =
        AttendTwin(candidates_.view(), reduced.view(), reduced.view(),
                   ScoreKind::kScaledDot, 1, NothingMasked);
    input_.approximation = options;
    ASSERT_OK_AND_ASSIGN(const RankedInterests ranked, RankCandidates(input_));
    EXPECT_EQ(ranked.scored_count, 9 * row_count);
    EXPECT_EQ(ranked.future_event_count, 10);
    for (std::size_t i = 0; i < 9; ++i) {
      double score = 0;
      for (std::size_t d = 0; d < 4; ++d) {
        const float got = ranked.interests.data[4 * i + d];
        EXPECT_NEAR(got, twin.outputs[4 * i + d], twin.tolerances[i]);
        score += double{candidates_.data[4 * i + d]} * got;
      }
      EXPECT_EQ(ranked.scores[i], score);
      EXPECT_TRUE(ranked.attributions[i].empty());
    }
  }
}

TEST_F(RankApproximatelyTest, WithoutEventsInterestsAreZeros) {
  input_.attribution_count = 0;
  for (const bool are_later : {true, false}) {
    input_.time = absl::FromUnixSeconds(-1);
    if (!are_later) {
      input_.keys = input_.values = {nullptr, 0, 4};
      input_.times = {};
    }
    for (const Approximation& approximation :
         {Approximation(LshOptions{}), Approximation(LinformerOptions{})}) {
      input_.approximation = approximation;
      ASSERT_OK_AND_ASSIGN(const RankedInterests ranked,
                           RankCandidates(input_));
      EXPECT_EQ(ranked.scored_count, 0);
      EXPECT_EQ(ranked.future_event_count, are_later ? 40 : 0);
      EXPECT_THAT(ranked.interests.data, ::testing::Each(0));
    }
  }
}

TEST_F(RankApproximatelyTest, RefusesWhatItCannotDo) {
  input_.approximation = LinformerOptions{};
  EXPECT_THAT(RankCandidates(input_),
              StatusIs(kInvalid, HasSubstr("attribution_count: got 3")));
  input_.activation_kind = ActivationKind::kNone;
  input_.approximation = LshOptions{};
  EXPECT_THAT(RankCandidates(input_),
              StatusIs(kInvalid, HasSubstr("activation_kind: got NONE, want "
                                           "SOFTMAX")));
}

}  // namespace
}  // namespace attendant

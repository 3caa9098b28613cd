// Reduced rows equal exact attention over other rows; also the inputs that
// approximations refuse.
#include "core/attention/approximations/approximation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/attention/sequences/contextualize.h"
#include "core/attention/sequences/rank_candidates.h"
#include "tests/core/attention/approximations/approximation_twins.h"
#include "tests/support/multi_head_twin.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LinformerTest, AttendsToTheReducedRows) {
  const Matrix tokens = Normals(50, 4, 5);
  std::vector<std::int32_t> positions(50);
  std::iota(positions.begin(), positions.end(), 0);
  for (const ReductionKind kind :
       {ReductionKind::kSegmentMeans, ReductionKind::kRandom}) {
    const LinformerOptions options = {.row_count = 7, .kind = kind};
    ASSERT_OK_AND_ASSIGN(const Matrix reduced,
                         Reduced(tokens.view(), positions, options));
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
  // The same weights. Both sum 28 products as floats, in different orders, and
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
  // Padded rows are never read.
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

// Reduced row 1 overflows, but token 1 is not the cause.
TEST(LinformerTest, SaysWhenAReducedRowOverflows) {
  const Matrix tokens = {4, 1, {1, 1, 3e38f, 3e38f}};
  MultiHeadProjections heads;
  heads.query = {{1, 1, {1}}, {}};
  heads.key = {{1, 1, {2}}, {}};
  const AttentionModel model = {heads};
  const AttentionModel* const layers[] = {&model};
  ContextualizeInput input;
  const Matrix query = {1, 1, {1}};
  input.sequence = query.view();
  input.memory = tokens.view();
  input.layers = layers;
  input.approximation = LinformerOptions{.row_count = 2};
  EXPECT_THAT(Contextualize(input),
              StatusIs(kInvalid, HasSubstr("approximation.linformer[1]: got a "
                                           "vector whose projection")));
  RankInput ranked;
  ranked.heads = &heads;
  ranked.candidates = query.view();
  ranked.keys = ranked.values = tokens.view();
  ranked.attribution_count = 0;
  ranked.approximation = input.approximation;
  EXPECT_THAT(RankCandidates(ranked),
              StatusIs(kInvalid, HasSubstr("approximation.linformer[1]: ")));
}

TEST(ApproximationTest, RefusesWhatItCannotDo) {
  const Matrix tokens = Normals(4, 2, 1);
  ContextualizeInput input;
  input.sequence = tokens.view();
  const auto error = [&](const Approximation& approximation) {
    input.approximation = approximation;
    return Contextualize(input).status();
  };
  EXPECT_THAT(error(LshAttentionOptions{.bucket_count = 3}),
              StatusIs(kInvalid, HasSubstr("approximation.lsh.bucket_count")));
  EXPECT_THAT(error(LshAttentionOptions{.round_count = 0}),
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
  EXPECT_OK(error(LshAttentionOptions{}));
}

TEST(ApproximationTest, LimitsWhatIsHashedBy) {
  const Matrix tokens = Normals(2, 1024, 1);
  ContextualizeInput input;
  input.sequence = tokens.view();
  // 2^23 components: 4,096 / 2 directions of 1,024 in 4 rounds.
  input.approximation =
      LshAttentionOptions{.bucket_count = 4096, .round_count = 5};
  EXPECT_THAT(
      Contextualize(input),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("approximation.lsh.bucket_count: got 4096"),
                     HasSubstr("at most 3276 with round_count 5"))));
  input.approximation = LshAttentionOptions{.bucket_count = 4098};
  EXPECT_THAT(Contextualize(input),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("approximation.lsh.bucket_count")));
  input.approximation = LshAttentionOptions{.round_count = kMaxLshRounds};
  EXPECT_OK(Contextualize(input));
}

TEST(ApproximationTest, KeysThatTakeTooMuchMemoryAreRefused) {
  // 512 KiB a token: a key and a value of 2^16 floats.
  const auto wide = [](std::int64_t rows) {
    return Projection{
        {rows, 1, std::vector<float>(static_cast<std::size_t>(rows))}, {}};
  };
  MultiHeadProjections heads;
  heads.query = heads.key = wide(65536);
  heads.value = wide(65536);
  const AttentionModel model = {heads};
  const AttentionModel* const layers[] = {&model};
  const Matrix query = {1, 1, {1}};
  const Matrix memory = {513, 1, std::vector<float>(513, 1)};
  ContextualizeInput input;
  input.sequence = query.view();
  input.memory = memory.view();
  input.layers = layers;
  input.approximation = LshAttentionOptions{};
  const auto refused =
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("approximation.lsh: got keys and projected values of "
                         "268959744 bytes in a head, want at most 268435456"));
  EXPECT_THAT(Contextualize(input), refused);
  RankInput ranked;
  ranked.heads = &heads;
  ranked.candidates = query.view();
  ranked.keys = ranked.values = memory.view();
  ranked.approximation = input.approximation;
  EXPECT_THAT(RankCandidates(ranked), refused);

  MultiHeadInput problem;
  problem.heads = &heads;
  problem.queries = query.view();
  problem.keys = problem.values = {memory.data.data(), 512, 1};
  EXPECT_OK(ValidateApproximation(input.approximation, problem));
  // Values are not copied if no model projects them.
  problem.keys = problem.values = {memory.data.data(), 513, 1};
  heads.value.reset();
  EXPECT_OK(ValidateApproximation(input.approximation, problem));
}

TEST(ApproximationTest, TheDeadlineStopsIt) {
  const Matrix tokens = Normals(4, 2, 1);
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.interrupt.deadline = SteadyTime::min();
  for (const Approximation& approximation :
       {Approximation(LshAttentionOptions{}),
        Approximation(LinformerOptions{})}) {
    input.approximation = approximation;
    EXPECT_THAT(
        Contextualize(input),
        StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("deadline")));
  }
}

}  // namespace
}  // namespace attendant

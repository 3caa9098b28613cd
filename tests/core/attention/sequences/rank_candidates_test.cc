#include "core/attention/sequences/rank_candidates.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/base/status.h"
#include "tests/support/multi_head_twin.h"
#include "tests/support/split_mix.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

absl::Time At(std::int64_t seconds) { return absl::FromUnixSeconds(seconds); }

RankInput InputOf(const Matrix& candidates, const Matrix& events) {
  RankInput input;
  input.candidates = candidates.view();
  input.keys = events.view();
  input.values = events.view();
  return input;
}

// Two interests in one history: events 0 to 2 are cameras, 3 to 6 swimming.
TEST(RankCandidatesTest, ATargetAttendsToTheEventsOfItsKind) {
  const Matrix events = {7,
                         2,
                         {4, .2f, 3.8f, -.1f, 4.1f, 0,  //
                          .1f, 4, -.2f, 4.2f, 0, 3.9f, .1f, 4}};
  const Matrix candidates = {2, 2, {4, 0, 0, 4}};  // a camera, a swimsuit
  RankInput input = InputOf(candidates, events);
  input.attribution_count = 7;
  ASSERT_OK_AND_ASSIGN(const RankedInterests ranked, RankCandidates(input));
  for (std::size_t target = 0; target < 2; ++target) {
    double on_kind = 0;
    double sum = 0;
    for (const EventWeight& event : ranked.attributions[target]) {
      if ((event.event < 3) == (target == 0)) on_kind += event.weight;
      sum += event.weight;
    }
    EXPECT_GT(on_kind, .5);
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  EXPECT_EQ(ranked.attributions[0][0].event, 2);  // the nearest to (4, 0)
  EXPECT_EQ(ranked.attributions[1][0].event, 4);
  EXPECT_GT(ranked.interests.data[0], 3.7);
  EXPECT_LT(ranked.interests.data[1], .3);
}

TEST(RankCandidatesTest, InterestsScoresAndAttributionsEqualTheTwin) {
  SplitMix random(3);
  const Matrix candidates = {70, 5, random.Floats(350)};
  const Matrix events = {400, 5, random.Floats(2000)};
  RankInput input = InputOf(candidates, events);
  input.score_kind = ScoreKind::kDot;
  input.temperature = .3;
  input.attribution_count = 10;
  ASSERT_OK_AND_ASSIGN(const RankedInterests ranked, RankCandidates(input));
  const TwinAnswer twin =
      AttendTwin(candidates.view(), events.view(), events.view(),
                 ScoreKind::kDot, .3, NothingMasked);
  EXPECT_EQ(ranked.scored_count, 70 * 400);
  for (std::size_t i = 0; i < 70; ++i) {
    double score = 0;
    double score_tolerance = 0;
    for (std::size_t d = 0; d < 5; ++d) {
      EXPECT_NEAR(ranked.interests.data[i * 5 + d], twin.outputs[i * 5 + d],
                  twin.tolerances[i]);
      score += twin.outputs[i * 5 + d] * candidates.data[i * 5 + d];
      score_tolerance +=
          twin.tolerances[i] * std::abs(candidates.data[i * 5 + d]);
    }
    EXPECT_NEAR(ranked.scores[i], score, score_tolerance);
    ASSERT_THAT(ranked.attributions[i], SizeIs(10));
    std::vector<double> weights(
        twin.weights.begin() + static_cast<std::ptrdiff_t>(i * 400),
        twin.weights.begin() + static_cast<std::ptrdiff_t>(i * 400 + 400));
    for (const EventWeight& event : ranked.attributions[i]) {
      const double want = weights[event.event];
      EXPECT_NEAR(event.weight, want, want * (twin.log_tolerances[i] + 3e-7));
    }
    std::sort(weights.rbegin(), weights.rend());
    for (std::size_t k = 0; k < 10; ++k) {
      EXPECT_NEAR(ranked.attributions[i][k].weight, weights[k],
                  weights[k] * (twin.log_tolerances[i] + 3e-7));
    }
  }
}

TEST(RankCandidatesTest, LaterEventsWeighNothingAndProfileEntriesAlwaysCount) {
  SplitMix random(4);
  const Matrix candidates = {3, 4, random.Floats(12)};
  Matrix events = {6, 4, random.Floats(24)};
  const std::vector<absl::Time> times = {
      absl::InfinitePast(), At(10), At(50), At(20), At(49),
      absl::InfinitePast()};
  // Event 2 is the only one after 49; its contents must not matter.
  for (std::size_t d = 8; d < 12; ++d) {
    events.data[d] = std::numeric_limits<float>::quiet_NaN();
  }
  RankInput input = InputOf(candidates, events);
  input.times = times;
  input.time = At(49);
  input.attribution_count = 6;
  ASSERT_OK_AND_ASSIGN(const RankedInterests ranked, RankCandidates(input));
  EXPECT_EQ(ranked.future_event_count, 1);
  EXPECT_EQ(ranked.scored_count, 3 * 5);
  for (const auto& attributions : ranked.attributions) {
    ASSERT_THAT(attributions, SizeIs(5));
    for (const EventWeight& event : attributions) EXPECT_NE(event.event, 2);
  }

  // Equal, to the bit, to the answer for a history without event 2.
  Matrix past = events;
  past.data.erase(past.data.begin() + 8, past.data.begin() + 12);
  past.row_count = 5;
  RankInput without = InputOf(candidates, past);
  ASSERT_OK_AND_ASSIGN(const RankedInterests same, RankCandidates(without));
  EXPECT_EQ(same.interests, ranked.interests);
  EXPECT_EQ(same.scores, ranked.scores);

  // Before all events, only the profile remains.
  input.time = At(0);
  ASSERT_OK_AND_ASSIGN(const RankedInterests profile, RankCandidates(input));
  EXPECT_EQ(profile.future_event_count, 4);
  ASSERT_THAT(profile.attributions[0], SizeIs(2));
}

TEST(RankCandidatesTest, NothingToAttendToIsZerosNotAnError) {
  const Matrix candidates = {2, 2, {1, 2, 3, 4}};
  const Matrix events = {2, 2, {1, 0, 0, 1}};
  const std::vector<absl::Time> times = {At(5), At(6)};
  for (const ActivationKind kind :
       {ActivationKind::kSoftmax, ActivationKind::kSigmoid,
        ActivationKind::kNone}) {
    RankInput input = InputOf(candidates, events);
    input.times = times;
    input.time = At(4);
    input.activation_kind = kind;
    ASSERT_OK_AND_ASSIGN(const RankedInterests ranked, RankCandidates(input));
    EXPECT_THAT(ranked.interests.data, Each(0));
    EXPECT_THAT(ranked.scores, Each(0));
    EXPECT_THAT(ranked.attributions, Each(IsEmpty()));
    EXPECT_EQ(ranked.scored_count, 0);
  }
}

TEST(RankCandidatesTest, WeightsOfEventsAreMeansOverHeads) {
  // Head 0 reads the first component, head 1 the second.
  MultiHeadProjections heads;
  heads.head_count = 2;
  heads.query = {{2, 2, {1, 0, 0, 1}}, {}};
  heads.key = heads.query;
  const Matrix candidates = {1, 2, {1, 1}};
  const Matrix events = {3, 2, {9, 0, 0, 9, 0, 0}};
  RankInput input = InputOf(candidates, events);
  input.heads = &heads;
  ASSERT_OK_AND_ASSIGN(const RankedInterests ranked, RankCandidates(input));
  const double high = std::exp(9.0) / (std::exp(9.0) + 2);
  const double low = 1 / (std::exp(9.0) + 2);
  ASSERT_THAT(ranked.attributions[0], SizeIs(3));
  // Equal weights are ordered by event.
  EXPECT_EQ(ranked.attributions[0][0].event, 0);
  EXPECT_EQ(ranked.attributions[0][1].event, 1);
  EXPECT_NEAR(ranked.attributions[0][0].weight, (high + low) / 2, 1e-6);
  EXPECT_NEAR(ranked.attributions[0][1].weight, (high + low) / 2, 1e-6);
  EXPECT_NEAR(ranked.attributions[0][2].weight, low, low * 1e-5);
  // Two heads of two components: candidate . interest is undefined, so the
  // score is the mean logit.
  EXPECT_EQ(ranked.interests.column_count, 4);
  EXPECT_NEAR(ranked.scores[0], 9 * high, 1e-5);
}

TEST(RankCandidatesTest, OtherActivationsWeighWithoutNormalising) {
  const Matrix candidates = {1, 1, {2}};
  const Matrix keys = {3, 1, {1, -1, 3}};
  const Matrix values = {3, 1, {10, 20, 30}};
  RankInput input = InputOf(candidates, keys);
  input.values = values.view();
  input.score_kind = ScoreKind::kDot;
  input.activation_kind = ActivationKind::kNone;
  ASSERT_OK_AND_ASSIGN(RankedInterests ranked, RankCandidates(input));
  EXPECT_THAT(ranked.interests.data, ElementsAre(2 * 10 - 2 * 20 + 6 * 30));
  EXPECT_THAT(ranked.scores, ElementsAre(2 * 160));
  EXPECT_THAT(
      ranked.attributions[0],
      ElementsAre(EventWeight{2, 6}, EventWeight{0, 2}, EventWeight{1, -2}));
  input.activation_kind = ActivationKind::kSigmoid;
  ASSERT_OK_AND_ASSIGN(ranked, RankCandidates(input));
  const auto sigmoid = [](double logit) { return 1 / (1 + std::exp(-logit)); };
  EXPECT_NEAR(ranked.interests.data[0],
              sigmoid(2) * 10 + sigmoid(-2) * 20 + sigmoid(6) * 30, 1e-4);
  EXPECT_EQ(ranked.attributions[0][0].event, 2);
  EXPECT_NEAR(ranked.attributions[0][2].weight, sigmoid(-2), 1e-6);
}

TEST(RankCandidatesTest, RefusalsNameTheField) {
  const Matrix candidates = {2, 2, {1, 2, 3, 4}};
  const Matrix events = {2, 2, {1, 0, 0, 1}};
  const auto field = [&](const std::function<void(RankInput&)>& set) {
    RankInput input = InputOf(candidates, events);
    set(input);
    return FieldOf(RankCandidates(input).status());
  };
  EXPECT_EQ(field([](RankInput& input) { input.attribution_count = 101; }),
            "attribution_count");
  EXPECT_EQ(field([](RankInput& input) { input.attribution_count = -1; }),
            "attribution_count");
  EXPECT_EQ(field([](RankInput& input) { input.temperature = 0; }),
            "temperature");
  const Matrix wide = {2, 3, std::vector<float>(6)};
  EXPECT_EQ(field([&](RankInput& input) { input.keys = wide.view(); }),
            "history");
}

std::int64_t PeakBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

TEST(RankCandidatesTest, NoMatrixOfAllPairsIsHeld) {
  SplitMix random(8);
  const Matrix candidates = {100, 2, random.Floats(200)};
  const Matrix events = {200000, 2, random.Floats(400000)};
  const RankInput input = InputOf(candidates, events);
  const std::int64_t before = PeakBytes();
  ASSERT_OK(RankCandidates(input));
  // The whole matrix of logits would take 80 MB.
  EXPECT_LT(PeakBytes() - before, 8 << 20);
}

}  // namespace
}  // namespace attendant

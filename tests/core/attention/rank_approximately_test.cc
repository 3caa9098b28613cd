#include "core/attention/rank_approximately.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/time/time.h"
#include "tests/core/attention/approximation_twins.h"
#include "tests/support/multi_head_twin.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

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
  const LshAttentionOptions options = {.bucket_count = 4, .round_count = 2};
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

// More weights than are held at a time: blocks of candidates.
TEST(RankByLshTest, BlocksAreAsOne) {
  constexpr std::int64_t kEvents = 4200;
  const Matrix candidates = Normals(1010, 2, 51);
  const Matrix events = Normals(kEvents, 2, 52);
  RankInput input;
  input.candidates = candidates.view();
  input.keys = input.values = events.view();
  input.attribution_count = 1;
  input.approximation = LshAttentionOptions{.round_count = 1};
  ASSERT_OK_AND_ASSIGN(const RankedInterests all, RankCandidates(input));
  ASSERT_THAT(all.scores, SizeIs(1010));
  for (const std::size_t i : {0u, 997u, 998u, 999u, 1009u}) {
    input.candidates = {candidates.data.data() + 2 * i, 1, 2};
    ASSERT_OK_AND_ASSIGN(const RankedInterests one, RankCandidates(input));
    EXPECT_EQ(all.scores[i], one.scores[0]);
    EXPECT_EQ(all.attributions[i], one.attributions[0]);
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
                         Reduced(events_.view(), positions, options));
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
         {Approximation(LshAttentionOptions{}),
          Approximation(LinformerOptions{})}) {
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
  input_.approximation = LshAttentionOptions{};
  EXPECT_THAT(RankCandidates(input_),
              StatusIs(kInvalid, HasSubstr("activation_kind: got NONE, want "
                                           "SOFTMAX")));
}

}  // namespace
}  // namespace attendant

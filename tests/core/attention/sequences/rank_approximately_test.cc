#include "core/attention/sequences/rank_approximately.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "absl/base/config.h"
#include "absl/time/time.h"
#include "bench/peak_memory.h"
#include "tests/core/attention/approximations/approximation_twins.h"
#include "tests/support/multi_head_twin.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

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
  // A candidate that shares a bucket with no event before its time attends to
  // all of those events.
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
        return masked[40 * i + j];
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

// More weights than are held at a time, hence several blocks of candidates.
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

// Multiples of 1/8 in [-1, 1]: projecting them by a matrix of such multiples is
// exact in floats.
Matrix Eighths(std::int64_t rows, std::int64_t dim, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Matrix matrix = {rows, dim, {}};
  for (std::int64_t i = 0; i < rows * dim; ++i) {
    matrix.data.push_back(static_cast<float>(random() % 17) / 8 - 1);
  }
  return matrix;
}

Projection EighthsProjection(std::int64_t output_dim, std::int64_t input_dim,
                             std::uint64_t seed) {
  return {Eighths(output_dim, input_dim, seed),
          Eighths(1, output_dim, seed + 1).data};
}

// One head's part of the projected rows.
Matrix ProjectedHead(const Projection& projection, std::int64_t head,
                     std::int64_t head_dim, const Matrix& rows) {
  Matrix projected = {rows.row_count, head_dim, {}};
  for (std::int64_t i = 0; i < rows.row_count; ++i) {
    for (std::int64_t r = head * head_dim; r < (head + 1) * head_dim; ++r) {
      double sum = projection.bias[r];
      for (std::size_t d = 0; d < rows.view().Row(i).size(); ++d) {
        sum +=
            double{projection.weight.view().Row(r)[d]} * rows.view().Row(i)[d];
      }
      projected.data.push_back(static_cast<float>(sum));
    }
  }
  return projected;
}

// One candidate's result in several heads, by plain loops in doubles.
struct HeadsTwin {
  std::vector<double> interest;    // [heads x head_value_dim], joined
  std::vector<double> tolerances;  // of those
  std::vector<double> weights;     // the mean over heads [n]
  double log_tolerance = 0;        // of the weights' logarithms
  double mean_logit = 0;
  double logit_tolerance = 0;
};

HeadsTwin RankTwin(const MultiHeadProjections& heads, const Matrix& candidate,
                   const Matrix& keys, const Matrix& values,
                   const LshAttentionOptions& options) {
  const std::int64_t key_dim = heads.head_key_dim();
  const std::int64_t value_dim = heads.head_value_dim(values.column_count);
  const double share = 1 / static_cast<double>(heads.head_count);
  HeadsTwin joined;
  joined.weights.resize(static_cast<std::size_t>(keys.row_count));
  for (std::int64_t head = 0; head < heads.head_count; ++head) {
    const Matrix q = ProjectedHead(heads.query, head, key_dim, candidate);
    const Matrix k = ProjectedHead(heads.key, head, key_dim, keys);
    const Matrix v = ProjectedHead(*heads.value, head, value_dim, values);
    const std::vector<bool> unmet = Unmet(q, k, options, false);
    const TwinAnswer twin = AttendTwin(
        q.view(), k.view(), v.view(), ScoreKind::kScaledDot, 1,
        [&](std::int64_t, std::int64_t j) -> bool { return unmet[j]; });
    joined.interest.insert(joined.interest.end(), twin.outputs.begin(),
                           twin.outputs.end());
    joined.tolerances.insert(joined.tolerances.end(), twin.outputs.size(),
                             twin.tolerances[0]);
    joined.log_tolerance =
        std::max(joined.log_tolerance, twin.log_tolerances[0]);
    double size = 0;
    for (std::size_t j = 0; j < unmet.size(); ++j) {
      if (unmet[j]) continue;
      const double logit = ScoreOf(ScoreKind::kDot, q.view().Row(0),
                                   k.view().Row(static_cast<std::int64_t>(j))) *
                           LogitFactor(ScoreKind::kScaledDot, key_dim, 1);
      size = std::max(size, std::abs(logit));
      joined.mean_logit += share * twin.weights[j] * logit;
      joined.weights[j] += share * twin.weights[j];
    }
    // Each logit is off by less than log_tolerances, and so, relatively, is
    // each weight. Sums of exps and of gaps to the greatest logit (at most 2 x
    // size) are off by 9 x 2^-24 each, and a gap by its own rounding.
    joined.logit_tolerance +=
        share * (1 + 2 * size) * (twin.log_tolerances[0] + 20 * 0x1p-24);
  }
  return joined;
}

// Three heads of two components each, all with biases, over two blocks of
// candidates whose dimension differs from the interest's.
TEST(RankByLshTest, SeveralHeadsAreAsInDoubles) {
  constexpr std::int64_t kCandidates = 1010;
  constexpr std::int64_t kEvents = 4200;
  const Matrix candidates = Eighths(kCandidates, 4, 61);
  const Matrix keys = Eighths(kEvents, 5, 62);
  const Matrix values = Eighths(kEvents, 3, 63);
  MultiHeadProjections heads;
  heads.head_count = 3;
  heads.query = EighthsProjection(6, 4, 64);
  heads.key = EighthsProjection(6, 5, 66);
  heads.value = EighthsProjection(6, 3, 68);
  const LshAttentionOptions options = {.bucket_count = 4, .round_count = 2};
  RankInput input;
  input.heads = &heads;
  input.candidates = candidates.view();
  input.keys = keys.view();
  input.values = values.view();
  input.approximation = options;
  for (const bool has_output : {false, true}) {
    if (has_output) heads.output = EighthsProjection(5, 6, 70);
    const std::size_t dim = has_output ? 5 : 6;
    ASSERT_OK_AND_ASSIGN(const RankedInterests ranked, RankCandidates(input));
    ASSERT_THAT(ranked.interests.data, SizeIs(kCandidates * dim));
    // The first and last of both blocks, which end at 997 or 998.
    for (const std::int64_t i : {0, 996, 997, 998, 1009}) {
      const auto span = candidates.view().Row(i);
      const HeadsTwin twin = RankTwin(heads, {1, 4, {span.begin(), span.end()}},
                                      keys, values, options);
      for (std::size_t r = 0; r < dim; ++r) {
        double want = has_output ? heads.output->bias[r] : twin.interest[r];
        double tolerance = has_output ? 0 : twin.tolerances[r];
        double size = std::abs(want);
        for (std::size_t d = 0; has_output && d < 6; ++d) {
          const double weight = heads.output->weight.data[6 * r + d];
          want += weight * twin.interest[d];
          size += std::abs(weight * twin.interest[d]);
          tolerance += std::abs(weight) * twin.tolerances[d];
        }
        // Through W_O, two products a head are rounded and added as floats, the
        // sums of heads as doubles, and the total is rounded.
        if (has_output) tolerance += 3.01 * 0x1p-24 * size;
        EXPECT_NEAR(ranked.interests.view().Row(i)[r], want, tolerance);
      }
      const auto at = static_cast<std::size_t>(i);
      EXPECT_NEAR(ranked.scores[at], twin.mean_logit, twin.logit_tolerance);
      // A weight is rounded to a float before the mean.
      const double relative = twin.log_tolerance + 0x1p-23;
      std::vector<double> unnamed = twin.weights;
      ASSERT_THAT(ranked.attributions[at], SizeIs(3));
      for (const EventWeight& event : ranked.attributions[at]) {
        double& want = unnamed[event.event];
        EXPECT_NEAR(event.weight, want, want * relative);
        want = 0;
      }
      const double last = ranked.attributions[at].back().weight;
      EXPECT_LE(*std::ranges::max_element(unnamed), last * (1 + 2 * relative));
    }
  }
}

// More candidates than one block, with a short history: W_O's sums are held for
// one block at a time.
TEST(RankByLshTest, MemoryDoesNotGrowWithOutputs) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  GTEST_SKIP() << "the sanitizer keeps memory for each byte that is touched";
#endif
  constexpr std::int64_t kCandidates = 2048;
  constexpr std::int64_t kOutputs = 8192;
  const Matrix candidates = Normals(kCandidates, 2, 81);
  const Matrix events = Normals(2, 2, 82);
  MultiHeadProjections heads;
  heads.query = heads.key = {Normals(2, 2, 83), {}};
  heads.output = Projection{Normals(kOutputs, 2, 84), {}};
  RankInput input;
  input.heads = &heads;
  input.candidates = candidates.view();
  input.keys = input.values = events.view();
  input.approximation = LshAttentionOptions{};
  const PeakMemory memory;
  ASSERT_OK_AND_ASSIGN(const RankedInterests ranked, RankCandidates(input));
  const auto result =
      static_cast<std::int64_t>(ranked.interests.data.size() * sizeof(float));
  // Sums in doubles for all candidates would alone take twice the result.
  EXPECT_LT(memory.added(), 2 * result);
}

TEST_F(RankApproximatelyTest, LinformerRanksByReducedEvents) {
  // The events before the time; there are as many rows as events.
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

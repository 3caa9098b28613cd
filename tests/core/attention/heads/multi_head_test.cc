#include "core/attention/heads/multi_head.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "tests/support/multi_head_twin.h"
#include "tests/support/split_mix.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Queries, keys and values of one head, and its answer.
struct Problem {
  Matrix queries;
  Matrix keys;
  Matrix values;
  MultiHeadInput input;
  std::vector<float> outputs;
  std::vector<float> weights;

  Problem(std::int64_t m, std::int64_t n, std::int64_t dim,
          std::int64_t value_dim, double scale = 1) {
    SplitMix random(static_cast<std::uint64_t>(m * 1000003 + n * 101 + dim));
    queries = {m, dim, random.Floats(m * dim, scale)};
    keys = {n, dim, random.Floats(n * dim, scale)};
    values = {n, value_dim, random.Floats(n * value_dim)};
  }

  absl::StatusOr<std::int64_t> Attend(bool wants_weights = true) {
    input.queries = queries.view();
    input.keys = keys.view();
    input.values = values.view();
    outputs.assign(
        static_cast<std::size_t>(queries.row_count * input.output_dim()), -7);
    weights.assign(static_cast<std::size_t>(input.head_count() *
                                            queries.row_count * keys.row_count),
                   -7);
    return AttendMultiHead(input, outputs.data(),
                           wants_weights ? weights.data() : nullptr);
  }

  std::span<float> KeyRow(std::int64_t i) {
    return {keys.data.data() + i * keys.column_count,
            static_cast<std::size_t>(keys.column_count)};
  }
};

void ExpectTwin(const Problem& problem, const TwinAnswer& twin) {
  const std::int64_t n = problem.keys.row_count;
  for (std::size_t i = 0; i < problem.outputs.size(); ++i) {
    const std::size_t query =
        i / static_cast<std::size_t>(problem.values.column_count);
    ASSERT_NEAR(problem.outputs[i], twin.outputs[i], twin.tolerances[query])
        << "component " << i;
  }
  for (std::size_t i = 0; i < problem.weights.size(); ++i) {
    const double want = twin.weights[i];
    if (want == 0) {
      ASSERT_EQ(problem.weights[i], 0) << i;
    } else if (want > 1e-30) {
      // One last rounding to float.
      ASSERT_NEAR(std::log(problem.weights[i] / want), 0,
                  twin.log_tolerances[i / static_cast<std::size_t>(n)] + 1.2e-7)
          << i;
    }
  }
}

TEST(MultiHeadTest, TilesEqualTheWholeMatrix) {
  // Sizes around those of a tile (128 keys), a scoring block (64 queries) and
  // registers.
  for (const std::int64_t m : {1, 63, 64, 65}) {
    for (const std::int64_t n : {1, 127, 128, 129, 300}) {
      for (const ScoreKind kind :
           {ScoreKind::kDot, ScoreKind::kScaledDot, ScoreKind::kCosine}) {
        Problem problem(m, n, 17, 9);
        problem.input.score_kind = kind;
        problem.input.temperature = .5;
        ASSERT_OK_AND_ASSIGN(const std::int64_t scored, problem.Attend());
        const TwinAnswer twin =
            AttendTwin(problem.queries.view(), problem.keys.view(),
                       problem.values.view(), kind, .5, NothingMasked);
        ExpectTwin(problem, twin);
        EXPECT_EQ(scored, m * n);
      }
    }
  }
}

TEST(MultiHeadTest, MoreQueriesThanABlockHolds) {
  Problem problem(2100, 130, 3, 2);
  ASSERT_OK(problem.Attend());
  ExpectTwin(problem, AttendTwin(problem.queries.view(), problem.keys.view(),
                                 problem.values.view(), ScoreKind::kScaledDot,
                                 1, NothingMasked));
}

TEST(MultiHeadTest, MasksEqualTheWholeMatrix) {
  Problem problem(150, 290, 8, 5);
  SplitMix random(7);
  std::vector<std::int32_t> attended;
  for (std::int32_t i = 289; i >= 0; --i) {
    if (random.Next() % 3 != 0) attended.push_back(i);
  }
  std::vector<std::uint8_t> forbidden(150 * 290);
  for (auto& entry : forbidden) entry = random.Next() % 4 == 0;
  std::vector<absl::Time> times;
  for (std::int64_t i = 0; i < 290; ++i) {
    times.push_back(
        absl::FromUnixSeconds(static_cast<std::int64_t>(random.Next() % 100)));
  }
  std::vector<bool> listed(290);
  for (const std::int32_t i : attended) {
    listed[i] = true;
  }
  for (const bool causal : {false, true}) {
    problem.input.mask = {.causal = causal,
                          .attended = attended,
                          .forbidden = forbidden,
                          .key_times = times,
                          .query_time = absl::FromUnixSeconds(70)};
    ASSERT_OK_AND_ASSIGN(const std::int64_t scored, problem.Attend());
    const TwinAnswer twin = AttendTwin(
        problem.queries.view(), problem.keys.view(), problem.values.view(),
        ScoreKind::kScaledDot, 1, [&](std::int64_t i, std::int64_t j) {
          const auto key = static_cast<std::size_t>(j);
          return (causal && j > i) || !listed[key] ||
                 forbidden[i * 290 + j] != 0 ||
                 times[key] > absl::FromUnixSeconds(70);
        });
    ExpectTwin(problem, twin);
    EXPECT_EQ(scored, twin.scored_count);
  }
}

// True forbids, as in nn.MultiheadAttention; in PyTorch's
// scaled_dot_product_attention true allows.
TEST(MultiHeadTest, ForbiddenIsNotAttended) {
  Problem problem(1, 3, 2, 1);
  const std::vector<std::uint8_t> forbidden = {0, 1, 0};
  problem.input.mask.forbidden = forbidden;
  ASSERT_OK(problem.Attend());
  EXPECT_GT(problem.weights[0], 0);
  EXPECT_EQ(problem.weights[1], 0);
  EXPECT_GT(problem.weights[2], 0);
}

TEST(MultiHeadTest, AQueryWithoutKeysGetsZerosPastAllBiases) {
  Problem problem(2, 3, 4, 4);
  SplitMix random(3);
  const auto projection = [&] {
    return Projection{{4, 4, random.Floats(16)}, random.Floats(4)};
  };
  const MultiHeadProjections heads = {.head_count = 2,
                                      .query = projection(),
                                      .key = projection(),
                                      .value = projection(),
                                      .output = projection()};
  problem.input.heads = &heads;
  const std::vector<std::uint8_t> forbidden = {1, 1, 1, 0, 1, 0};
  problem.input.mask.forbidden = forbidden;
  ASSERT_OK(problem.Attend());
  for (std::size_t d = 0; d < 4; ++d) EXPECT_EQ(problem.outputs[d], 0);
  for (std::size_t d = 4; d < 8; ++d) EXPECT_NE(problem.outputs[d], 0);
  EXPECT_THAT(std::span(problem.weights).subspan(0, 3), Each(0));

  problem.input.mask = {};
  problem.input.mask.attended.emplace();
  ASSERT_OK_AND_ASSIGN(const std::int64_t scored, problem.Attend());
  EXPECT_EQ(scored, 0);
  EXPECT_THAT(problem.outputs, Each(0));
  EXPECT_THAT(problem.weights, Each(0));
}

TEST(MultiHeadTest, WhatIsMaskedForAllNeedNotBeFinite) {
  Problem problem(3, 200, 4, 4);
  Problem clean = problem;
  const std::vector<std::int32_t> attended = {5, 2, 150};
  problem.KeyRow(3)[1] = kNaN;
  problem.values.data[3 * 4] = kNaN;
  problem.KeyRow(199)[0] = std::numeric_limits<float>::infinity();
  problem.input.mask.attended = attended;
  clean.input.mask.attended = attended;
  ASSERT_OK(problem.Attend());
  ASSERT_OK(clean.Attend());
  EXPECT_EQ(problem.outputs, clean.outputs);
}

TEST(MultiHeadTest, AHeadIsOneBlockOfTheProjections) {
  SplitMix random(11);
  const auto projection = [&](std::int64_t rows, std::int64_t columns) {
    return Projection{{rows, columns, random.Floats(rows * columns)},
                      random.Floats(rows)};
  };
  // 3 heads with keys [5] and values [4]; the inputs have other dimensions.
  const MultiHeadProjections heads = {.head_count = 3,
                                      .query = projection(15, 7),
                                      .key = projection(15, 6),
                                      .value = projection(12, 8),
                                      .output = projection(10, 12)};
  for (const ScoreKind kind : {ScoreKind::kScaledDot, ScoreKind::kCosine}) {
    Problem all(70, 140, 7, 8);
    all.keys = {140, 6, random.Floats(140 * 6)};
    all.input.heads = &heads;
    all.input.score_kind = kind;
    ASSERT_OK(all.Attend());
    std::vector<float> joined(70 * 12);
    for (std::int64_t head = 0; head < 3; ++head) {
      const auto block = [&](const Projection& whole, const Matrix& rows) {
        const std::int64_t size = whole.output_dim() / 3;
        const auto weight =
            whole.weight.data.begin() + head * size * whole.input_dim();
        const auto bias = whole.bias.begin() + head * size;
        const Projection part = {{size,
                                  whole.input_dim(),
                                  {weight, weight + size * whole.input_dim()}},
                                 {bias, bias + size}};
        Matrix projected = {rows.row_count, size, {}};
        projected.data.resize(static_cast<std::size_t>(rows.row_count * size));
        ProjectRows(part, rows.view(), projected.data.data());
        return projected;
      };
      Problem one(70, 140, 5, 4);
      one.queries = block(heads.query, all.queries);
      one.keys = block(heads.key, all.keys);
      one.values = block(*heads.value, all.values);
      one.input.score_kind = kind;
      ASSERT_OK(one.Attend());
      const auto first = all.weights.begin() + head * 70 * 140;
      EXPECT_TRUE(std::equal(one.weights.begin(), one.weights.end(), first));
      for (std::int64_t i = 0; i < 70; ++i) {
        std::copy_n(one.outputs.begin() + i * 4, 4,
                    joined.begin() + i * 12 + head * 4);
      }
    }
    std::vector<float> outputs(70 * 10);
    ProjectRows(*heads.output, {joined.data(), 70, 12}, outputs.data());
    EXPECT_EQ(outputs, all.outputs);
  }
}

TEST(MultiHeadTest, AKeyBiasNeverChangesWeights) {
  SplitMix random(12);
  MultiHeadProjections heads = {
      .head_count = 2,
      .query = {{8, 8, random.Floats(64)}, random.Floats(8)},
      .key = {{8, 8, random.Floats(64)}, {}},
      .value = {},
      .output = {}};
  Problem without(20, 150, 8, 3);
  without.input.heads = &heads;
  ASSERT_OK(without.Attend());
  heads.key.bias = random.Floats(8);
  Problem with(20, 150, 8, 3);
  with.input.heads = &heads;
  ASSERT_OK(with.Attend());
  // |q| and |k| are below 8 x 1 + 1 a component, with 4 components. c(d) = 2 (d
  // + 3) roundings in each of the two answers, the projections' 9 included.
  const double tolerance =
      2 * 2 * (4 + 3 + 2 * 9) * std::ldexp(1.0, -24) * 4 * 9 * 9 / 2 + 4e-6;
  for (std::size_t i = 0; i < with.weights.size(); ++i) {
    EXPECT_NEAR(with.weights[i], without.weights[i],
                tolerance * without.weights[i]);
  }
  EXPECT_NE(with.weights, without.weights) << "the bias was not applied";
}

TEST(MultiHeadTest, ProjectingValuesBeforePoolingEqualsAfter) {
  SplitMix random(13);
  const Projection identity = {{2, 2, {1, 0, 0, 1}}, {}};
  const Projection value = {{3, 5, random.Floats(15)}, {}};
  const MultiHeadProjections before = {.head_count = 1,
                                       .query = identity,
                                       .key = identity,
                                       .value = value,
                                       .output = {}};
  const MultiHeadProjections after = {.head_count = 1,
                                      .query = identity,
                                      .key = identity,
                                      .value = {},
                                      .output = value};
  Problem a(10, 300, 2, 5);
  a.input.heads = &before;
  Problem b(10, 300, 2, 5);
  b.input.heads = &after;
  ASSERT_OK(a.Attend());
  ASSERT_OK(b.Attend());
  EXPECT_EQ(a.weights, b.weights);
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    // 5 products of at most 1, each rounded along with a tile's 128 terms.
    EXPECT_NEAR(a.outputs[i], b.outputs[i], 2 * 5 * 140 * std::ldexp(1, -24));
  }
}

TEST(MultiHeadTest, HugeLogitsGiveOrdinaryWeights) {
  Problem problem(4, 200, 2, 3, 100);  // logits to +-1e4 x 2
  problem.input.score_kind = ScoreKind::kDot;
  ASSERT_OK(problem.Attend());
  for (const float output : problem.outputs) {
    EXPECT_TRUE(std::isfinite(output));
  }
  for (std::int64_t i = 0; i < 4; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < 200; ++j) {
      sum += problem.weights[i * 200 + j];
    }
    EXPECT_NEAR(sum, 1, 200 * std::ldexp(1.0, -24));
  }
}

// 1e30 x 1e9 overflows a float, but a masked pair's logit is never used.
TEST(MultiHeadTest, WhatIsMaskedMayOverflow) {
  Problem problem(2, 2, 1, 1);
  problem.queries.data = {1e30f, 1};
  problem.keys.data = {1, 1e9f};
  problem.values.data = {3, 5};
  problem.input.score_kind = ScoreKind::kDot;
  const auto overflows =
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("queries[0]: got a logit that overflows"));
  EXPECT_THAT(problem.Attend(), overflows);
  const std::vector<std::uint8_t> forbidden = {0, 1, 0, 0};
  for (const bool causal : {false, true}) {
    problem.input.mask = {};
    problem.input.mask.causal = causal;
    if (!causal) problem.input.mask.forbidden = forbidden;
    ASSERT_OK_AND_ASSIGN(const std::int64_t scored, problem.Attend());
    EXPECT_EQ(scored, 3);
    EXPECT_THAT(problem.outputs, ElementsAre(3, 5));
    EXPECT_THAT(problem.weights, ElementsAre(1, 0, 0, 1));
  }
  // The same pair is refused when it is not masked.
  problem.input.mask = {};
  problem.input.mask.causal = true;
  problem.keys.data = {1e9f, 1};
  EXPECT_THAT(problem.Attend(), overflows);
}

// The mean of floats is a float, even if their sum overflows.
TEST(MultiHeadTest, HugeValuesHaveTheirMean) {
  for (const float huge : {2e38f, -3e38f}) {
    Problem problem(3, 300, 4, 2);
    std::ranges::fill(problem.keys.data, 1.0f);
    for (std::size_t i = 0; i < problem.values.data.size(); i += 2) {
      problem.values.data[i] = huge;
      problem.values.data[i + 1] = 1;
    }
    ASSERT_OK(problem.Attend());
    for (std::size_t i = 0; i < problem.outputs.size(); i += 2) {
      // 300 equal weights, each rounded to a float, and their sum.
      EXPECT_NEAR(problem.outputs[i] / huge, 1, 302 * 0x1p-24);
      EXPECT_NEAR(problem.outputs[i + 1], 1, 302 * 0x1p-24);
    }
  }
}

TEST(MultiHeadTest, TemperatureIsTheKnobItSaysItIs) {
  Problem sharp(5, 50, 4, 2);
  Problem flat(5, 50, 4, 2);
  sharp.input.temperature = 1e-3;
  flat.input.temperature = 1e6;
  ASSERT_OK(sharp.Attend());
  ASSERT_OK(flat.Attend());
  EXPECT_GT(
      *std::max_element(sharp.weights.begin(), sharp.weights.begin() + 50),
      .99);
  for (const float weight : flat.weights) EXPECT_NEAR(weight, .02, 1e-6);
}

TEST(MultiHeadTest, ActivationsAgreeWithTheirFormulas) {
  for (const ActivationKind kind :
       {ActivationKind::kSigmoid, ActivationKind::kNone}) {
    Problem problem(3, 200, 4, 2, 8);
    problem.input.activation_kind = kind;
    problem.input.mask.causal = true;
    ASSERT_OK(problem.Attend(/*wants_weights=*/false));
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t d = 0; d < 2; ++d) {
        double want = 0;
        double magnitude = 0;
        for (std::int64_t j = 0; j <= i; ++j) {
          double logit = 0;
          for (std::int64_t c = 0; c < 4; ++c) {
            logit += double{problem.queries.view().Row(i)[c]} *
                     problem.KeyRow(j)[c] / 2;
          }
          const double weight = kind == ActivationKind::kNone
                                    ? logit
                                    : 1 / (1 + std::exp(-logit));
          want += weight * problem.values.view().Row(j)[d];
          // A logit of 4 components, each up to 8, is rounded 6 times.
          magnitude += std::abs(weight) + 4 * 8 * 8 / 2;
        }
        EXPECT_NEAR(problem.outputs[i * 2 + d], want,
                    magnitude * (6 + 131) * std::ldexp(1.0, -24));
      }
    }
  }
}

TEST(MultiHeadTest, RefusesWhatItCannotAttendWith) {
  const auto refusal = [](const std::function<void(Problem&)>& change) {
    Problem problem(2, 3, 4, 2);
    change(problem);
    return problem.Attend().status();
  };
  const auto invalid = [](const char* message) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message));
  };
  EXPECT_THAT(refusal([](Problem& p) { p.queries.data[5] = kNaN; }),
              invalid("queries[1][1]: got nan"));
  EXPECT_THAT(refusal([](Problem& p) { p.keys.data[0] = kNaN; }),
              invalid("keys[0][0]: got nan"));
  EXPECT_THAT(refusal([](Problem& p) { p.values.data[3] = kNaN; }),
              invalid("values[1][1]: got nan"));
  EXPECT_THAT(refusal([](Problem& p) { p.input.temperature = 0; }),
              invalid("temperature"));
  EXPECT_THAT(refusal([](Problem& p) {
                p.queries.data[0] = 3e30f;
                p.keys.data[0] = 3e30f;
              }),
              invalid("queries[0]: got a logit that overflows"));
  const absl::Status overflow =
      refusal([](Problem& p) { p.input.temperature = 1e-300; });
  EXPECT_THAT(overflow, invalid("a logit that overflows"));
  EXPECT_EQ(ReasonOf(overflow), "LOGIT_OVERFLOW");
  EXPECT_THAT(refusal([](Problem& p) {
                p.keys = {3, 5, std::vector<float>(15)};
              }),
              invalid("keys: got vectors of 5 components"));
  EXPECT_THAT(
      refusal([](Problem& p) { p.input.score_kind = ScoreKind::kAdditive; }),
      invalid("score_kind: got ADDITIVE"));
  EXPECT_THAT(refusal([](Problem& p) {
                p.input.activation_kind = ActivationKind::kNone;
              }),
              invalid("activation_kind"));
  const std::vector<std::int32_t> outside = {3};
  EXPECT_THAT(refusal([&](Problem& p) { p.input.mask.attended = outside; }),
              invalid("mask.attended: got 3"));
}

TEST(MultiHeadTest, UnderCosineANormOfZeroHasSimilarityZero) {
  Problem problem(2, 3, 2, 1);
  problem.queries.data = {0, 0, 2, 0};
  problem.keys.data = {5, 0, 0, 0, 0, 1};
  problem.values.data = {1, 2, 4};
  problem.input.score_kind = ScoreKind::kCosine;
  problem.input.temperature = 1 / std::log(2.0);
  ASSERT_OK(problem.Attend());
  // Logits 0, 0, 0 and ln 2, 0, 0.
  const float want[] = {1 / 3.f, 1 / 3.f, 1 / 3.f, 2 / 4.f, 1 / 4.f, 1 / 4.f};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(problem.weights[i], want[i], 1e-6) << i;
  }
  EXPECT_NEAR(problem.outputs[0], 7 / 3.f, 1e-5);
  EXPECT_NEAR(problem.outputs[1], 2, 1e-5);
}

// 64 heads of 1,024 components: 512 KiB of sums a query.
MultiHeadProjections WideHeads(bool joined) {
  SplitMix random(6);
  MultiHeadProjections heads;
  heads.head_count = 64;
  heads.query = {{64, 8, random.Floats(64 * 8)}, {}};
  heads.key = {{64, 8, random.Floats(64 * 8)}, {}};
  if (joined) heads.output = {{{1, 65536, random.Floats(65536)}, {}}};
  return heads;
}

std::int64_t PeakBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

TEST(MultiHeadTest, ABlockOfWideHeadsStaysSmall) {
  const MultiHeadProjections heads = WideHeads(true);
  Problem problem(256, 2, 8, 1024);
  problem.input.heads = &heads;
  const std::int64_t before = PeakBytes();
  ASSERT_OK(problem.Attend(false));
  // The sums of all queries at once would take 128 MiB.
  EXPECT_LT(PeakBytes() - before, 48 << 20);
}

TEST(MultiHeadTest, BlocksOfWideHeadsGiveWhatQueriesAloneGive) {
  const MultiHeadProjections heads = WideHeads(false);
  Problem problem(34, 3, 8, 1024);
  problem.input.heads = &heads;
  ASSERT_OK(problem.Attend());
  const std::vector<float> outputs = problem.outputs;
  const std::vector<float> weights = problem.weights;
  const Matrix queries = problem.queries;
  for (std::int64_t i = 0; i < 34; ++i) {
    const std::span<const float> row = queries.view().Row(i);
    problem.queries = {1, 8, {row.begin(), row.end()}};
    ASSERT_OK(problem.Attend());
    EXPECT_TRUE(std::equal(problem.outputs.begin(), problem.outputs.end(),
                           outputs.begin() + i * 65536))
        << i;
    for (std::int64_t head = 0; head < 64; ++head) {
      EXPECT_TRUE(std::equal(problem.weights.begin() + head * 3,
                             problem.weights.begin() + (head + 1) * 3,
                             weights.begin() + (head * 34 + i) * 3))
          << i;
    }
  }
}

TEST(MultiHeadTest, StopsWhenTold) {
  Problem problem(2, 3, 4, 2);
  const std::atomic<bool> cancelled = true;
  problem.input.interrupt.cancelled = &cancelled;
  EXPECT_EQ(problem.Attend().status().code(), absl::StatusCode::kCancelled);
  problem.input.interrupt = {.deadline = SteadyTime::min()};
  EXPECT_EQ(problem.Attend().status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

// The deadline passes during the work: 2^31 pairs would take seconds.
TEST(MultiHeadTest, StopsSoonAfterTheDeadline) {
  Problem problem(32768, 65536, 2, 2);
  const SteadyTime start = SteadyNow();
  problem.input.interrupt.deadline = start + std::chrono::milliseconds(20);
  problem.input.queries = problem.queries.view();
  problem.input.keys = problem.keys.view();
  problem.input.values = problem.values.view();
  std::vector<float> outputs(32768 * 2);
  EXPECT_EQ(AttendMultiHead(problem.input, outputs.data()).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  // The whole work takes about seven seconds, more under a sanitizer.
  EXPECT_LT(TimeSince(start), absl::Seconds(3));
}

}  // namespace
}  // namespace attendant

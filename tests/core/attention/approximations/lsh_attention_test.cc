// Attention within buckets, compared with plain loops in doubles and with exact
// attention where both must agree.
#include "core/attention/approximations/lsh_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/peak_memory.h"
#include "core/attention/approximations/approximation.h"
#include "core/attention/sequences/contextualize.h"
#include "tests/core/attention/approximations/approximation_twins.h"
#include "tests/support/multi_head_twin.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST(LshAttentionTest, AttendsToTheUnionOfBucketsExactly) {
  const Matrix queries = Normals(70, 6, 1);
  const Matrix keys = Normals(150, 6, 2);
  for (const ScoreKind kind : {ScoreKind::kScaledDot, ScoreKind::kCosine}) {
    for (const bool causal : {false, true}) {
      for (const std::int64_t rounds : {1, 3}) {
        LshAttentionOptions options;
        options.bucket_count = 10;
        options.round_count = rounds;
        const std::vector<bool> unmet = Unmet(queries, keys, options, causal);
        const TwinAnswer twin =
            AttendTwin(queries.view(), keys.view(), keys.view(), kind, 0.5,
                       [&](std::int64_t i, std::int64_t j) -> bool {
                         return unmet[i * keys.row_count + j];
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
            // A weight is rounded once more, to a float.
            EXPECT_NEAR(
                got.head_weights[0].data[at], twin.weights[at],
                twin.weights[at] * (twin.log_tolerances[row] + 0x1p-23));
          }
        }
      }
    }
  }
}

// Projections with positive entries only: positive tokens give positive vectors
// in each head. With one component a head, all of them share one bucket.
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
  input.approximation =
      LshAttentionOptions{.bucket_count = 2, .round_count = 2};
  ASSERT_OK_AND_ASSIGN(const SequenceContext lsh, Contextualize(input));
  EXPECT_EQ(lsh.scored_count, exact.scored_count);
  for (std::size_t i = 0; i < 40; ++i) {
    double max_gap = 0;  // between logits
    for (const Matrix& weights : exact.head_weights) {
      double least = 1;
      double greatest = 0;
      for (std::size_t j = 0; j < 40; ++j) {
        if (j == 3 || j == 17) continue;
        least = std::min(least, double{weights.data[i * 40 + j]});
        greatest = std::max(greatest, double{weights.data[i * 40 + j]});
      }
      ASSERT_GT(least, 0);
      max_gap = std::max(max_gap, std::log(greatest / least));
    }
    // All terms are positive, so relative errors don't grow. In units of 2^-24,
    // in each answer: an exp is off by 8 + gap, in numerator and denominator; a
    // weight by 1, the mean of 38 values by 39, four products and a bias by 5,
    // and one of them by its second order.
    const double roundings = 2 * (2 * (8 + max_gap) + 1 + 39 + 5 + 1);
    for (std::size_t d = 0; d < 5; ++d) {
      const double want = exact.outputs.data[i * 5 + d];
      EXPECT_NEAR(lsh.outputs.data[i * 5 + d], want,
                  roundings * 0x1p-24 * want);
    }
  }
  for (std::size_t head = 0; head < 2; ++head) {
    for (std::int64_t i = 0; i < 40; ++i) {
      for (const std::int32_t j : padding) {
        EXPECT_EQ(lsh.head_weights[head].data[i * 40 + j], 0);
      }
    }
  }
}

// Each head finds different keys, so the test notices if heads, values and
// outputs are combined in the wrong order.
TEST(LshAttentionTest, HeadsAreThoseOfOneHeadEach) {
  const Matrix tokens = Normals(60, 4, 31);
  constexpr std::int64_t kHeads = 3;
  MultiHeadProjections heads;
  heads.head_count = kHeads;
  heads.query = {Normals(kHeads * 2, 4, 32), {}};
  heads.key = {Normals(kHeads * 2, 4, 33), {}};
  MultiHeadInput input;
  input.queries = input.keys = input.values = tokens.view();
  input.mask.causal = true;
  const Approximation lsh =
      LshAttentionOptions{.bucket_count = 6, .round_count = 2};
  for (const bool projects_values : {false, true}) {
    if (projects_values) heads.value = {Normals(kHeads * 4, 4, 34), {}};
    std::vector<float> joined(60 * kHeads * 4);
    std::int64_t scored_count = 0;
    LastLshBuckets buckets;
    for (std::int64_t head = 0; head < kHeads; ++head) {
      const auto part = [&](const Matrix& from, std::int64_t dim) {
        const auto begin = from.data.begin() + head * dim * 4;
        return Projection{{dim, 4, std::vector<float>(begin, begin + dim * 4)},
                          {}};
      };
      MultiHeadProjections one;
      one.query = part(heads.query.weight, 2);
      one.key = part(heads.key.weight, 2);
      if (projects_values) one.value = part(heads.value->weight, 4);
      input.heads = &one;
      std::vector<float> outputs(60 * 4);
      ASSERT_OK_AND_ASSIGN(
          const std::int64_t scored,
          AttendApproximately(input, lsh, buckets, outputs.data()));
      scored_count += scored;
      for (std::int64_t i = 0; i < 60; ++i) {
        std::copy_n(outputs.begin() + i * 4, 4,
                    joined.begin() + (i * kHeads + head) * 4);
      }
    }
    input.heads = &heads;
    std::vector<float> got(joined.size());
    ASSERT_OK_AND_ASSIGN(const std::int64_t scored,
                         AttendApproximately(input, lsh, buckets, got.data()));
    EXPECT_EQ(scored, scored_count);
    EXPECT_EQ(got, joined);
    // The same through W_O.
    heads.output = Projection{Normals(5, kHeads * 4, 35), {1, 2, 3, 4, 5}};
    std::vector<float> projected(60 * 5);
    ASSERT_OK(
        AttendApproximately(input, lsh, buckets, projected.data()).status());
    for (std::size_t i = 0; i < 60; ++i) {
      for (std::size_t r = 0; r < 5; ++r) {
        double want = heads.output->bias[r];
        double size = want;
        for (std::size_t d = 0; d < kHeads * 4; ++d) {
          const double product = double{joined[i * kHeads * 4 + d]} *
                                 heads.output->weight.data[r * kHeads * 4 + d];
          want += product;
          size += std::abs(product);
        }
        // Twelve products, summed as floats by head.
        EXPECT_NEAR(projected[i * 5 + r], want, 16 * 0x1p-24 * size);
      }
    }
    heads.output.reset();
  }
}

// All heads share the input's values if no model projects them; keys and
// buckets are held for one head at a time.
TEST(LshAttentionTest, MemoryDoesNotGrowWithHeads) {
  constexpr std::int64_t kKeys = 2048;
  const Matrix tokens = Normals(kKeys, 512, 41);
  const Matrix query = Normals(1, 512, 42);
  MultiHeadProjections heads;
  heads.head_count = 256;
  heads.query = {Normals(256, 512, 43), {}};
  heads.key = {Normals(256, 512, 44), {}};
  const AttentionModel model = {heads};
  const AttentionModel* const layers[] = {&model};
  ContextualizeInput input;
  input.sequence = query.view();
  input.memory = tokens.view();
  input.layers = layers;
  input.approximation = LshAttentionOptions{.round_count = 1};
  const PeakMemory memory;
  ASSERT_OK(Contextualize(input).status());
  // Copying the values for each head would take 1,024 MiB.
  EXPECT_LT(memory.added(), 64 << 20);
}

TEST(LshAttentionTest, AHeadIsTakenInOnceInARow) {
  Matrix keys = Normals(20, 2, 45);
  const Matrix values = Normals(20, 2, 46);
  const Matrix query = Normals(1, 2, 47);
  MultiHeadProjections heads;
  heads.head_count = 2;
  heads.query = heads.key = {Normals(4, 2, 48), {}};
  MultiHeadInput input;
  input.heads = &heads;
  input.queries = query.view();
  input.keys = keys.view();
  input.values = values.view();
  const LshAttentionOptions options = {.bucket_count = 2};
  LshAttention attention(input, DrawBuckets(LshShapeOf(input, options)));
  const auto attend = [&](std::int64_t head) {
    EXPECT_OK(attention.LoadHead(head));
    std::vector<float> pooled(2);
    LshFound found;
    EXPECT_OK(attention.Attend(0, pooled.data(), found));
    return pooled;
  };
  const std::vector<float> first = attend(0);
  // Overwrites the keys in place: only code that reads them again notices.
  const Matrix others = Normals(20, 2, 49);
  std::copy(others.data.begin(), others.data.end(), keys.data.begin());
  EXPECT_EQ(attend(0), first);
  attend(1);
  EXPECT_NE(attend(0), first);
}

TEST(LshAttentionTest, WhatAllIsMaskedFromGetsZeros) {
  const Matrix tokens = Normals(2, 3, 1);
  const std::int32_t padding[] = {0, 1};
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.padding_positions = padding;
  input.approximation = LshAttentionOptions{};
  ASSERT_OK_AND_ASSIGN(const SequenceContext got, Contextualize(input));
  EXPECT_EQ(got.scored_count, 0);
  EXPECT_THAT(got.outputs.data, ::testing::Each(0));
}

TEST(LshAttentionTest, RefusesWhatExactAttentionRefuses) {
  Matrix tokens = Normals(4, 2, 1);
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.approximation = LshAttentionOptions{};
  tokens.data[5] = std::nanf("");
  EXPECT_THAT(Contextualize(input),
              StatusIs(kInvalid, HasSubstr("sequence[2]")));
  tokens.data[5] = 3e38f;
  EXPECT_THAT(Contextualize(input), StatusIs(kInvalid, HasSubstr("logit")));
}

}  // namespace
}  // namespace attendant

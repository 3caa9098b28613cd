#include "core/attention/sequences/contextualize.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "core/base/status.h"
#include "tests/support/look_counter.h"
#include "tests/support/multi_head_twin.h"
#include "tests/support/split_mix.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Matrix Tokens(std::int64_t count, std::int64_t dim, std::uint64_t seed = 1) {
  return {count, dim, SplitMix(seed).Floats(count * dim)};
}

Projection RandomProjection(std::int64_t rows, std::int64_t columns,
                            SplitMix& random) {
  return {{rows, columns, random.Floats(rows * columns, .5)},
          random.Floats(rows, .5)};
}

// Two heads, mapping dim to dim.
AttentionModel RandomModel(std::int64_t dim, std::uint64_t seed) {
  SplitMix random(seed);
  MultiHeadProjections heads;
  heads.head_count = 2;
  heads.query = RandomProjection(dim, dim, random);
  heads.key = RandomProjection(dim, dim, random);
  heads.value = RandomProjection(dim, dim, random);
  heads.output = RandomProjection(dim, dim, random);
  return {heads};
}

Matrix Permuted(const Matrix& rows, const std::vector<std::int32_t>& order) {
  Matrix permuted = {rows.row_count, rows.column_count, {}};
  for (const std::int32_t from : order) {
    const std::span<const float> row = rows.view().Row(from);
    permuted.data.insert(permuted.data.end(), row.begin(), row.end());
  }
  return permuted;
}

TEST(ContextualizeTest, TheTokensAreQueriesKeysAndValues) {
  const Matrix tokens = Tokens(140, 6);
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.include_weights = true;
  ASSERT_OK_AND_ASSIGN(const SequenceContext context, Contextualize(input));
  const TwinAnswer twin =
      AttendTwin(tokens.view(), tokens.view(), tokens.view(),
                 ScoreKind::kScaledDot, 1, NothingMasked);
  ASSERT_EQ(context.outputs.row_count, 140);
  ASSERT_EQ(context.outputs.column_count, 6);
  for (std::size_t i = 0; i < twin.outputs.size(); ++i) {
    EXPECT_NEAR(context.outputs.data[i], twin.outputs[i],
                twin.tolerances[i / 6]);
  }
  ASSERT_THAT(context.head_weights, SizeIs(1));
  for (std::size_t i = 0; i < twin.weights.size(); ++i) {
    EXPECT_NEAR(context.head_weights[0].data[i], twin.weights[i],
                twin.log_tolerances[i / 140] * twin.weights[i]);
  }
  EXPECT_EQ(context.scored_count, 140 * 140);
}

TEST(ContextualizeTest, PermutingTokensPermutesOutputsToTheBit) {
  const Matrix tokens = Tokens(300, 8);
  std::vector<std::int32_t> order(300);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(5);
  std::ranges::shuffle(order, random);
  const Matrix shuffled = Permuted(tokens, order);
  const AttentionModel first = RandomModel(8, 2);
  const AttentionModel second = RandomModel(8, 3);
  const AttentionModel* layers[] = {&first, &second};
  // Padding stays with its tokens.
  const std::vector<std::int32_t> padding = {4, 200};
  std::vector<std::int32_t> shuffled_padding;
  for (std::int32_t i = 0; i < 300; ++i) {
    if (order[i] == 4 || order[i] == 200) {
      shuffled_padding.push_back(i);
    }
  }
  for (const std::size_t layer_count : {0, 1, 2}) {
    ContextualizeInput input;
    input.layers = std::span(layers).first(layer_count);
    input.sequence = tokens.view();
    input.padding_positions = padding;
    ASSERT_OK_AND_ASSIGN(const SequenceContext context, Contextualize(input));
    input.sequence = shuffled.view();
    input.padding_positions = shuffled_padding;
    ASSERT_OK_AND_ASSIGN(const SequenceContext permuted, Contextualize(input));
    EXPECT_EQ(permuted.outputs, Permuted(context.outputs, order));
    EXPECT_NE(permuted.outputs, context.outputs);
    input.positions = PositionKind::kSinusoidal;
    ASSERT_OK_AND_ASSIGN(const SequenceContext placed, Contextualize(input));
    EXPECT_NE(placed.outputs, permuted.outputs);
  }
}

TEST(ContextualizeTest, ATokenOfACausalSequenceSeesNothingAfterIt) {
  const Matrix tokens = Tokens(200, 4);
  Matrix changed = tokens;
  for (std::size_t i = 150 * 4; i < changed.data.size(); ++i) {
    changed.data[i] += 1;
  }
  ContextualizeInput input;
  input.causal = true;
  input.include_weights = true;
  input.sequence = tokens.view();
  ASSERT_OK_AND_ASSIGN(const SequenceContext context, Contextualize(input));
  input.sequence = changed.view();
  ASSERT_OK_AND_ASSIGN(const SequenceContext other, Contextualize(input));
  EXPECT_TRUE(std::equal(context.outputs.data.begin(),
                         context.outputs.data.begin() + 150 * 4,
                         other.outputs.data.begin()));
  EXPECT_EQ(context.scored_count, 200 * 201 / 2);
  for (std::size_t i = 0; i < 200; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < 200; ++j) {
      const float weight = context.head_weights[0].data[i * 200 + j];
      if (j > i) {
        ASSERT_EQ(weight, 0);
      } else {
        EXPECT_GT(weight, 0);
      }
      sum += weight;
    }
    EXPECT_NEAR(sum, 1, 200 * std::ldexp(1.0, -24));
  }
}

TEST(ContextualizeTest, MemoryGivesKeysAndValues) {
  const Matrix latents = Tokens(3, 4, 1);
  const Matrix memory = Tokens(260, 4, 2);
  ContextualizeInput input;
  input.sequence = latents.view();
  input.memory = memory.view();
  ASSERT_OK_AND_ASSIGN(SequenceContext context, Contextualize(input));
  EXPECT_EQ(context.scored_count, 3 * 260);  // the Perceiver's cost
  TwinAnswer twin = AttendTwin(latents.view(), memory.view(), memory.view(),
                               ScoreKind::kScaledDot, 1, NothingMasked);
  for (std::size_t i = 0; i < twin.outputs.size(); ++i) {
    EXPECT_NEAR(context.outputs.data[i], twin.outputs[i],
                twin.tolerances[i / 4]);
  }
  // Position i of the sequence attends to positions 0 to i of the memory.
  input.causal = true;
  ASSERT_OK_AND_ASSIGN(context, Contextualize(input));
  EXPECT_EQ(context.scored_count, 1 + 2 + 3);
  EXPECT_TRUE(std::equal(memory.data.begin(), memory.data.begin() + 4,
                         context.outputs.data.begin()));
}

// As with PyTorch's key_padding_mask, the named positions are ignored.
TEST(ContextualizeTest, PaddingIsWhatNothingAttendsTo) {
  Matrix tokens = Tokens(5, 3);
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.include_weights = true;
  const std::vector<std::int32_t> padding = {1, 4, 1};
  input.padding_positions = padding;
  ASSERT_OK_AND_ASSIGN(const SequenceContext context, Contextualize(input));
  for (std::size_t i = 0; i < 25; ++i) {
    const bool padded = i % 5 == 1 || i % 5 == 4;
    EXPECT_EQ(context.head_weights[0].data[i] == 0, padded) << i;
  }
  EXPECT_EQ(context.scored_count, 5 * 3);
  const std::vector<std::int32_t> all = {0, 1, 2, 3, 4};
  input.padding_positions = all;
  ASSERT_OK_AND_ASSIGN(const SequenceContext nothing, Contextualize(input));
  EXPECT_THAT(nothing.outputs.data, Each(0));
  EXPECT_THAT(nothing.head_weights[0].data, Each(0));
}

TEST(ContextualizeTest, TwoLayersAreTwoCalls) {
  const AttentionModel first = RandomModel(6, 2);
  const AttentionModel second = RandomModel(6, 3);
  const AttentionModel* layers[] = {&first, &second};
  const Matrix tokens = Tokens(150, 6);
  const Matrix memory = Tokens(20, 6, 9);
  for (const bool causal : {false, true}) {
    for (const bool has_memory : {false, true}) {
      ContextualizeInput input;
      input.causal = causal;
      if (has_memory) input.memory = memory.view();
      input.include_weights = true;
      input.sequence = tokens.view();
      input.layers = layers;
      ASSERT_OK_AND_ASSIGN(const SequenceContext both, Contextualize(input));
      input.layers = std::span(layers).first(1);
      ASSERT_OK_AND_ASSIGN(const SequenceContext one, Contextualize(input));
      input.sequence = one.outputs.view();
      input.layers = std::span(layers).last(1);
      ASSERT_OK_AND_ASSIGN(const SequenceContext two, Contextualize(input));
      EXPECT_EQ(both.outputs, two.outputs);
      EXPECT_EQ(both.head_weights, two.head_weights);
      EXPECT_EQ(both.scored_count, one.scored_count + two.scored_count);
      EXPECT_NE(both.outputs, one.outputs);
    }
  }
}

TEST(ContextualizeTest, SinusoidsAreThoseOfThePaper) {
  std::vector<float> rows(3 * 6, 1);
  ASSERT_OK(AddSinusoids(3, 6, {}, rows.data()));
  for (int position = 0; position < 3; ++position) {
    for (int i = 0; i < 3; ++i) {
      const double angle = position / std::pow(10000, 2 * i / 6.0);
      const std::size_t at = static_cast<std::size_t>(position * 6 + 2 * i);
      EXPECT_FLOAT_EQ(rows[at], static_cast<float>(1 + std::sin(angle)));
      EXPECT_FLOAT_EQ(rows[at + 1], static_cast<float>(1 + std::cos(angle)));
    }
  }
}

// W_Q rotates each pair of sine and cosine back by one position, so that a
// query resembles the key before it.
TEST(ContextualizeTest, AHeadThatRotatesByOneAttendsToThePrecedingToken) {
  constexpr std::int64_t kDim = 64;
  constexpr std::int64_t kTokens = 64;
  MultiHeadProjections heads;
  heads.query.weight =
      heads.key.weight = {kDim, kDim, std::vector<float>(kDim * kDim)};
  for (std::size_t i = 0; i < kDim; i += 2) {
    const double frequency = std::pow(10000, -static_cast<double>(i) / kDim);
    const auto cosine = static_cast<float>(std::cos(frequency));
    const auto sine = static_cast<float>(std::sin(frequency));
    // sin(a - f) = sin a cos f - cos a sin f; cos(a - f) = cos a cos f + ...
    heads.query.weight.data[i * kDim + i] = cosine;
    heads.query.weight.data[i * kDim + i + 1] = -sine;
    heads.query.weight.data[(i + 1) * kDim + i] = sine;
    heads.query.weight.data[(i + 1) * kDim + i + 1] = cosine;
    heads.key.weight.data[i * kDim + i] = 1;
    heads.key.weight.data[(i + 1) * kDim + i + 1] = 1;
  }
  const AttentionModel model = {heads};
  const AttentionModel* layers[] = {&model};
  const Matrix tokens = {kTokens, kDim, std::vector<float>(kTokens * kDim)};
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.layers = layers;
  input.temperature = .02;
  input.include_weights = true;
  input.positions = PositionKind::kSinusoidal;
  ASSERT_OK_AND_ASSIGN(const SequenceContext context, Contextualize(input));
  for (std::size_t i = 1; i < kTokens; ++i) {
    EXPECT_GE(context.head_weights[0].data[i * kTokens + i - 1], .99) << i;
  }
  // Without positions the effect disappears.
  input.positions = PositionKind::kNone;
  ASSERT_OK_AND_ASSIGN(const SequenceContext without, Contextualize(input));
  EXPECT_FLOAT_EQ(without.head_weights[0].data[0], 1.0f / kTokens);
}

TEST(ContextualizeTest, OnlyTheLastLayersWeightsAndOnlyWhenAsked) {
  const AttentionModel model = RandomModel(4, 2);
  const AttentionModel* layers[] = {&model};
  const Matrix tokens = Tokens(7, 4);
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.layers = layers;
  ASSERT_OK_AND_ASSIGN(SequenceContext context, Contextualize(input));
  EXPECT_THAT(context.head_weights, IsEmpty());
  input.include_weights = true;
  ASSERT_OK_AND_ASSIGN(context, Contextualize(input));
  ASSERT_THAT(context.head_weights, SizeIs(2));
  EXPECT_EQ(context.head_weights[1].row_count, 7);
  EXPECT_EQ(context.head_weights[1].column_count, 7);
}

TEST(ContextualizeTest, RefusalsNameTheField) {
  const Matrix tokens = Tokens(5, 4);
  const AttentionModel model = RandomModel(4, 2);
  const AttentionModel wider = RandomModel(6, 2);
  const AttentionModel bilinear = {BilinearForm{{4, 4, Tokens(4, 4).data}}};
  const auto refusal =
      [&](const std::function<void(ContextualizeInput&)>& set) {
        ContextualizeInput input;
        input.sequence = tokens.view();
        set(input);
        return Contextualize(input).status();
      };
  const AttentionModel* second_is_wider[] = {&model, &wider};
  EXPECT_EQ(FieldOf(refusal([&](ContextualizeInput& input) {
              input.layers = second_is_wider;
            })),
            "layers[1]");
  const AttentionModel* other_kind[] = {&bilinear};
  EXPECT_EQ(FieldOf(refusal(
                [&](ContextualizeInput& input) { input.layers = other_kind; })),
            "layers[0]");
  const std::vector<std::int32_t> outside = {0, 5};
  EXPECT_EQ(FieldOf(refusal([&](ContextualizeInput& input) {
              input.padding_positions = outside;
            })),
            "padding_positions[1]");
  EXPECT_EQ(FieldOf(refusal(
                [&](ContextualizeInput& input) { input.temperature = -1; })),
            "temperature");
  EXPECT_EQ(FieldOf(refusal([&](ContextualizeInput& input) {
              input.sequence.row_count = 0;
            })),
            "sequence");
  const Matrix narrow = Tokens(3, 2);
  EXPECT_THAT(
      refusal([&](ContextualizeInput& input) { input.memory = narrow.view(); }),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("memory: got vectors of 2 components")));
  const Matrix many = Tokens(513, 2);
  EXPECT_THAT(refusal([&](ContextualizeInput& input) {
                input.sequence = many.view();
                input.include_weights = true;
              }),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("include_weights: got true with 513")));
}

TEST(ContextualizeTest, WhatALayerMakesOfNormZeroHasSimilarityZero) {
  // The first layer removes the second component, and with it token 1 and the
  // direction of its output.
  MultiHeadProjections heads;
  heads.query = heads.key = {{2, 2, {1, 0, 0, 0}}, {}};
  heads.value = {{{2, 2, {0, 0, 0, 0}}, {}}};
  const AttentionModel first = {heads};
  heads.query = heads.key = {{2, 2, {1, 0, 0, 1}}, {}};
  const AttentionModel second = {heads};
  const AttentionModel* layers[] = {&first, &second};
  const Matrix tokens = {2, 2, {1, 0, 0, 1}};
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.layers = std::span(layers).first(1);
  input.score_kind = ScoreKind::kCosine;
  input.temperature = 1 / std::log(3.0);
  input.include_weights = true;
  ASSERT_OK_AND_ASSIGN(SequenceContext context, Contextualize(input));
  // Logits ln 3, 0 and 0, 0.
  const float want[] = {.75f, .25f, .5f, .5f};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(context.head_weights[0].data[i], want[i], 1e-6) << i;
  }
  input.layers = layers;
  ASSERT_OK_AND_ASSIGN(context, Contextualize(input));
  EXPECT_THAT(context.head_weights[0].data, Each(.5f));
}

std::int64_t LooksOf(ContextualizeInput input) {
  LookCounter looks;
  input.interrupt = looks.interrupt();
  EXPECT_OK(Contextualize(input));
  return looks.count;
}

// Computing sines takes as long as the request is large.
TEST(ContextualizeTest, LooksAtTheInterruptForEachPosition) {
  const Matrix tokens = Tokens(40, 4);
  const Matrix memory = Tokens(70, 4, 2);
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.memory = memory.view();
  const std::int64_t without = LooksOf(input);
  input.positions = PositionKind::kSinusoidal;
  EXPECT_EQ(LooksOf(input), without + 40 + 70);

  const std::atomic<bool> cancelled = true;
  std::vector<float> rows(6);
  EXPECT_THAT(AddSinusoids(3, 2, {.cancelled = &cancelled}, rows.data()),
              StatusIs(absl::StatusCode::kCancelled, testing::_));
}

// Sorting takes longer the more alike the rows are, and only a layer's own
// outputs are sorted.
TEST(ContextualizeTest, LooksAtTheInterruptWhileItSorts) {
  const Matrix tokens = Tokens(2, 4);
  const Matrix memory = Tokens(100, 4, 2);
  const AttentionModel model = RandomModel(4, 2);
  const AttentionModel* layers[] = {&model, &model, &model};
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.memory = memory.view();
  const auto looks_by = [&](std::size_t layer_count, bool causal) {
    input.layers = std::span(layers).first(layer_count);
    input.causal = causal;
    return LooksOf(input);
  };
  // A merge sort of 100 rows has 99 merges.
  EXPECT_EQ(looks_by(1, false), looks_by(1, true) + 99);
  EXPECT_EQ(looks_by(3, false), looks_by(3, true) + 99);
  input.memory.reset();
  input.sequence = memory.view();
  EXPECT_EQ(looks_by(3, false), looks_by(3, true) + 3 * 99);
}

std::int64_t PeakBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

TEST(ContextualizeTest, NoMatrixOfAllPairsIsHeld) {
  const Matrix tokens = Tokens(5000, 4);
  ContextualizeInput input;
  input.sequence = tokens.view();
  ASSERT_OK(Contextualize(input));
  const std::int64_t before = PeakBytes();
  const Matrix more = Tokens(10000, 4);
  input.sequence = more.view();
  ASSERT_OK(Contextualize(input));
  // The whole matrix of logits would take 400 MB; the tokens take 160 kB.
  EXPECT_LT(PeakBytes() - before, 8 << 20);
}

}  // namespace
}  // namespace attendant

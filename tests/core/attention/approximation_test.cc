// Approximate attention against plain loops in doubles, and against what it
// approximates where it must be the same.
#include "core/attention/approximation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "bench/peak_memory.h"
#include "core/attention/contextualize.h"
#include "core/attention/lsh_attention.h"
#include "core/attention/lsh_buckets.h"
#include "core/attention/normal.h"
#include "core/attention/rank_candidates.h"
#include "core/attention/row_reduction.h"
#include "core/base/status.h"
#include "tests/support/multi_head_twin.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Matrix Normals(std::int64_t rows, std::int64_t dim, std::uint64_t seed) {
  // Not of the generator that the approximations draw from.
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Matrix matrix = {rows, dim, {}};
  for (std::int64_t i = 0; i < rows * dim; ++i) {
    matrix.data.push_back(normal(random));
  }
  return matrix;
}

std::shared_ptr<const LshBuckets> Draw(const LshShape& shape) {
  return LshBuckets::Draw(shape, {}).value();
}

absl::StatusOr<Matrix> Reduced(MatrixView rows,
                               std::span<const std::int32_t> positions,
                               const LinformerOptions& options) {
  const MatrixView inputs[] = {rows};
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<Matrix> reduced,
                             ReduceRows(inputs, positions, options, {}));
  return std::move(reduced[0]);
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
    const auto shared = Draw({5, bucket_count, 3, 7});
    const LshBuckets& hash = *shared;
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
  const auto shared = Draw({3, 16, 4, 1});
  const LshBuckets& hash = *shared;
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

TEST(LshBucketsTest, AreDrawnOnceForLayersOfOneShape) {
  LastLshBuckets last;
  const LshShape shape = {3, 4, 2, 9};
  ASSERT_OK_AND_ASSIGN(const auto first, last.Get(shape, {}));
  ASSERT_OK_AND_ASSIGN(const auto second, last.Get(shape, {}));
  EXPECT_EQ(first, second);
  ASSERT_OK_AND_ASSIGN(const auto other, last.Get({3, 4, 2, 8}, {}));
  EXPECT_NE(first, other);
  EXPECT_NE(first->direction(0, 0)[0], other->direction(0, 0)[0]);
}

TEST(LshBucketsTest, TheDeadlineStopsTheDrawing) {
  EXPECT_THAT(
      LshBuckets::Draw({8, 4, 1, 1}, {.deadline = SteadyTime::min()}).status(),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("deadline")));
}

TEST(LshBucketsTest, AreNeverMoreThanKeys) {
  const Matrix tokens = Normals(7, 3, 1);
  MultiHeadInput input;
  input.queries = input.keys = input.values = tokens.view();
  EXPECT_EQ(LshShapeOf(input, {.bucket_count = 4096}).bucket_count, 8);
  EXPECT_EQ(LshShapeOf(input, {.bucket_count = 4}).bucket_count, 4);
  EXPECT_EQ(LshShapeOf(input, {}).bucket_count, 2);
}

std::vector<float> Filled(NormalUse use, std::uint64_t seed,
                          std::uint64_t first, std::size_t count) {
  std::vector<float> normals(count);
  FillNormals(use, seed, first, normals);
  return normals;
}

// The mean product of a[i] and b[i].
double Correlation(std::span<const float> a, std::span<const float> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) /
         static_cast<double>(a.size());
}

TEST(FillNormalsTest, HasMeanZeroAndVarianceOneAndNoCorrelation) {
  constexpr std::size_t kCount = 100001;
  const std::vector<float> normals =
      Filled(NormalUse::kHashDirections, 5, 0, kCount);
  const double deviation = 1 / std::sqrt(kCount);
  // Five standard errors: 1 / sqrt(n) and sqrt(2 / n).
  EXPECT_NEAR(std::accumulate(normals.begin(), normals.end(), 0.0) / kCount, 0,
              5 * deviation);
  EXPECT_NEAR(Correlation(normals, normals), 1, 5 * std::sqrt(2.0) * deviation);
  // Of both of a pair, and of one with the next pair's.
  const std::span<const float> all(normals);
  for (const std::size_t lag : {1u, 2u}) {
    EXPECT_NEAR(Correlation(all.first(kCount - lag), all.last(kCount - lag)), 0,
                5 * deviation);
  }
}

TEST(FillNormalsTest, WhereItBeginsDoesNotMatter) {
  const auto all = Filled(NormalUse::kRowReduction, 3, 0, 9);
  const auto later = Filled(NormalUse::kRowReduction, 3, 4, 5);
  EXPECT_TRUE(std::equal(later.begin(), later.end(), all.begin() + 4));
}

TEST(FillNormalsTest, UsesOfOneSeedAreIndependent) {
  constexpr std::size_t kCount = 100000;
  const double bound = 5 / std::sqrt(kCount);
  for (const std::uint64_t seed : {0u, 1u, 2u}) {
    const auto hash = Filled(NormalUse::kHashDirections, seed, 0, kCount);
    const auto rows = Filled(NormalUse::kRowReduction, seed, 0, kCount);
    const auto next = Filled(NormalUse::kHashDirections, seed + 1, 0, kCount);
    // What draws of that seed and equal counters perturb weights by.
    std::vector<float> noise;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      // Of variance 1, about a mean of 0.
      noise.push_back(static_cast<float>(
          std::sqrt(12.0) * (UniformFrom(RandomBits(seed, i)) - 0.5)));
    }
    EXPECT_NEAR(Correlation(hash, rows), 0, bound);
    EXPECT_NEAR(Correlation(hash, next), 0, bound);
    EXPECT_NEAR(Correlation(hash, noise), 0, bound);
    EXPECT_NEAR(Correlation(rows, noise), 0, bound);
  }
}

// Queries and keys that share no bucket, by the definition; those without any
// common bucket are masked from none.
std::vector<bool> Unmet(const Matrix& queries, const Matrix& keys,
                        const LshAttentionOptions& options, bool causal) {
  const auto shared = Draw({queries.column_count, options.bucket_count,
                            options.round_count, options.seed});
  const LshBuckets& hash = *shared;
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
        LshAttentionOptions options;
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
  input.approximation =
      LshAttentionOptions{.bucket_count = 2, .round_count = 2};
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

// Each head finds other keys, so that heads, values and outputs must be put
// together as they belong.
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
    // And through W_O.
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

// Values that no model projects are those of the input for every head; keys
// and buckets are held for one head at a time.
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
  // A copy of the values a head would be 1,024 MiB.
  EXPECT_LT(memory.added(), 64 << 20);
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

TEST(LinformerTest, RowsAreMeansOfSegments) {
  const Matrix rows = {5, 1, {1, 2, 3, 4, 5}};
  const std::int32_t positions[] = {4, 0, 1, 2, 3};
  ASSERT_OK_AND_ASSIGN(
      const Matrix reduced,
      Reduced(rows.view(), positions, LinformerOptions{.row_count = 2}));
  // Of rows 4, 0 and of 1, 2, 3.
  EXPECT_THAT(reduced.data, ::testing::ElementsAre(3, 3));
}

TEST(LinformerTest, RandomRowsAreOneMatrixTimesTheRows) {
  // Of an odd number: pairs of normals do not fill a row of the matrix.
  const Matrix keys = Normals(31, 2, 4);
  const Matrix values = Normals(31, 3, 5);
  std::vector<std::int32_t> positions(31);
  std::iota(positions.begin(), positions.end(), 0);
  const LinformerOptions options = {
      .row_count = 3, .kind = ReductionKind::kRandom, .seed = 9};
  const MatrixView inputs[] = {keys.view(), values.view()};
  ASSERT_OK_AND_ASSIGN(const std::vector<Matrix> reduced,
                       ReduceRows(inputs, positions, options, {}));
  ASSERT_THAT(reduced, SizeIs(2));
  for (std::size_t k = 0; k < 2; ++k) {
    const MatrixView rows = inputs[k];
    for (std::int64_t r = 0; r < 3; ++r) {
      const auto factors = Filled(NormalUse::kRowReduction, 9,
                                  static_cast<std::uint64_t>(r * 32), 31);
      for (std::size_t d = 0; d < static_cast<std::size_t>(rows.dim); ++d) {
        double want = 0;
        for (std::int64_t i = 0; i < 31; ++i) {
          want += factors[static_cast<std::size_t>(i)] / std::sqrt(3.0) *
                  rows.Row(i)[d];
        }
        // Doubles, rounded to a float.
        EXPECT_NEAR(reduced[k].view().Row(r)[d], want,
                    0x1p-23 * std::abs(want) + 1e-12);
      }
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

// Token 1 is not to blame for what is wrong with reduced row 1.
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

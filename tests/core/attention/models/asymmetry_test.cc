#include "core/attention/models/asymmetry.h"

#include <atomic>
#include <cmath>
#include <optional>

#include "tests/support/random_model.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::_;
using ::testing::Optional;

AttentionModel Heads(Matrix query, Matrix key) {
  MultiHeadProjections heads;
  heads.query.weight = std::move(query);
  heads.key.weight = std::move(key);
  return {heads};
}

std::optional<double> Told(const AttentionModel& model) {
  const absl::StatusOr<std::optional<double>> asymmetry = Asymmetry(model);
  EXPECT_OK(asymmetry);
  return asymmetry.value_or(std::nullopt);
}

// Asymmetry by its definition: builds S = W_Q^T W_K.
double AsymmetryOf(const Matrix& query, const Matrix& key) {
  const std::int64_t dim = query.column_count;
  std::vector<double> form(static_cast<std::size_t>(dim * dim));
  for (std::int64_t r = 0; r < query.row_count; ++r) {
    for (std::int64_t i = 0; i < dim; ++i) {
      for (std::int64_t j = 0; j < dim; ++j) {
        form[i * dim + j] +=
            static_cast<double>(query.view().Row(r)[i]) * key.view().Row(r)[j];
      }
    }
  }
  double square = 0;
  double difference = 0;
  for (std::int64_t i = 0; i < dim; ++i) {
    for (std::int64_t j = 0; j < dim; ++j) {
      const double ij = form[i * dim + j];
      const double ji = form[j * dim + i];
      square += ij * ij;
      difference += (ij - ji) * (ij - ji);
    }
  }
  return std::sqrt(difference / square);
}

// More rows than columns, as many, and fewer: each side has its own way of
// summing.
TEST(AsymmetryTest, IsWhatTheDefinitionSays) {
  RandomFloats random(1);
  for (const std::int64_t rows : {1, 5, 8, 9, 40}) {
    const Matrix query = random.Matrix(rows, 9);
    const Matrix key = random.Matrix(rows, 9);
    // The traces are off by about 2^-53 x |W_Q|^2 |W_K|^2 at most, which here
    // is within 40 x 9 x |S|^2; the root at most doubles their relative error.
    EXPECT_THAT(
        Told(Heads(query, key)),
        Optional(::testing::DoubleNear(AsymmetryOf(query, key), 720 * 0x1p-53)))
        << rows;
  }
}

TEST(AsymmetryTest, TiedProjectionsAreSymmetricExactly) {
  RandomFloats random(1);
  for (const std::int64_t rows : {3, 9, 40}) {
    const Matrix weight = random.Matrix(rows, 9);
    EXPECT_THAT(Told(Heads(weight, weight)), Optional(0.0)) << rows;
  }
}

// Biases are not part of the bilinear form; heads are summed.
TEST(AsymmetryTest, CountsAllHeadsAndNoBias) {
  AttentionModel model = Heads({2, 2, {1, 0, 0, 1}}, {2, 2, {0, 1, -1, 0}});
  EXPECT_THAT(Told(model), Optional(2.0));  // S = -S^T
  auto& heads = std::get<MultiHeadProjections>(model.kind);
  heads.head_count = 2;
  heads.key.bias = {5, 7};
  EXPECT_THAT(Told(model), Optional(2.0));
}

TEST(AsymmetryTest, OfABilinearForm) {
  EXPECT_THAT(Told({BilinearForm{{2, 2, {1, 2, 2, 5}}}}), Optional(0.0));
  // |S - S^T|^2 = 2, |S|^2 = 1.
  EXPECT_THAT(Told({BilinearForm{{2, 2, {0, 1, 0, 0}}}}),
              Optional(std::sqrt(2.0)));
  EXPECT_THAT(Told({BilinearForm{{2, 2, {0, 0, 0, 0}}}}), Optional(0.0));
}

// "Hans says that he ...": "he" attends to the name that it refers to, but the
// name does not attend to "he". A single projection for queries and keys can't
// express that.
TEST(AsymmetryTest, HeLooksForHansAndHansNotForHe) {
  const std::vector<float> hans = {1, 0, 0};
  const std::vector<float> he = {0, 1, 0};
  const std::vector<float> says = {0, 0, 1};
  const auto similarity = [](const AttentionModel& model,
                             const std::vector<float>& from,
                             const std::vector<float>& to) {
    const MultiHeadProjections& heads = *model.multi_head();
    std::vector<float> query(2);
    std::vector<float> key(2);
    Project(heads.query, from, query);
    Project(heads.key, to, key);
    return query[0] * key[0] + query[1] * key[1];
  };
  // A query says what a token looks for (a name, a subject), a key what the
  // token is.
  const Matrix wants = {2, 3, {0, 3, 0, 0, 0, 2}};
  const Matrix is = {2, 3, {1, 0, 0, 1, 1, 0}};
  const AttentionModel separate = Heads(wants, is);
  EXPECT_GT(similarity(separate, he, hans), similarity(separate, hans, he));
  EXPECT_GT(similarity(separate, he, hans), similarity(separate, he, says));
  EXPECT_GT(Told(separate).value_or(0), 0);
  for (const Matrix& weight : {wants, is}) {
    const AttentionModel tied = Heads(weight, weight);
    for (const auto& [a, b] :
         {std::pair{he, hans}, std::pair{says, he}, std::pair{hans, says}}) {
      EXPECT_EQ(similarity(tied, a, b), similarity(tied, b, a));
    }
    EXPECT_EQ(Told(tied), 0.0);
  }
}

TEST(AsymmetryTest, IsAbsentWhereThereIsNoSquareForm) {
  EXPECT_EQ(Told(RandomMultiHeadModel(1)), std::nullopt);
  EXPECT_EQ(Told(RandomBilinearModel(1)), std::nullopt);
  AdditiveNetwork network;
  network.query_weight = RandomFloats(1).Matrix(2, 3);
  network.key_weight = network.query_weight;
  network.output_weight = {1, 1};
  EXPECT_EQ(Told({network}), std::nullopt);
}

TEST(AsymmetryTest, LooksAtItsInterrupt) {
  const std::atomic<bool> cancelled = true;
  const Interrupt interrupt = {.cancelled = &cancelled};
  for (const std::int64_t rows : {3, 40}) {
    const Matrix weight = RandomFloats(1).Matrix(rows, 9);
    EXPECT_THAT(Asymmetry(Heads(weight, weight), interrupt),
                StatusIs(absl::StatusCode::kCancelled, _))
        << rows;
  }
}

}  // namespace
}  // namespace attendant

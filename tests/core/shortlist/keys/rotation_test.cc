#include "core/shortlist/keys/rotation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/dot.h"

namespace attendant {
namespace {

std::vector<float> RandomVector(std::int64_t dim, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> vector(static_cast<std::size_t>(dim));
  for (float& component : vector) component = normal(random);
  return vector;
}

class RotationOfDimTest : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(RotationOfDimTest, KeepsDotProducts) {
  const Rotation rotation(GetParam(), 5);
  const std::vector<float> a = RandomVector(GetParam(), 1);
  const std::vector<float> b = RandomVector(GetParam(), 2);
  std::vector<float> turned_a = a;
  std::vector<float> turned_b = b;
  rotation.Apply(turned_a.data());
  rotation.Apply(turned_b.data());
  // |Ra . Rb - a . b| is at most about twice the relative error.
  const double slack =
      3 * rotation.relative_error() * std::sqrt(Dot(a, a) * Dot(b, b));
  EXPECT_NEAR(Dot(turned_a, turned_b), Dot(a, b), slack);
  EXPECT_NEAR(Dot(turned_a, turned_a), Dot(a, a),
              3 * rotation.relative_error() * Dot(a, a));
}

TEST_P(RotationOfDimTest, IsUndone) {
  const Rotation rotation(GetParam(), 9);
  const std::vector<float> vector = RandomVector(GetParam(), 3);
  std::vector<float> turned = vector;
  rotation.Apply(turned.data());
  std::vector<double> back(turned.begin(), turned.end());
  rotation.Undo(back.data());
  // The inverse rotation errs no more than the rotation.
  const double slack =
      2 * rotation.relative_error() * std::sqrt(Dot(vector, vector));
  for (std::size_t d = 0; d < vector.size(); ++d) {
    EXPECT_NEAR(back[d], vector[d], slack);
  }
}

TEST_P(RotationOfDimTest, ABlockIsItsVectors) {
  const std::int64_t dim = GetParam();
  const Rotation rotation(dim, 6);
  std::vector<float> block(static_cast<std::size_t>(dim * 16));
  std::vector<std::vector<float>> vectors;
  for (std::size_t r = 0; r < 16; ++r) {
    vectors.push_back(RandomVector(dim, 10 + r));
    for (std::size_t d = 0; d < vectors[r].size(); ++d) {
      block[d * 16 + r] = vectors[r][d];
    }
  }
  rotation.ApplyToBlock(block.data());
  for (std::size_t r = 0; r < 16; ++r) {
    rotation.Apply(vectors[r].data());
    for (std::size_t d = 0; d < vectors[r].size(); ++d) {
      ASSERT_EQ(block[d * 16 + r], vectors[r][d]) << r << " " << d;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dims, RotationOfDimTest,
                         ::testing::Values(1, 2, 3, 7, 64, 100, 128, 300, 1000,
                                           4097, 8192));

TEST(RotationTest, SpreadsASingleComponentOverAll) {
  for (const std::int64_t dim : {64, 100, 128, 300}) {
    const Rotation rotation(dim, 7);
    for (std::int64_t d = 0; d < dim; d += 13) {
      std::vector<float> unit(static_cast<std::size_t>(dim));
      unit[d] = 1;
      rotation.Apply(unit.data());
      float greatest = 0;
      for (const float c : unit) greatest = std::max(greatest, std::abs(c));
      // Normal numbers of variance 1 / dim rarely exceed 5.5 deviations.
      EXPECT_LT(greatest, 5.5 / std::sqrt(static_cast<double>(dim)));
    }
  }
}

}  // namespace
}  // namespace attendant

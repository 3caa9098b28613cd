#include "core/shortlist/lists/nearest_centroid.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace attendant {
namespace {

constexpr double kRoundoff = 5.9604644775390625e-8;  // 2^-24

class NearestCentroidTest : public ::testing::Test {
 protected:
  // Returns rows in all directions, with norms spread by a factor of `spread`.
  std::vector<float> Rows(std::int64_t count, std::int64_t dim, float spread) {
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> log_norm(0, std::log(spread));
    std::vector<float> rows;
    for (std::int64_t r = 0; r < count; ++r) {
      const float factor = std::exp(log_norm(random_));
      for (std::int64_t d = 0; d < dim; ++d) {
        rows.push_back(factor * normal(random_));
      }
    }
    return rows;
  }

  // Finds the centroids of all rows, one block at a time; rows that were coded
  // in advance must get the same centroids.
  static std::vector<std::int32_t> Find(MatrixView rows, MatrixView centroids) {
    const NearestCentroid nearest(centroids);
    const CodedRows coded(rows, 3);
    NearestCentroid::Scratch scratch;
    const auto count = static_cast<std::size_t>(rows.row_count);
    std::vector<std::int32_t> found(count, -7);
    std::vector<std::int32_t> found_again(count, -7);
    for (std::int64_t begin = 0; begin < rows.row_count;
         begin += NearestCentroid::kBlockRows) {
      const MatrixView block = {
          rows.data + begin * rows.dim,
          std::min(NearestCentroid::kBlockRows, rows.row_count - begin),
          rows.dim};
      nearest.Find(block, found.data() + begin, scratch);
      nearest.Find(block, coded, begin, found_again.data() + begin, scratch);
    }
    EXPECT_EQ(found_again, found);
    return found;
  }

  std::mt19937 random_{20240607};
};

double SquaredDistance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) {
    sum += (double{a[d]} - b[d]) * (double{a[d]} - b[d]);
  }
  return sum;
}

double SquaredNorm(std::span<const float> a) {
  double sum = 0;
  for (const float component : a) sum += double{component} * component;
  return sum;
}

TEST_F(NearestCentroidTest, FindsTheLeastDistanceButForRoundings) {
  for (const std::int64_t dim : {1, 2, 7, 64, 129}) {
    for (const std::int64_t centroid_count : {1, 2, 15, 16, 17, 300}) {
      for (const float spread : {1.0f, 100.0f}) {
        const auto centroids = Rows(centroid_count, dim, spread);
        const auto rows = Rows(101, dim, spread);
        const MatrixView centroid_view = {centroids.data(), centroid_count,
                                          dim};
        const MatrixView row_view = {rows.data(), 101, dim};
        const auto found = Find(row_view, centroid_view);
        for (std::int64_t r = 0; r < 101; ++r) {
          const auto row = row_view.Row(r);
          double least = std::numeric_limits<double>::infinity();
          double greatest_norm = 0;
          for (std::int64_t c = 0; c < centroid_count; ++c) {
            const auto centroid = centroid_view.Row(c);
            least = std::min(least, SquaredDistance(row, centroid));
            greatest_norm =
                std::max(greatest_norm, std::sqrt(SquaredNorm(centroid)));
          }
          const auto i = static_cast<std::size_t>(r);
          // A score has at most dim + 1 roundings of its product and two of the
          // rest. Two scores are compared, each half a squared distance.
          const double norm = std::sqrt(SquaredNorm(row));
          const double tolerance =
              4 * kRoundoff *
              (static_cast<double>(dim + 1) * norm * greatest_norm +
               greatest_norm * greatest_norm + norm * norm);
          EXPECT_LE(SquaredDistance(row, centroid_view.Row(found[i])),
                    least + tolerance)
              << "dim " << dim << ", " << centroid_count << " centroids, row "
              << r;
        }
      }
    }
  }
}

TEST_F(NearestCentroidTest, TheFirstOfEqualsIsNearest) {
  // Every centroid three times, but never adjacent.
  const auto distinct = Rows(40, 24, 3);
  std::vector<float> centroids;
  for (int i = 0; i < 3; ++i) {
    centroids.insert(centroids.end(), distinct.begin(), distinct.end());
  }
  const auto found =
      Find({distinct.data(), 40, 24}, {centroids.data(), 120, 24});
  for (std::int32_t r = 0; r < 40; ++r) {
    EXPECT_EQ(found[r], r);
  }
}

TEST_F(NearestCentroidTest, ARowsCentroidDoesNotDependOnItsBlock) {
  const auto centroids = Rows(100, 32, 2);
  const auto rows = Rows(60, 32, 2);
  const MatrixView centroid_view = {centroids.data(), 100, 32};
  const auto together = Find({rows.data(), 60, 32}, centroid_view);
  for (std::size_t r = 0; r < 60; ++r) {
    const auto alone = Find({rows.data() + r * 32, 1, 32}, centroid_view);
    EXPECT_EQ(alone[0], together[r]);
  }
}

TEST_F(NearestCentroidTest, RowsThatHaveNoCodesAreFoundByFloats) {
  // Products with the last centroid are beyond codes, those with its square are
  // not beyond doubles; zeros have no scale.
  const std::vector<float> centroids = {1, 1, -3, 0, 0, 0, 1e-38f, 0};
  const std::vector<float> rows = {1e-38f, 0, 0, 0, 1e31f, 1e31f, -1e31f, 0};
  EXPECT_THAT(Find({rows.data(), 4, 2}, {centroids.data(), 4, 2}),
              ::testing::ElementsAre(::testing::AnyOf(2, 3),
                                     ::testing::AnyOf(2, 3), 0, 1));
  const std::vector<float> enormous = {1, 0, 3e38f, 3e38f};
  const auto found = Find({rows.data(), 4, 2}, {enormous.data(), 2, 2});
  EXPECT_EQ(found[0], 0);
  EXPECT_EQ(found[3], 0);
}

}  // namespace
}  // namespace attendant

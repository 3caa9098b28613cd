#include "core/shortlist/kinds/product_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/attention/softmax/score.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/dot.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

TEST(ProductCodesTest, ProductsAreThoseOfKeysThatAreCentroids) {
  // As many keys as centroids, so each part of a key is a centroid. 7
  // components in 3 parts of 2, 2 and 3; and in 5 parts, beyond the four
  // handled at once.
  const KeyTable table = ClusteredKeys(256, 7, 20, 5);
  const std::vector<float> factors(256, 0.5f);
  const std::vector<float> query = {0.3f, -1, 2, 0.1f, 0.7f, -0.2f, 1.5f};
  for (const std::int64_t parts : {1, 3, 5, 7}) {
    ProductCodes codes;
    ASSERT_OK(codes.Build({table.floats.data(), 256, 7}, factors,
                          {.part_count = parts, .seed = 1}));
    std::vector<float> products;
    codes.MakeTable(query, products);
    for (std::int64_t p = 0; p < 256; ++p) {
      const auto key = table.keys[p];
      // Another centroid may be taken if it is equally near within rounding. A
      // score, x . c - |c|^2 / 2 of at most 7 components, is off by at most 9
      // roundings of 2 |x|^2, so |x - c|^2 / 2 is at most twice that, which far
      // exceeds the product's own rounding.
      EXPECT_NEAR(codes.Product(products, p), 0.5 * Dot(key, query),
                  0.5 * Norm(key) * Norm(query) * std::sqrt(8 * 9 * 0x1p-24));
    }
  }
}

TEST(ProductCodesTest, MoreKeysThanCentroidsAreNear) {
  constexpr std::int64_t kKeys = 4000, kDim = 8;
  const KeyTable table = ClusteredKeys(kKeys, kDim, 50, 5);
  const std::vector<float> factors(kKeys, 1.0f);
  const std::vector<float> query(kDim, 1.0f);
  // Parts of two components are nearer to their centroids than parts of eight.
  double errors[2];
  for (int i = 0; i < 2; ++i) {
    ProductCodes codes;
    ASSERT_OK(codes.Build({table.floats.data(), kKeys, kDim}, factors,
                          {.part_count = i == 0 ? 4 : 1, .seed = 1}));
    std::vector<float> products;
    codes.MakeTable(query, products);
    double sum = 0;
    for (std::int64_t p = 0; p < kKeys; ++p) {
      const double error =
          codes.Product(products, p) - Dot(table.keys[p], query);
      sum += error * error;
    }
    errors[i] = std::sqrt(sum / kKeys);
  }
  // Products have a variance of 2 a component.
  EXPECT_LT(errors[0], 0.5 * errors[1]);
  EXPECT_LT(errors[1], std::sqrt(2.0 * kDim));
}

}  // namespace
}  // namespace attendant

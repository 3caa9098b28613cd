#include "core/attention/approximations/lsh_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/attention/approximations/lsh_attention.h"
#include "tests/core/attention/approximations/approximation_twins.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

TEST(LshBucketsTest, TakeTheGreatestComponentOfEitherSign) {
  // 1,000 buckets exceed the number of directions projected at a time.
  for (const std::int64_t bucket_count : {2, 6, 1000}) {
    const auto shared = DrawBuckets({5, bucket_count, 3, 7});
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
  const auto shared = DrawBuckets({3, 16, 4, 1});
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

// The longest and shortest rows that a float holds: dot products with them
// overflow or lose bits.
TEST(LshBucketsTest, AreOfDirectionsAtAnyLength) {
  constexpr std::int64_t kDim = 1024;
  const auto shared = DrawBuckets({kDim, 64, 4, 1});
  const Matrix rows = Normals(20, kDim, 3);
  for (std::int64_t i = 0; i < rows.row_count; ++i) {
    const std::span<const float> row = rows.view().Row(i);
    std::int32_t buckets[4];
    shared->Of(row.data(), buckets);
    for (const int exponent : {125, 61, -61, -100}) {
      std::vector<float> scaled(row.begin(), row.end());
      for (float& component : scaled) {
        component = std::scalbn(component, exponent);
      }
      std::int32_t of_scaled[4];
      shared->Of(scaled.data(), of_scaled);
      EXPECT_THAT(of_scaled, ElementsAreArray(buckets)) << exponent;
    }
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

// The bucket count is at most the number of keys, rounded up to an even number.
TEST(LshBucketsTest, AreNeverMoreThanKeys) {
  const Matrix tokens = Normals(7, 3, 1);
  MultiHeadInput input;
  input.queries = input.keys = input.values = tokens.view();
  EXPECT_EQ(LshShapeOf(input, {.bucket_count = 4096}).bucket_count, 8);
  EXPECT_EQ(LshShapeOf(input, {.bucket_count = 4}).bucket_count, 4);
  EXPECT_EQ(LshShapeOf(input, {}).bucket_count, 2);
}

}  // namespace
}  // namespace attendant

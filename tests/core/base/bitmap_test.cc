#include "core/base/bitmap.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <vector>

namespace attendant {
namespace {

TEST(BitmapTest, DefaultIsEmpty) {
  const Bitmap bitmap;
  EXPECT_EQ(bitmap.size(), 0);
}

TEST(BitmapTest, SetTouchesOneBit) {
  for (const std::int64_t size : {1, 63, 64, 65, 130}) {
    for (std::int64_t i = 0; i < size; ++i) {
      Bitmap bitmap(size);
      EXPECT_EQ(bitmap.size(), size);
      bitmap.Set(i);
      bitmap.Set(i);
      for (std::int64_t j = 0; j < size; ++j) EXPECT_EQ(bitmap.Test(j), i == j);
    }
  }
}

TEST(BitmapTest, ClearTouchesOneBit) {
  Bitmap bitmap(130);
  for (std::int64_t i = 0; i < 130; ++i) bitmap.Set(i);
  bitmap.Clear(64);
  bitmap.Clear(64);
  for (std::int64_t i = 0; i < 130; ++i) EXPECT_EQ(bitmap.Test(i), i != 64);
}

TEST(BitmapTest, VisitsWhatIsSetBetweenTwoPlaces) {
  constexpr std::int64_t kSize = 200;
  Bitmap bitmap(kSize);
  for (std::int64_t i = 0; i < kSize; ++i) {
    if (i % 3 == 0 || i % 64 == 63) bitmap.Set(i);
  }
  for (const std::int64_t begin : {0, 1, 63, 64, 65, 127, 199, 200}) {
    for (std::int64_t end = begin; end <= kSize; ++end) {
      std::vector<std::int64_t> expected;
      for (std::int64_t i = begin; i < end; ++i) {
        if (bitmap.Test(i)) expected.push_back(i);
      }
      std::vector<std::int64_t> visited;
      bitmap.ForEachSet(begin, end,
                        [&](std::int64_t i) { visited.push_back(i); });
      EXPECT_EQ(visited, expected) << begin << " to " << end;
    }
  }
}

TEST(BitmapTest, CopiesAreApart) {
  Bitmap bitmap(8);
  bitmap.Set(1);
  Bitmap copy = bitmap;
  copy.Set(2);
  EXPECT_FALSE(bitmap.Test(2));
  EXPECT_TRUE(copy.Test(1));
}

}  // namespace
}  // namespace attendant

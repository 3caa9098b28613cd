#include "core/base/bitmap.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <vector>

namespace attendant {
namespace {

TEST(BitmapTest, DefaultIsEmpty) {
  const Bitmap bitmap;
  EXPECT_EQ(bitmap.size(), 0);
  EXPECT_EQ(bitmap.Count(), 0);
}

TEST(BitmapTest, SetAndClearTouchOneBit) {
  for (const std::int64_t size : {1, 63, 64, 65, 130}) {
    Bitmap bitmap(size);
    EXPECT_EQ(bitmap.size(), size);
    EXPECT_EQ(bitmap.Count(), 0);
    for (std::int64_t i = 0; i < size; ++i) {
      bitmap.Set(i);
      EXPECT_EQ(bitmap.Count(), 1);
      for (std::int64_t j = 0; j < size; ++j) EXPECT_EQ(bitmap.Test(j), i == j);
      bitmap.Clear(i);
      EXPECT_EQ(bitmap.Count(), 0);
    }
  }
}

TEST(BitmapTest, SettingTwiceCountsOnce) {
  Bitmap bitmap(10);
  bitmap.Set(3);
  bitmap.Set(3);
  EXPECT_EQ(bitmap.Count(), 1);
  bitmap.Clear(3);
  bitmap.Clear(3);
  EXPECT_EQ(bitmap.Count(), 0);
}

TEST(BitmapTest, WordsHoldTheLowestBitFirst) {
  Bitmap bitmap(70);
  bitmap.Set(0);
  bitmap.Set(63);
  bitmap.Set(64);
  bitmap.Set(69);
  EXPECT_EQ(bitmap.Word(0), 0x8000000000000001u);
  EXPECT_EQ(bitmap.Word(1), 0x21u);  // none past the end
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

#include "core/attention/approximations/angular_argmax.h"

#include <gtest/gtest.h>

namespace attendant {
namespace {

TEST(AngularArgmaxTest, IsTheFirstGreatestOfEitherSign) {
  const float products[] = {1, -3, 3, 2};
  AngularArgmax nearest;
  nearest.Add(products, 4);
  EXPECT_EQ(nearest.direction, 1);
  EXPECT_TRUE(nearest.is_against);
  EXPECT_EQ(nearest.size, 3);
  EXPECT_EQ(nearest.bucket(), 5);
}

TEST(AngularArgmaxTest, PartsAreAsOne) {
  const float products[] = {1, -3, 3, 4};
  AngularArgmax nearest;
  nearest.Add(products, 2);
  EXPECT_EQ(nearest.bucket(), 3);
  nearest.Add(products + 2, 2);
  EXPECT_EQ(nearest.bucket(), 3);
  EXPECT_FALSE(nearest.is_against);
}

TEST(AngularArgmaxTest, NothingLiesAlongTheFirstDirection) {
  const float products[] = {0, -0.0f};
  AngularArgmax nearest;
  nearest.Add(products, 2);
  EXPECT_EQ(nearest.bucket(), 0);
}

}  // namespace
}  // namespace attendant

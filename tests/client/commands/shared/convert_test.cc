#include "client/commands/shared/convert.h"

#include <gtest/gtest.h>

#include <vector>

namespace attendant {
namespace {

TEST(ConvertTest, DescribesTheFirstComponentsAndTheNorm) {
  const std::vector<float> vector = {3, 0, -4};
  const VectorText whole = DescribeComponents(vector, 3);
  EXPECT_EQ(whole.first, "[3, 0, -4]");
  EXPECT_EQ(whole.size, "3 components, norm 5");
  EXPECT_EQ(DescribeComponents(vector, 2).first, "[3, 0, ...]");
  EXPECT_EQ(DescribeComponents(vector, 2).size, whole.size);
  EXPECT_EQ(DescribeComponents({}, 2).first, "[]");
}

}  // namespace
}  // namespace attendant
